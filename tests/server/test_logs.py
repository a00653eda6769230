"""Logs over HTTP: whole, in part, searched, followed, resumed."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace

import pytest

from astrago_trainer.server.collecting import MOST_OTHER_LOGS
from astrago_trainer.server.log_places import numbered_ranks
from tests.server.serving import JOBS, a_site, events_of

LOGS = f"{JOBS}/hello/logs"


def test_text_of_one_rank_is_what_was_written(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            await site.running(name="hello")
            data = b"one\ntwo\r3\n\xff\x00 four"
            site.log("hello").write_bytes(data)
            whole = await site.client.get(LOGS, params={"rank": 0})
            assert whole.content == data
            assert whole.headers["content-type"] == "text/plain; charset=utf-8"
            assert whole.headers["x-log-cursor"] == f"0:0:{len(data)}"
            part = await site.client.get(LOGS, params={"rank": 0, "offset": 4, "limit": 3})
            assert (part.content, part.headers["x-log-cursor"]) == (b"two", "0:0:7")
            rest = await site.client.get(LOGS, params={"rank": 0, "cursor": "0:0:7"})
            assert rest.content == data[7:]
            last = await site.client.get(LOGS, params={"rank": 0, "tail": 1})
            assert last.content == b"\xff\x00 four"
            none = await site.client.get(LOGS, params={"rank": 1})
            assert (none.status_code, none.content) == (200, b"")

    asyncio.run(story())


def test_all_ranks_come_as_lines_with_their_rank(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            await site.running(name="hello")
            for rank in (0, 1):
                site.log("hello", rank).write_text(f"from {rank}\n10%\r100%\nopen {rank}")
            text = (await site.client.get(LOGS)).text
            assert sorted(text.splitlines()) == sorted(
                ["[0] from 0", "[0] 100%", "[0] open 0", "[1] from 1", "[1] 100%", "[1] open 1"]
            )
            lines = (await site.client.get(LOGS, params={"format": "ndjson"})).text.splitlines()
            found = [json.loads(line) for line in lines]
            assert {(each["rank"], each["text"], each["ended"]) for each in found} == {
                (rank, words, ended)
                for rank in (0, 1)
                for words, ended in (
                    (f"from {rank}", True),
                    ("100%", True),
                    (f"open {rank}", False),
                )
            }

    asyncio.run(story())


def test_a_search_shows_lines_around_and_how_far_it_came(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            await site.running(name="hello")
            site.log("hello").write_text("a\nloss=nan\nb\nc\n")
            found = await site.client.get(
                LOGS, params={"rank": 0, "grep": "LOSS=(nan|inf)", "ignore_case": True, "before": 1}
            )
            assert found.text == "a\nloss=nan\n"
            lines = await site.client.get(
                LOGS, params={"rank": 0, "grep": "loss", "format": "ndjson"}
            )
            *hits, end = map(json.loads, lines.text.splitlines())
            assert [each["offset"] for each in hits] == [2]
            assert (end["next"], end["why"]) == (15, "end")
            bad = await site.client.get(LOGS, params={"rank": 0, "grep": "("})
            assert (bad.status_code, bad.json()["errors"][0]["path"]) == (422, "pattern")

    asyncio.run(story())


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("rank=9", 404),
        ("rank=x", 422),
        ("rank=-1", 422),
        ("rank=" + "9" * 30, 422),
        ("container=../../etc", 404),
        ("container=nope", 404),
        ("run=7", 404),
        ("cursor=1:2", 422),
        ("cursor=" + ":".join(["9" * 30] * 3), 422),
        ("since=yesterday", 422),
        ("since=1e999", 422),
        ("offset=3", 422),
        ("format=xml", 422),
        ("tail=-1", 422),
        ("attempt=2147483648", 422),
    ],
)
def test_what_is_not_there_or_makes_no_sense_is_told(tmp_path, query, status):
    async def story():
        async with a_site(tmp_path) as site:
            await site.running(name="hello")
            answer = await site.client.get(f"{LOGS}?{query}")
            assert answer.status_code == status, answer.text

    asyncio.run(story())


async def _read(site, **params):
    """A whole stream; it ends with the job."""
    answer = await site.client.get(LOGS, params={"follow": True, **params})
    assert answer.status_code == 200, answer.text
    return answer


def test_a_stream_follows_to_the_end_of_the_job(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            await site.running(name="hello")
            site.log("hello", 0).write_text("first\n")
            reading = asyncio.create_task(_read(site, format="sse"))
            text = asyncio.create_task(_read(site))
            raw = asyncio.create_task(_read(site, rank=1))
            with site.log("hello", 1).open("a") as log:
                log.write("second\nthi")
            await asyncio.sleep(0)
            with site.log("hello", 1).open("a") as log:
                log.write("rd\n")
            site.engine.finish(site.handle("hello"))
            events = events_of((await reading).text)
            assert events[-1]["event"] == "end"
            assert json.loads(events[-1]["data"]) == {"phase": "Complete"}
            lines = [json.loads(each["data"]) for each in events[:-1]]
            ended = {(each["rank"], each["text"]) for each in lines if each["ended"]}
            assert ended == {(0, "first"), (1, "second"), (1, "third")}
            assert events[-2]["id"] == "0:0:6,0:1:13"
            assert sorted((await text).text.splitlines()) == [
                "[0] first",
                "[1] second",
                "[1] third",
            ]
            assert (await raw).text == "second\nthird\n"
            assert site.context.streams.total() == 0

    asyncio.run(story())


def test_a_stream_that_was_cut_goes_on_without_loss_or_repeat(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            await site.running(name="hello")
            for rank in (0, 1):
                site.log("hello", rank).write_text("".join(f"{rank}:{n}\n" for n in range(50)))
            site.engine.finish(site.handle("hello"))
            await site.until("hello", "Complete")
            whole = events_of((await _read(site, format="sse")).text)[:-1]
            assert len(whole) == 100
            for cut in (1, 37, 99, 100):
                answer = await site.client.get(
                    LOGS,
                    params={"follow": True, "format": "sse"},
                    headers={"last-event-id": whole[cut - 1]["id"]},
                )
                rest = events_of(answer.text)[:-1]
                seen = [each["data"] for each in (*whole[:cut], *rest)]
                assert sorted(seen) == sorted(each["data"] for each in whole)

    asyncio.run(story())


async def _restarted(site):
    """The engine has begun the second attempt, and the service knows."""
    handle = site.handle("hello")
    effective, seen = site.engine._jobs[handle]
    site.engine._set(handle, effective, replace(seen, attempt=1, max_restarts=3))
    with site.service.subscribe() as news:
        while site.service.get("team", "hello").job.attempt != 1:
            await anext(news)


def test_later_attempts_go_on_in_the_same_stream(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            await site.running(name="hello")
            site.log("hello", 0, 0).write_text("try 0\n")
            reading = asyncio.create_task(_read(site, format="sse", rank=0))
            while site.context.streams.total() < 1:
                await asyncio.sleep(0)
            handle = site.handle("hello")
            await _restarted(site)
            site.log("hello", 0, 1).write_text("try 1\n")
            site.engine.finish(handle)
            events = events_of((await reading).text)
            assert [each["id"] for each in events[:-1]] == ["0:0:6", "1:0:6"]
            old = await site.client.get(LOGS, params={"attempt": 0, "rank": 0})
            assert old.text == "try 0\n"

    asyncio.run(story())


def test_a_log_of_many_blocks_needs_little_memory(tmp_path):
    import tracemalloc

    async def story():
        async with a_site(tmp_path) as site:
            await site.running(name="hello")
            block = b"0123456789abcde\n" * (1 << 16)
            with site.log("hello").open("wb") as file:
                for _ in range(64):
                    file.write(block)
            size = 0
            first = asyncio.Event()

            async def send(message):
                nonlocal size
                first.set()
                size += len(message.get("body", b""))

            async def receive():
                await asyncio.Event().wait()

            scope = {
                "type": "http",
                "method": "GET",
                "path": LOGS,
                "raw_path": LOGS.encode(),
                "query_string": b"rank=0",
                "headers": [(b"host", b"127.0.0.1")],
                "scheme": "http",
                "server": ("127.0.0.1", 80),
                "client": ("127.0.0.1", 1),
                "http_version": "1.1",
                "root_path": "",
            }
            tracemalloc.start()
            await site.app(scope, receive, send)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert size == 64 << 20
            assert peak < 8 << 20

    asyncio.run(story())


def test_streams_have_a_limit_and_places_come_back(tmp_path):
    async def story():
        async with a_site(tmp_path, max_streams_each=1) as site:
            await site.running(name="hello")
            first = asyncio.create_task(_read(site, format="sse"))
            while site.context.streams.total() < 1:
                await asyncio.sleep(0)
            second = await site.client.get(LOGS, params={"follow": True})
            assert (second.status_code, second.headers["retry-after"]) == (429, "5")
            site.context.closing.set()
            await first
            assert site.context.streams.total() == 0

    asyncio.run(story())


def test_numbers_of_the_log_become_series(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            await site.running(name="hello")
            site.log("hello").write_text(
                "".join(f"Epoch {n}/4 loss={1 / n:.2f}\n" for n in range(1, 5))
            )
            site.engine.finish(site.handle("hello"))
            await site.until("hello", "Complete")
            while site.context.collector._following:
                await asyncio.wait(list(site.context.collector._following.values()))
            found = (await site.client.get(f"{JOBS}/hello/metrics")).json()
            assert [point[2] for point in found["series"]["loss"]] == [1.0, 0.5, 0.33, 0.25]
            assert found["progress"]["fraction"] == 1.0
            assert list((tmp_path / "progress").iterdir()) == []

    asyncio.run(story())


def test_numbers_go_on_after_a_restart_of_the_server(tmp_path):
    from astrago_trainer.engines.fake import FakeEngine

    async def story():
        engine = FakeEngine(data=tmp_path / "fake")
        async with a_site(tmp_path, engine) as site:
            await site.running(name="hello")
            log = site.log("hello")
            log.write_text("step 1 loss=0.9\n")
            while not (await site.client.get(f"{JOBS}/hello/metrics")).json()["series"]:
                await asyncio.sleep(0.01)
            follower = site.context.collector
            assert follower._following
        async with a_site(tmp_path, engine) as site:
            with log.open("a") as file:
                file.write("step 2 loss=0.8\n")
            site.engine.finish(site.handle("hello"))
            await site.until("hello", "Complete")
            while site.context.collector._following:
                await asyncio.wait(list(site.context.collector._following.values()))
            found = (await site.client.get(f"{JOBS}/hello/metrics")).json()
            steps = [point[0] for point in found["series"]["loss"]]
            assert set(steps) == {1, 2}

    asyncio.run(story())


async def _read_to_the_end(site, name="hello"):
    site.engine.finish(site.handle(name))
    await site.until(name, "Complete")
    while site.context.collector._following:
        await asyncio.wait(list(site.context.collector._following.values()))


async def _numbers(site, rank):
    answer = await site.client.get(f"{JOBS}/hello/metrics", params={"rank": rank})
    return answer.json()


def test_each_rank_has_its_series_and_rank_0_says_how_far_it_is(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            await site.running(name="hello")
            for rank in (0, 1):
                text = "".join(f"step {n}/{4 + rank} loss={rank + n}\n" for n in (1, 2))
                site.log("hello", rank).write_text(text)
            await _read_to_the_end(site)
            for rank in (0, 1):
                found = await _numbers(site, rank)
                assert [point[::2] for point in found["series"]["loss"]] == [
                    [1, rank + 1.0],
                    [2, rank + 2.0],
                ]
                assert found["progress"]["fraction"] == 0.5, "2 of 4, not 2 of 5"
                assert (found["ranks"], found["other_ranks"]) == ([0, 1], [])
            mean = await _numbers(site, "mean")
            assert [point[::2] for point in mean["series"]["loss"]] == [[1, 1.5], [2, 2.5]]
            both = await _numbers(site, "all")
            assert both["series"] == (await _numbers(site, 0))["series"]
            assert both["other_ranks"] == [
                {"rank": 1, "series": (await _numbers(site, 1))["series"]}
            ]
            assert (await _numbers(site, 7))["series"] == {}
            assert (await _numbers(site, "median"))["status"] == 422

    asyncio.run(story())


def test_a_rank_that_is_quiet_is_read_while_another_one_speaks(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            await site.running(name="hello")
            site.log("hello", 1).write_text("loss=0.25")  # a line without an end
            with site.log("hello").open("a", buffering=1) as log:
                step = 0
                while not (await _numbers(site, 1))["series"]:
                    step += 1
                    log.write(f"step {step} loss=0.5\n")
                    await asyncio.sleep(0.02)
            await _read_to_the_end(site)
            assert [point[2] for point in (await _numbers(site, 1))["series"]["loss"]] == [0.25]

    asyncio.run(story())


@pytest.mark.parametrize("note", ["of today", "of a server that knew one rank", "broken"])
def test_every_rank_goes_on_where_it_was(tmp_path, note):
    from astrago_trainer.engines.fake import FakeEngine

    async def story():
        engine = FakeEngine(data=tmp_path / "fake")
        async with a_site(tmp_path, engine) as site:
            await site.running(name="hello")
            logs = [site.log("hello", rank) for rank in (0, 1)]
            for log in logs:
                log.write_text("step 1 loss=0.9\n")
            while not all([(await _numbers(site, rank))["series"] for rank in (0, 1)]):
                await asyncio.sleep(0.01)
        (path,) = (tmp_path / "progress").iterdir()
        if note == "of a server that knew one rank":
            known = json.loads(path.read_text())
            path.write_text(json.dumps({"attempt": 0, **known["ranks"]["0"]}))
        elif note == "broken":
            path.write_text('{"attempt": 0, "ranks":')
        async with a_site(tmp_path, engine) as site:
            for log in logs:
                with log.open("a") as file:
                    file.write("step 2 loss=0.8\n")
            await _read_to_the_end(site)
            found = [
                [point[0] for point in (await _numbers(site, rank))["series"]["loss"]]
                for rank in (0, 1)
            ]
            twice = {"of today": (), "of a server that knew one rank": (1,), "broken": (0, 1)}[note]
            assert found == [[1, 1, 2] if rank in twice else [1, 2] for rank in (0, 1)]

    asyncio.run(story())


def test_whose_logs_are_read_for_numbers(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            await site.submit(name="hello")
            job = site.service.get("team", "hello").job
            assert numbered_ranks(job._replace(nodes=1)) == {0: 0}
            assert list(numbered_ranks(job._replace(nodes=8))) == list(range(8))
            assert list(numbered_ranks(job._replace(nodes=64))) == [*range(7), 63]
            assert numbered_ranks(job._replace(nodes=4, framework="horovod")) == {0: 4}

    asyncio.run(story())


def test_when_many_logs_are_followed_new_jobs_have_rank_0_alone(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            collector = site.context.collector
            await site.running(name="first")
            while collector._other_logs != 1:  # its rank 1
                await asyncio.sleep(0)
            collector._other_logs += MOST_OTHER_LOGS - 1
            await site.running(name="hello")
            for rank in (0, 1):
                site.log("hello", rank).write_text("step 1 loss=0.5\n")
            site.engine.finish(site.handle("first"))
            await _read_to_the_end(site)
            assert (await _numbers(site, "all"))["ranks"] == [0]
            assert collector._other_logs == MOST_OTHER_LOGS - 1, "one came back, of the first job"

    asyncio.run(story())


def test_the_stream_of_a_namespace_feeds_a_list(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            path = "/api/v1/namespaces/team/stream"

            async def listen(**headers):
                return events_of((await site.client.get(path, headers=headers)).text)

            new = asyncio.create_task(listen())
            back = asyncio.create_task(listen(**{"last-event-id": "7"}))
            other = asyncio.create_task(site.client.get("/api/v1/namespaces/other/stream"))
            while site.context.streams.total() < 3:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            await site.running(name="hello")
            await site.client.delete(f"{JOBS}/hello")
            with site.service.subscribe() as news:
                while site.service.board.find("team", "hello"):
                    await anext(news)
            await asyncio.sleep(0.05)  # the streams get their turn; what they tell is checked below
            site.context.closing.set()
            events = await new
            assert events[0] == {"event": "ready", "id": "0", "data": "{}"}
            kinds = [each["event"] for each in events if each["event"] != "progress"]
            assert kinds[-1] == "removed"
            assert set(kinds[1:-1]) == {"changed"}
            assert (await back)[0]["event"] == "resync"
            assert [each["event"] for each in events_of((await other).text)] == ["ready"]

    asyncio.run(story())


def test_lines_by_number_over_attempts_and_ranks(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            await site.running(name="hello")
            site.log("hello", 0, 0).write_text("a\nb\n")
            site.log("hello", 1, 0).write_text("c\n10%\r100%\n")
            os.utime(site.log("hello", 1, 0), (2e9, 2e9))  # written later
            site.log("hello", 0, 1).write_text("d\n")
            handle = site.handle("hello")
            await _restarted(site)
            site.engine.finish(handle)
            await site.until("hello", "Complete")

            async def window(**parameters):
                return (await site.client.get(f"{LOGS}/lines", params=parameters)).json()

            whole = await window(first=0)
            texts = [(each["attempt"], each["rank"], each["text"]) for each in whole["items"]]
            assert texts == [
                (0, 0, "a"),
                (0, 0, "b"),
                (0, 1, "c"),
                (0, 1, "100%"),
                (1, 0, "d"),
            ]
            assert (whole["total"], whole["is_over"], whole["ranks"]) == (5, True, [0, 1])
            assert whole["attempts"] == [
                {"attempt": 0, "first": 0, "total": 4},
                {"attempt": 1, "first": 4, "total": 1},
            ]
            last = await window(first=-2, count=2)
            assert (last["first"], [each["text"] for each in last["items"]]) == (3, ["100%", "d"])
            one = await window(rank=1, attempt=0, first=1)
            assert [each["text"] for each in one["items"]] == ["100%"]
            around = await window(at="0:1:2", count=1)
            assert (around["at"], around["items"][0]["text"]) == (3, "100%")
            before = await window(first=0, until="0:0:2,0:1:0")
            assert [each["text"] for each in before["items"]] == ["a"]

            async def find(**parameters):
                answer = await site.client.get(f"{LOGS}/hits", params=parameters)
                return answer.status_code, answer.json()

            assert await find(q="D", ignore_case=True) == (
                200,
                {"items": [{"line": 4, "attempt": 1, "rank": 0, "offset": 0}], "is_whole": True},
            )
            status, found = await find(q="[ac]|1..%", regex=True)
            assert (status, [each["line"] for each in found["items"]]) == (200, [0, 2, 3])
            assert (await find(q="[ac]"))[1]["items"] == []
            assert (await find(q="(", regex=True))[0] == 422

    asyncio.run(story())
