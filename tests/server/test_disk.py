"""A disk that fills up: jobs that print without end, deletion without any space, and who is told of it."""

from __future__ import annotations

import asyncio
import json
import os
import time

import httpx
import pytest

from astrago_trainer.logs import limits
from astrago_trainer.logs.gap import read_gap, trim
from astrago_trainer.server.disk import DiskAlarm, disk_state
from astrago_trainer.server.settings import BadSettings, log_limits_here, read_settings
from astrago_trainer.store import reserve as reserves
from astrago_trainer.store.reserve import Reserve
from tests.disks import a_small_disk
from tests.server.serving import JOBS, PATIENCE, a_process, a_request, a_site
from tests.server.test_faults import fill, names_of, submit

MIB = 1 << 20
FLOOD = "import sys\nwhile True:\n    sys.stdout.write('some words\\n' * 1000)\n"
QUIET = "import time\nprint('begun', flush=True)\ntime.sleep(1000)\n"
LINES = b"".join(b"line %06d\n" % number for number in range(300_000))


def until(client: httpx.Client, claim) -> None:
    """Asks until it holds: what a client of a server in another process can do."""
    end = time.monotonic() + PATIENCE
    while not claim():
        assert time.monotonic() < end, client.get(JOBS).text
        time.sleep(0.02)


def phase(client: httpx.Client, name: str) -> str:
    return client.get(f"{JOBS}/{name}").json()["phase"]


def is_gone(client: httpx.Client, name: str) -> bool:
    return client.get(f"{JOBS}/{name}").status_code == 404


def alarm(client: httpx.Client) -> str | None:
    return client.get("/api/v1/whoami").json()["disk"]["alarm"]


def test_a_job_that_prints_without_end_stops_nobody_and_can_be_deleted(tmp_path):
    """Its log is smaller than its limit, and the disk is smaller than both."""
    with (
        a_small_disk(tmp_path / "small", "64m") as folder,
        a_process(folder / "data") as server,
        httpx.Client(base_url=server.address, timeout=PATIENCE) as client,
    ):
        request = a_request(name="flood", nodes=1, code={"inline": FLOOD})
        assert client.post(JOBS, json=request).status_code == 201
        until(client, lambda: alarm(client) is not None)
        events = lambda: client.get(f"{JOBS}/flood/events").json()["items"]  # noqa: E731
        until(client, lambda: any(event["reason"] == "LogLost" for event in events()))

        assert os.statvfs(folder).f_bavail * 4096 >= MIB, "the reserve is free"
        assert client.get("/healthz").status_code == 200
        ready = client.get("/readyz")
        assert ready.status_code == 200
        assert ready.json()["disk"]["alarm"] in (DiskAlarm.NEARLY_FULL, DiskAlarm.NO_LOGS)
        assert f'astrago_disk_alarm{{code="{DiskAlarm.FULL}"}} 0' in client.get("/metrics").text
        assert submit(client, "other").status_code == 201
        assert client.delete(f"{JOBS}/flood").status_code in (200, 202)
        until(client, lambda: is_gone(client, "flood"))
        until(client, lambda: alarm(client) is None)
        assert client.delete(f"{JOBS}/other").status_code in (200, 202)
        until(client, lambda: names_of(client) == set())


def test_a_job_is_deleted_on_a_disk_without_any_space(tmp_path):
    with (
        a_small_disk(tmp_path / "small", "64m") as folder,
        a_process(folder / "data") as server,
        httpx.Client(base_url=server.address, timeout=PATIENCE) as client,
    ):
        for name in ("first", "second"):
            request = a_request(name=name, nodes=1, code={"inline": QUIET})
            assert client.post(JOBS, json=request).status_code == 201
        until(client, lambda: phase(client, "first") == "Running")
        until(client, (folder / "data" / reserves.FILE_NAME).exists)
        fill(folder / "filler")
        # The database has space left in its own files for some writes; then it has none.
        until(client, lambda: submit(client, f"n-{time.monotonic_ns()}").status_code == 503)
        fill(folder / "filler-2")
        assert os.statvfs(folder).f_bavail == 0

        assert client.delete(f"{JOBS}/first").status_code in (200, 202)
        until(client, lambda: is_gone(client, "first"))

        assert client.get(f"{JOBS}/second").status_code == 200
        assert alarm(client) == DiskAlarm.FULL
        assert f'astrago_disk_alarm{{code="{DiskAlarm.FULL}"}} 1' in client.get("/metrics").text
        refused = submit(client, "another")
        assert refused.status_code == 503
        assert "delete jobs, or free some space" in refused.json()["detail"]
        (folder / "filler").unlink()
        until(client, lambda: alarm(client) is None)
        assert (folder / "data" / reserves.FILE_NAME).exists()
        assert submit(client, "another").status_code == 201
        # Jobs outlive their server: none may be left.
        for name in names_of(client):
            client.delete(f"{JOBS}/{name}")
        until(client, lambda: names_of(client) == set())


