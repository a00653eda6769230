"""Following a log: every byte once, as it comes, for one reader or a thousand; and nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from contextlib import aclosing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.logs.contents import PIECES, as_shown, lines_of, untimed

from astrago_trainer.logs import follow_sync
from astrago_trainer.logs.follow import LogHub
from astrago_trainer.logs.lines import Chunk, whole_characters

LIMIT = 30.0
"""Seconds after which a test has failed; none waits that long."""


def run(main):
    """Runs a test's coroutine function with a hub."""

    async def limited():
        hub = LogHub()
        try:
            return await asyncio.wait_for(main(hub), LIMIT)
        finally:
            hub.close()

    return asyncio.run(limited())


class Writer:
    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def __call__(self, data: bytes) -> None:
        assert os.write(self.fd, data) == len(data)

    def close(self) -> None:
        os.close(self.fd)


async def collect(chunks, into: list[Chunk]) -> bytes:
    async for chunk in chunks:
        into.append(chunk)
    return b"".join(chunk.data for chunk in into)


def open_files(path: Path) -> int:
    """Descriptors of this process on that file, deleted or not."""
    targets = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            targets.append(str(entry.readlink()))
        except FileNotFoundError:  # the one that lists the folder
            continue
    return sum(target.removesuffix(" (deleted)") == str(path) for target in targets)


_of_others: set[str] = set()


@pytest.fixture(autouse=True)
def only_own_watches_count() -> None:
    """Tests before these, in the same process, may have left some."""
    gc.collect()
    _of_others.clear()
    _of_others.update(_watching())


def watches() -> int:
    """Inotify watches of this process, since the test began."""
    return sum(count for name, count in _watching().items() if name not in _of_others)


def _watching() -> dict[str, int]:
    """Descriptor -> how many."""
    found = {}
    for entry in Path("/proc/self/fdinfo").iterdir():
        try:
            found[entry.name] = entry.read_text().count("inotify wd:")
        except FileNotFoundError:
            continue
    return {name: count for name, count in found.items() if count}


steps = st.lists(
    st.tuples(st.lists(st.sampled_from(PIECES), max_size=4).map(b"".join), st.booleans()),
    max_size=6,
)
"""What is written, and whether the writer then waits until all of it was seen."""


@settings(untimed, max_examples=40)
@given(steps, st.integers(0, 10))
def test_the_chunks_in_a_row_are_the_file(tmp_path_factory, writes, offset):
    log = tmp_path_factory.mktemp("follow") / "0" / "pod" / "node.log"
    content = b"".join(data for data, _ in writes)

    async def main(hub):
        done, got = asyncio.Event(), []
        reading = asyncio.create_task(collect(hub.follow(log, offset, done=done), got))
        writer, written = Writer(log), b""
        for data, waits in writes:
            writer(data)
            written += data
            seen = len(written[offset : whole_characters(written)])
            while waits and sum(len(chunk.data) for chunk in got) < seen:
                await asyncio.sleep(0)
        writer.close()
        done.set()
        return await reading, got

    whole, chunks = run(main)

    # An offset behind the end means that the log is another one: it is read from its start.
    start = offset if offset <= len(content) else 0
    assert whole == content[start:]
    assert "".join(chunk.text for chunk in chunks) == content[start:].decode("utf-8", "replace")
    places = [chunk.offset for chunk in chunks]
    assert places == [start + sum(len(c.data) for c in chunks[:n]) for n in range(len(chunks))]


@settings(untimed, max_examples=40)
@given(
    st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join),
    st.lists(st.integers(1, 4), max_size=5),
)
def test_a_reader_that_leaves_and_comes_back_loses_and_repeats_nothing(
    tmp_path_factory, content, stays
):
    log = tmp_path_factory.mktemp("resume") / "node.log"
    half = len(content) // 2

    async def main(hub):
        writer = Writer(log)
        writer(content[:half])
        got = b""
        for stay in stays:
            async with aclosing(hub.follow(log, len(got), done=lambda: True)) as chunks:
                async for chunk in chunks:
                    got += chunk.data
                    stay -= 1
                    if not stay:
                        break
        writer(content[half:])
        writer.close()
        return got + await collect(hub.follow(log, len(got), done=lambda: True), [])

    assert run(main) == content


def test_a_character_that_comes_in_parts_is_not_shown_in_parts(log):
    text = "aé한🙂"

    async def main(hub):
        writer, got = Writer(log), []
        reading = asyncio.create_task(collect(hub.follow(log), got))
        for number, byte in enumerate(text.encode(), 1):
            writer(bytes([byte]))
            # Quiet again: it has looked at this byte.
            while watches() or sum(len(c.data) for c in got) < whole_characters(
                text.encode()[:number]
            ):
                await asyncio.sleep(0)
            while not watches():
                await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait([reading])
        writer.close()
        return [chunk.text for chunk in got]

    assert run(main) == list(text)


