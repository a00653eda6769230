"""A log over its limit keeps its beginning and its end, says what was dropped, and every reader goes on."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import pytest

from astrago_trainer.logs import gap as gaps
from astrago_trainer.logs import limits
from astrago_trainer.logs.feed import CHUNK
from astrago_trainer.logs.follow import LogHub
from astrago_trainer.logs.gap import Cap, read_gap, trim
from astrago_trainer.logs.layout import gap_path, index_path
from astrago_trainer.logs.limits import LEAST_LOG_BYTES, LogLimits
from astrago_trainer.logs.merged import Source, merged
from astrago_trainer.logs.numbered import LineIndexes, NumberedLogs
from astrago_trainer.logs.reader import LogFile
from astrago_trainer.logs.share import shrink
from astrago_trainer.logs.view import View, opened
from astrago_trainer.logs.writer import LogWriter

MIB = 1 << 20
LIMIT = 4 * MIB


def a_line(number: int) -> bytes:
    return b"line %09d of a log that does not end, and says little in many words\n" % number


def lines(first: int, count: int) -> bytes:
    return b"".join(map(a_line, range(first, first + count)))


WIDTH = len(a_line(0))


def used(path: Path) -> int:
    return path.stat().st_blocks * 512


def flooded(log: Path, count: int, limit: int = LIMIT) -> int:
    """A log of so many lines that was kept below its limit; the offset at which it ends."""
    cap = Cap(log, limit)
    with log.open("ab", buffering=0) as file:
        for first in range(0, count, 1000):
            file.write(lines(first, min(1000, count - first)))
            cap.apply(os.fstat(file.fileno()).st_size)
            assert used(log) <= limit + 1000 * WIDTH + 8192
    return log.stat().st_size


def test_a_log_over_its_limit_keeps_its_beginning_and_its_end_at_their_offsets(log):
    count = 1_000_000
    end = flooded(log, count)
    gap = read_gap(log)

    assert end == count * WIDTH, "offsets go on"
    assert used(log) <= LIMIT
    text = b"".join(LogFile(log).iter_bytes())
    first, marker, *rest = (
        text.partition(b"[astrago: ")[0],
        *text.splitlines()[gap.marker // WIDTH : gap.marker // WIDTH + 1],
    )
    assert first == lines(0, gap.marker // WIDTH)
    assert f"{gap.bytes} bytes in {gap.lines} lines were dropped here".encode() in marker
    kept = (end - gap.end) // WIDTH
    assert text.endswith(b"\n" + lines(count - kept, kept))
    assert gap.bytes == gap.lines * WIDTH
    assert gap.marker // WIDTH + gap.lines + kept == count, "every line is there or is counted"
    assert not rest


def test_every_reader_skips_what_was_dropped_and_shows_how_much(log):
    end = flooded(log, 200_000)
    gap, file = read_gap(log), LogFile(log)
    kept = (end - gap.end) // WIDTH
    head = gap.marker // WIDTH

    assert file.line_count() == head + 1 + kept
    shown = list(file.lines(head - 1, 3))
    assert [line.offset for line in shown] == [gap.marker - WIDTH, gap.marker, gap.end]
    assert shown[1].dropped == (gap.bytes, gap.lines)
    assert shown[1].resume == gap.end
    assert [line.dropped for line in shown[::2]] == [None, None]
    assert [line.text for line in file.tail_lines(kept + 2)][:2] == [
        a_line(head - 1).decode().rstrip("\n"),
        shown[1].text,
    ]
    assert file.tail_offset(kept) == gap.end
    assert file.line_number(gap.end) == head + 1
    (hit,) = file.search("line 000199999").hits
    assert hit.line.offset == end - WIDTH
    (hit,) = file.search(r"line 000199999 o\w", before=1).hits
    assert (hit.line.offset, hit.before[0].offset) == (end - WIDTH, end - 2 * WIDTH)
    assert file.search(f"line {head + 1:09d}").hits == ()
    length, parts = file.download(0, end)
    assert length == sum(map(len, parts)) == gap.start + end - gap.end
    together = [each.line for each in merged([Source("pod", "node", log)])]
    assert together == list(file.lines_from(0))
    with opened(log) as view:
        assert view.length == length


def test_windows_by_number_count_what_is_left(log):
    end = flooded(log, 200_000)
    gap = read_gap(log)
    total = gap.marker // WIDTH + 1 + (end - gap.end) // WIDTH
    with NumberedLogs([log], LineIndexes(), [None], is_over=True) as numbered:
        assert numbered.total == total
        assert numbered.logs[0].stop == end
        found = list(numbered.lines(gap.marker // WIDTH, 2))
        assert [each.line.offset for each in found] == [gap.marker, gap.end]
        assert found[0].line.dropped == (gap.bytes, gap.lines)
        assert numbered.number_of(0, end - WIDTH) == total - 1


@pytest.mark.parametrize("overtaken", [False, True])
def test_a_follower_goes_on_behind_what_was_dropped(log, overtaken):
    """From its beginning, and from a place that was dropped while it was away."""
    end = flooded(log, 100_000)
    gap = read_gap(log)
    start = (gap.start + gap.end) // 2 if overtaken else 0

    async def scenario():
        hub, done = LogHub(), asyncio.Event()
        done.set()
        try:
            return [
                line
                async for batch in hub.follow_lines(log, start, done=done)
                for line in batch
                if line.ended
            ]
        finally:
            hub.close()

    found = asyncio.run(scenario())
    head = 0 if overtaken else gap.marker // WIDTH
    assert found[head].dropped == (gap.bytes, gap.lines)
    assert found[head].offset == gap.marker
    assert [line.offset for line in found[head + 1 :]] == list(range(gap.end, end, WIDTH))
    assert len(found) == head + 1 + (end - gap.end) // WIDTH


def test_a_slow_follower_is_overtaken_again_and_again_and_sees_no_zeros(log):
    cap, number = Cap(log, LIMIT), 0

    async def scenario():
        nonlocal number
        hub, seen, marks = LogHub(), [], 0
        try:
            with log.open("ab", buffering=0) as file, hub.follower(log) as follower:
                for _ in range(40):
                    file.write(lines(number, 8000))
                    number += 8000
                    cap.apply(os.fstat(file.fileno()).st_size)
                    chunk = await follower.read()
                    marks += chunk.dropped is not None
                    seen.append(chunk)
        finally:
            hub.close()
        return seen, marks

    seen, marks = asyncio.run(scenario())
    assert not any(b"\0" in chunk.data for chunk in seen)
    assert marks >= 1
    assert all(len(chunk.data) <= CHUNK for chunk in seen)


def test_bytes_that_are_dropped_while_they_are_read_are_not_taken_for_zeros(log):
    log.write_bytes(lines(0, 50_000))
    fd = os.open(log, os.O_RDONLY)
    try:
        view = View(fd, None, log)
        assert view.pread(100, MIB)
        trim(log, LEAST_LOG_BYTES, LEAST_LOG_BYTES)
        assert view.pread(100, MIB) == b"", "as the end of the log"
        assert view.pread(100, 0) == lines(0, 2)[:100]
        assert set(view.unchecked().pread(100, MIB)) == {0}
    finally:
        os.close(fd)


def test_a_line_without_an_end_is_dropped_in_its_middle(log):
    log.write_bytes(b"x" * (8 * MIB))
    trim(log, MIB, MIB)
    first, marker, last = LogFile(log).lines_from(0)

    assert (len(first.data), first.end) == (MIB, MIB + 1)
    assert marker.dropped == (7 * MIB - MIB - 1, 0)
    assert (len(last.data), last.end) == (MIB, 8 * MIB)
    assert used(log) <= 2 * MIB + 8192


def test_the_index_stays_small_and_knows_the_times_of_what_is_left(log):
    writer = LogWriter(log, sync_every=None, limits=LogLimits(log=LIMIT, reserve=0))
    for number in range(0, 400_000, 1000):
        writer.append(lines(number, 1000), 1000.0 + number)
    writer.close()
    file = LogFile(log)

    assert used(log) <= LIMIT
    assert index_path(log).stat().st_size <= 16 * (LIMIT // 32768 + 2)
    assert file.offset_at(1000.0 + 399_000) >= file.size - 2000 * WIDTH
    assert file.offset_at(900.0) == 0
    times = [each.time for each in merged([Source("pod", "node", log)])]
    assert times == sorted(times)
    assert times[-1] == 1000.0 + 399_000


def test_a_log_from_the_network_is_gone_on_with_after_a_drop(log):
    small = LogLimits(log=LIMIT, reserve=0)
    for life in range(3):
        writer = LogWriter(log, sync_every=0.0, limits=small)
        assert writer.token == (b"%d" % life if life else b"")
        writer.append(lines(life * 100_000, 100_000), 1000.0 + life, b"%d" % (life + 1))
        writer.close()
    gap = read_gap(log)
    kept = (LogFile(log).size - gap.end) // WIDTH

    assert LogFile(log).size == 300_000 * WIDTH
    assert gap.marker // WIDTH + gap.lines + kept == 300_000


def test_a_disk_below_its_reserve_takes_no_log_from_the_network(log, monkeypatch):
    free = 1000
    monkeypatch.setattr(limits, "disk_of", lambda _: limits.Disk(100_000, free))
    writer = LogWriter(log, limits=LogLimits(reserve=1 << 60))
    with pytest.raises(OSError, match="ASTRAGO_DISK_RESERVE_BYTES") as error:
        writer.append(b"text\n", 1000.0)
    free = 5005  # 5 % of the disk, and these bytes
    writer.append(b"text\n", 1000.0)
    writer.close()

    assert error.value.errno == errno.ENOSPC
    assert log.read_bytes() == b"text\n"


def test_a_file_system_that_cannot_free_a_part_of_a_file_keeps_the_beginning(log, monkeypatch):
    def refuse(*_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(gaps, "_punch", refuse)
    writer = LogWriter(log, sync_every=None, limits=LogLimits(log=LIMIT, reserve=0))
    for number in range(0, 200_000, 1000):
        writer.append(lines(number, 1000), 1000.0)
    writer.close()

    assert used(log) <= LIMIT + 1000 * WIDTH + 8192
    *whole, last = log.read_bytes().splitlines(keepends=True)
    assert b"".join(whole) == lines(0, len(whole))
    dropped = (200_000 - len(whole)) * WIDTH
    assert last == b"[astrago: %d bytes were dropped here, the log is over its limit]\n" % dropped
    assert not gap_path(log).exists()


def test_a_record_that_is_broken_is_none(log):
    end = flooded(log, 200_000)
    record = gap_path(log)
    record.write_bytes(record.read_bytes()[:-1] + b"?")

    assert read_gap(log) is None
    assert LogFile(log).size == end


def test_the_logs_of_a_namespace_shrink_from_the_oldest_on(tmp_path):
    logs = [tmp_path / f"job-{number}/logs/0/pod/node.log" for number in range(4)]
    for number, log in enumerate(logs):
        log.parent.mkdir(parents=True)
        log.write_bytes(lines(0, 4 * MIB // WIDTH))
        os.utime(log, (1000 + number, 1000 + number))
    before = sum(map(used, logs))

    assert shrink(str(tmp_path), before) == before, "at its limit, and not over it"
    left = shrink(str(tmp_path), 10 * MIB)

    assert left == sum(map(used, logs)) <= 10 * MIB
    assert [read_gap(log) is not None for log in logs] == [True, True, True, False]
    assert all(used(log) <= MIB + 16384 for log in logs[:2])
    assert LogFile(logs[0]).tail(1).data == a_line(4 * MIB // WIDTH - 1)


def test_a_log_that_shrinks_twice_moves_its_line_and_counts_all(log):
    count = 200_000
    end = flooded(log, count)
    trim(log, 32768, 32768)
    gap = read_gap(log)
    kept = (end - gap.end) // WIDTH

    assert gap.marker <= 32768
    assert gap.lines == count - gap.marker // WIDTH - kept
    assert used(log) <= 65536 + 16384
    assert LogFile(log).line_count() == gap.marker // WIDTH + 1 + kept