def test_the_reserve_is_made_given_up_when_it_is_needed_and_made_again(tmp_path, monkeypatch):
    free = 100 * MIB
    monkeypatch.setattr(reserves, "disk_of", lambda _: limits.Disk(200 * MIB, free))
    reserve, path = Reserve(tmp_path), tmp_path / reserves.FILE_NAME

    reserve.make()
    assert (path.stat().st_size, path.stat().st_mode & 0o777) == (10 * MIB, 0o600)
    assert not reserve.give_up(), "the disk is not full"
    free = 0
    assert reserve.give_up()
    assert (path.exists(), reserve.is_given_up) == (False, True)
    assert not reserve.give_up(), "there is none"
    free = 20 * MIB
    reserve.make()
    assert (path.exists(), reserve.is_given_up) == (False, True)
    free = 40 * MIB
    reserve.make()
    assert (path.exists(), reserve.is_given_up) == (True, False)


@pytest.mark.parametrize(
    ("free", "is_full", "expected"),
    [
        (10_000, False, None),
        (9_999, False, DiskAlarm.NEARLY_FULL),
        (4_999, False, DiskAlarm.NO_LOGS),
        (0, False, DiskAlarm.FULL),
        (10_000, True, DiskAlarm.FULL),
    ],
)
def test_the_alarm_follows_what_is_free(tmp_path, monkeypatch, free, is_full, expected):
    from astrago_trainer.server import disk

    monkeypatch.setattr(disk, "disk_of", lambda _: limits.Disk(100_000, free))
    found = disk_state(tmp_path, 1 << 30, is_full=is_full)
    assert found == (100_000, free, 5_000, expected)


def test_logs_with_a_dropped_part_are_served_with_how_much_it_was(tmp_path):
    async def scenario():
        async with a_site(tmp_path) as site:
            await site.running(name="job", nodes=1)
            path = site.log("job")
            path.write_bytes(LINES)
            trim(path, MIB // 4, MIB // 4)
            address = f"{JOBS}/job/logs"
            text = await site.client.get(address, params={"rank": 0})
            lines = await site.client.get(address, params={"rank": 0, "format": "ndjson"})
            gap = read_gap(path)
            at = gap.marker // 12
            window = await site.client.get(address + "/lines", params={"first": at, "count": 2})
            hits = await site.client.get(address + "/hits", params={"q": "line 299999"})
            tail = await site.client.get(address, params={"rank": 0, "tail": 1})
            first = await site.client.get("/api/trainjob/job/logs", params={"namespace": "team"})
            return gap, text, lines, window.json(), hits.json(), tail.text, first.json()

    gap, text, lines, window, hits, tail, first = asyncio.run(scenario())
    dropped = {"bytes": gap.bytes, "lines": gap.lines}
    assert int(text.headers["content-length"]) == len(text.content)
    assert text.headers["x-log-dropped-bytes"] == str(gap.bytes)
    assert text.headers["x-log-dropped-lines"] == str(gap.lines)
    assert text.headers["x-log-cursor"] == f"0:0:{len(LINES)}"
    assert f"[astrago: {gap.bytes} bytes in {gap.lines} lines were dropped here" in text.text
    assert "\0" not in text.text
    items = [json.loads(line) for line in lines.text.splitlines()]
    assert [item["dropped"] for item in items if "dropped" in item] == [dropped]
    assert [item["dropped"] for item in window["items"]] == [dropped, None]
    assert window["items"][1]["offset"] == gap.end
    assert window["total"] == len(text.text.splitlines()) == len(items)
    assert [hit["offset"] for hit in hits["items"]] == [len(LINES) - 12]
    assert hits["items"][0]["line"] == window["total"] - 1
    assert tail == "line 299999\n"
    assert first["logs"] == text.text


def test_a_stream_that_comes_back_to_a_dropped_place_goes_on_behind_it(tmp_path):
    async def scenario():
        async with a_site(tmp_path) as site:
            await site.running(name="job", nodes=1)
            path = site.log("job")
            path.write_bytes(LINES)
            trim(path, MIB // 4, MIB // 4)
            gap = read_gap(path)
            place = f"0:0:{(gap.start + gap.end) // 2}"
            query = {"rank": 0, "follow": True, "format": "sse"}
            site.engine.finish(site.handle("job"))
            answer = await site.client.get(
                f"{JOBS}/job/logs", params=query, headers={"last-event-id": place}
            )
            return gap, answer.text

    gap, text = asyncio.run(scenario())
    data = [json.loads(line[6:]) for line in text.splitlines() if line.startswith('data: {"att')]
    assert data[0]["dropped"] == {"bytes": gap.bytes, "lines": gap.lines}
    assert data[1]["offset"] == gap.end
    assert data[-1]["next"] == len(LINES)


def test_settings_of_logs_are_checked(tmp_path):
    names = {"ASTRAGO_LOG_MAX_BYTES": "1", "ASTRAGO_DISK_RESERVE_BYTES": "-1"}
    for name, value in names.items():
        with pytest.raises(BadSettings, match=name):
            read_settings({name: value}, data=tmp_path)
        with pytest.raises(BadSettings, match=name):
            log_limits_here({name: value})
    assert log_limits_here({"ASTRAGO_LOG_MAX_BYTES": "0"}).log == 0
    assert read_settings({}, data=tmp_path).log_limits == limits.LogLimits()