def test_lines_come_as_they_are_shown_and_can_be_resumed(log):
    content = b"start\n" + b"".join(b"\r%d%%" % n for n in range(101)) + b"\nlast\r\nhalf"

    async def main(hub):
        writer, shown, where = Writer(log), {}, 0
        for place in range(0, len(content), 7):
            writer(content[place : place + 7])
            # Each reader stays for one batch, then another one goes on where it stopped.
            async with aclosing(hub.follow_lines(log, where)) as batches:
                async for lines in batches:
                    shown |= {line.offset: line for line in lines}
                    where = lines[-1].resume
                    break
        writer.close()
        async for lines in hub.follow_lines(log, where, done=lambda: True):
            shown |= {line.offset: line for line in lines}
        return shown

    shown = run(main)

    assert [shown[place].data for place in sorted(shown)] == [
        as_shown(line) for line in lines_of(content)
    ]
    assert [shown[place].ended for place in sorted(shown)] == [True, True, True, False]


def test_a_progress_bar_is_live_and_does_not_flood(log):
    async def main(hub):
        writer, updates, done = Writer(log), [], asyncio.Event()

        async def read():
            async for lines in hub.follow_lines(log, done=done):
                updates.extend(lines)

        reading = asyncio.create_task(read())
        for number in range(20_000):
            writer(b"\r%d of 20000" % number)
            if number % 1000 == 0:
                await asyncio.sleep(0)
        while not updates or updates[-1].data != b"19999 of 20000":
            await asyncio.sleep(0)
        live = len(updates)
        writer(b"\n")
        done.set()
        await reading
        writer.close()
        return live, updates

    live, updates = run(main)

    assert 1 <= live <= 500
    assert {line.offset for line in updates} == {0}
    assert [line.ended for line in updates[-1:]] == [True]
    assert updates[-1].data == b"19999 of 20000"


def test_an_event_loop_with_a_quiet_log_does_nothing(log):
    Writer(log)(b"hello\n")

    async def main(hub):
        got = []
        reading = asyncio.create_task(collect(hub.follow(log), got))
        while not got or watches() == 0:
            await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        timers = [handle for handle in loop._scheduled if not handle.cancelled()]
        reading.cancel()
        await asyncio.wait([reading])
        return timers

    timers = run(main)

    assert len(timers) == 1  # the limit of the test itself
    assert watches() == 0


def test_a_thousand_followers_share_one_file_and_one_watch(log):
    writer = Writer(log)

    async def main(hub):
        done = asyncio.Event()
        got = [[] for _ in range(1000)]
        readers = [asyncio.create_task(collect(hub.follow(log, done=done), each)) for each in got]
        for number in range(20):
            writer(b"line %d\n" % number * 100)
            while any(not each or each[-1].end < log.stat().st_size for each in got):
                await asyncio.sleep(0)
        while watches() == 0:
            await asyncio.sleep(0)
        shared = open_files(log) - 1, watches()
        done.set()
        return shared, got, [await reader for reader in readers]

    shared, got, contents = run(main)
    writer.close()

    assert shared == (1, 1)
    objects = {(chunk.offset, id(chunk.data)) for each in got for chunk in each}
    assert len(objects) == len({offset for offset, _ in objects})  # the same bytes for all
    assert all(content == log.read_bytes() for content in contents)
    assert open_files(log) == watches() == 0


def test_a_slow_reader_gets_everything_in_bounded_chunks(log):
    writer = Writer(log)
    content = b"0123456789abcde\n" * 65536

    async def main(hub):
        sizes, got = [], b""
        writer(content[:10])
        async with aclosing(hub.follow(log, done=lambda: len(got) == len(content))) as chunks:
            async for chunk in chunks:
                if not got:
                    writer(content[10:])  # all of it while the reader is busy
                sizes.append(len(chunk.data))
                got += chunk.data
        return sizes, got

    sizes, got = run(main)
    writer.close()

    assert got == content
    assert max(sizes) <= 1 << 16


def test_an_abandoned_follower_leaves_nothing_behind(log):
    writer = Writer(log)
    writer(b"hello\n")

    async def main(hub):
        before = len(asyncio.all_tasks())
        for round_ in range(20):
            done = asyncio.Event()
            readers = [
                asyncio.create_task(collect(hub.follow(log, done=done), [])) for _ in range(10)
            ]
            while round_ % 2 and open_files(log) < 2:
                await asyncio.sleep(0)
            for reader in readers:
                reader.cancel()
            await asyncio.wait(readers)
        await asyncio.sleep(0)
        return len(asyncio.all_tasks()) - before

    assert run(main) == 0
    writer.close()
    assert open_files(log) == watches() == 0


def test_a_read_may_be_cancelled_and_tried_again(log):
    writer = Writer(log)

    async def main(hub):
        got = b""
        with hub.follower(log) as follower:
            for number in range(50):
                waiting = asyncio.ensure_future(follower.read())
                for _ in range(number % 4):
                    await asyncio.sleep(0)
                writer(b"%d\n" % number)
                if waiting.cancel():
                    await asyncio.wait([waiting])
                if not waiting.cancelled():
                    got += waiting.result().data
            while len(got) < log.stat().st_size:
                got += (await follower.read()).data
        return got

    assert run(main) == log.read_bytes()
    writer.close()


def test_a_deleted_log_ends_with_what_was_in_it(log):
    writer = Writer(log)
    writer(b"first\n")

    async def main(hub):
        got = []
        reading = asyncio.create_task(collect(hub.follow(log), got))
        while not got:
            await asyncio.sleep(0)
        writer(b"last \xe0")
        log.unlink()
        return await reading

    assert run(main) == b"first\nlast \xe0"
    writer.close()


def test_a_log_that_its_own_process_cut_off_goes_on_from_its_start(log):
    writer = Writer(log)
    writer(b"a long first line\n")

    async def main(hub):
        got = []
        reading = asyncio.create_task(collect(hub.follow(log), got))
        while not got:
            await asyncio.sleep(0)
        os.truncate(log, 0)
        writer(b"new\n")
        while len(got) < 2:
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait([reading])
        return got

    assert run(main) == [Chunk(0, b"a long first line\n"), Chunk(0, b"new\n")]
    writer.close()


def test_a_log_that_may_not_be_read_is_an_error_for_its_reader_alone(tmp_path):
    good, loop = tmp_path / "good.log", tmp_path / "loop" / "node.log"
    loop.parent.symlink_to("loop")  # ELOOP also for root, whom no permission stops
    good.write_bytes(b"fine\n")

    async def main(hub):
        with pytest.raises(OSError, match="symbolic links"):
            await collect(hub.follow(loop), [])
        return await collect(hub.follow(good, done=lambda: True), [])

    assert run(main) == b"fine\n"


def test_the_end_is_told_by_a_function_and_the_paths_that_make_it_true(tmp_path):
    log, ended = tmp_path / "logs" / "node.log", tmp_path / "state" / "exit-code"
    writer = Writer(log)
    writer(b"all of it\n")

    async def main(hub):
        got = []
        reading = asyncio.create_task(
            collect(hub.follow(log, done=ended.exists, watch=[ended]), got)
        )
        while not got:
            await asyncio.sleep(0)
        ended.parent.mkdir()
        ended.write_text("0")
        return await reading

    assert run(main) == b"all of it\n"
    writer.close()


def test_the_last_bytes_before_the_end_are_not_lost(log):
    """The container writes, ends, and its end is reported before anybody has read."""

    async def main(hub):
        for number in range(30):
            done, got = asyncio.Event(), []
            path = log.with_name(f"{number}.log")
            reading = asyncio.create_task(collect(hub.follow(path, done=done), got))
            for _ in range(number % 5):
                await asyncio.sleep(0)
            writer = Writer(path)
            writer(b"last words \xf0\x9f")
            writer.close()
            done.set()
            assert await reading == b"last words \xf0\x9f"

    run(main)


def test_the_command_line_follows_without_a_loop(tmp_path):
    log, ended = tmp_path / "0" / "pod" / "node.log", tmp_path / "exit-code"
    content = [b"line %d \xf0\x9f\x99\x82\n" % number for number in range(2000)]
    may_end = threading.Event()

    def write():
        writer = Writer(log)
        for data in content:
            writer(data[:9])
            writer(data[9:])
        writer.close()
        may_end.wait(LIMIT)
        ended.touch()

    thread = threading.Thread(target=write)
    thread.start()
    got = b""
    for chunk in follow_sync.follow(log, done=ended.exists, watch=[tmp_path]):
        assert chunk.offset == len(got)
        chunk.data.decode()
        got += chunk.data
        if len(got) == sum(map(len, content)):
            may_end.set()
    thread.join()

    assert got == b"".join(content)
    assert open_files(log) == watches() == 0


def test_the_command_line_shows_lines(log):
    log.write_bytes(b"one\n\r1%\r2%")

    batches = list(follow_sync.follow_lines(log, done=lambda: True))

    assert [(line.data, line.ended) for lines in batches for line in lines] == [
        (b"one", True), (b"2%", False),
    ]  # fmt: skip
