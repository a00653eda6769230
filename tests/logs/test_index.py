"""The index of times: when it is written, what is read from it, and that damage to it only makes answers coarser."""

from __future__ import annotations

import os
import resource
import signal
from bisect import bisect_right
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.logs.contents import untimed
from tests.logs.supervised import Supervised

from astrago_trainer.logs.index import EVERY_BYTES, MAGIC, RECORD, Mark, TimeIndex, read_marks
from astrago_trainer.logs.indexer import Indexer
from astrago_trainer.logs.layout import index_path
from astrago_trainer.logs.reader import LogFile
from astrago_trainer.logs.watch import TICK

LINE = b"0123456789abcde\n"


def append(log, data):
    with log.open("ab") as file:
        file.write(data)


def marks(log):
    fd = os.open(index_path(log), os.O_RDONLY)
    try:
        return read_marks(fd, 0, 100_000)
    finally:
        os.close(fd)


def index_of(log, *records):
    index_path(log).write_bytes(
        MAGIC + b"".join(RECORD.pack(int(time * 1e9), offset) for time, offset in records)
    )


def test_the_first_bytes_after_a_silence_are_recorded_at_once(log):
    indexer = Indexer(log)
    assert indexer.note(100.0) is None
    append(log, LINE)

    assert indexer.note(100.5) == pytest.approx(TICK)
    assert marks(log) == [Mark(100.5, 16)]
    assert indexer.note(100.52) is None


def test_slow_output_has_a_record_a_second_and_asks_to_be_called_for_it(log):
    indexer = Indexer(log)
    now, wakes = 100.0, 0
    for _ in range(50):  # ten seconds with five lines each
        append(log, LINE)
        until = now + 0.2
        pause = indexer.note(now)
        while pause is not None and now + pause < until:
            now += pause
            wakes += 1
            pause = indexer.note(now)
        now = until

    times = [mark.time for mark in marks(log)]
    assert 10 <= len(times) <= 12
    assert max(b - a for a, b in pairwise(times)) <= 1.2
    assert wakes <= 60


def test_fast_output_has_a_record_per_64_kib_and_few_calls(log):
    indexer = Indexer(log)
    now, calls, written = 100.0, 0, 0
    while now < 110.0:  # 1 MB a second, as the pauses ask for
        target = int((now - 100.0) * 1_000_000)
        append(log, b"x" * (target - written))
        written = target
        now += indexer.note(now) or TICK
        calls += 1

    records = len(marks(log))
    assert records >= 0.7 * written / EVERY_BYTES
    assert records <= calls <= 250
    steps = [b.offset - a.offset for a, b in pairwise(marks(log))]
    assert sorted(steps)[len(steps) // 2] <= 2 * EVERY_BYTES


def test_the_end_is_recorded_when_the_container_ended(log):
    indexer = Indexer(log)
    append(log, LINE)
    indexer.note(100.0)
    append(log, LINE)
    indexer.finish(100.1)

    assert marks(log) == [Mark(100.0, 16), Mark(100.1, 32)]


def test_a_restarted_supervisor_continues_the_index(log):
    append(log, LINE)
    first = Indexer(log)
    first.note(100.0)
    append(log, LINE)
    second = Indexer(log)
    second.note(105.0)

    assert marks(log) == [Mark(100.0, 16), Mark(105.0, 32)]


def test_a_torn_record_is_ignored_and_written_over(log):
    append(log, LINE * 4)
    index_of(log, (100.0, 16), (101.0, 32))
    with index_path(log).open("ab") as file:
        file.write(RECORD.pack(int(102e9), 48)[:7])

    assert LogFile(log).offset_at(101.5) == 32
    Indexer(log).note(103.0)
    assert marks(log) == [Mark(100.0, 16), Mark(101.0, 32), Mark(103.0, 64)]


@pytest.mark.parametrize(
    "damage",
    [b"", b"short", b"another format.." + RECORD.pack(1, 1), MAGIC, MAGIC + bytes(64)],
    ids=["empty", "short", "foreign", "header alone", "zeros"],
)
def test_an_index_that_says_nothing_counts_as_missing(log, damage):
    append(log, LINE * 2)
    os.utime(log, (200.0, 200.0))
    index_path(log).write_bytes(damage)

    assert LogFile(log).offset_at(100.0) == 0
    assert LogFile(log).offset_at(201.0) == 32
    assert LogFile(log).time_at(16) is None
    Indexer(log).note(300.0)
    assert marks(log) == [Mark(300.0, 32)]


def test_records_of_bytes_that_a_power_loss_took_are_left_out(log):
    append(log, LINE * 2)
    index_of(log, (100.0, 16), (101.0, 32), (102.0, 480))

    assert LogFile(log).time_at(32) == pytest.approx(101.0)
    Indexer(log).note(103.0)
    assert marks(log) == [Mark(100.0, 16), Mark(101.0, 32)]


def test_a_log_that_its_own_process_cut_off_is_indexed_anew(log):
    append(log, LINE * 4)
    indexer = Indexer(log)
    indexer.note(100.0)
    log.write_bytes(LINE)
    indexer.note(102.0)

    assert marks(log) == [Mark(102.0, 16)]


def test_a_clock_that_is_set_back_neither_stops_the_index_nor_disorders_it(log):
    indexer = Indexer(log)
    for now in (5000.0, 1400.0, 1401.5, 1403.0, 5002.0):
        append(log, LINE)
        indexer.note(now)

    times = [mark.time for mark in marks(log)]
    assert times == [5000.0] * 4 + [5002.0]


def test_a_full_disk_costs_records_and_nothing_else(log):
    """A limit on the size of files stands for the disk: the same errors, without root."""
    indexer = Indexer(log)
    append(log, LINE)
    indexer.note(100.0)
    append(log, LINE)
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40, old[1]))  # header, one record and a half
        assert indexer.note(102.0) is not None
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    assert LogFile(log).time_at(16) == pytest.approx(100.0)
    indexer.note(104.0)

    assert indexer.trouble is None
    assert marks(log) == [Mark(100.0, 16), Mark(104.0, 32)]


def test_an_index_that_cannot_be_made_is_made_later(log):
    index_path(log).mkdir()
    indexer = Indexer(log)
    append(log, LINE)
    assert indexer.note(100.0) is not None
    assert isinstance(indexer.trouble, IsADirectoryError)
    index_path(log).rmdir()
    indexer.note(101.0)
    indexer.finish(102.0)

    assert indexer.trouble is None
    assert marks(log) == [Mark(101.0, 16)]


@untimed
@given(
    st.lists(st.tuples(st.integers(1, 3000), st.integers(1, 20)), min_size=1, max_size=20),
    st.integers(-500, 60_000),
)
def test_everything_written_since_a_time_is_found_and_little_more(tmp_path_factory, writes, since):
    """Milliseconds between writes and lines in each."""
    log = tmp_path_factory.mktemp("since") / "node.log"
    supervised = Supervised([log])
    written, history = 0, []
    for pause, lines in writes:
        supervised.wait(pause / 1000)
        supervised.write(log, LINE * lines)
        written += 16 * lines
        history.append((supervised.now, written))
    supervised.finish()
    time = 1000.0 + since / 1000

    offset = LogFile(log).offset_at(time)

    late = bisect_right(history, time, key=lambda entry: entry[0])
    first_late = history[late - 1][1] if late else 0
    assert offset <= first_late
    early = [when for when, end in history if offset < end <= first_late]
    assert all(time - when <= 1.0 + 1e-6 for when in early)


def test_since_begins_with_a_whole_line(log):
    append(log, b"first\nsecond half")
    index_of(log, (100.0, 10))

    assert LogFile(log).offset_at(100.5) == 6


def test_steady_output_is_spread_over_the_second_and_a_burst_is_not(log):
    append(log, LINE * 30)
    index_of(log, (100.0, 160), (101.0, 320), (160.0, 480))
    log_file = LogFile(log)

    assert [log_file.time_at(end) for end in (16, 160, 240, 320, 336, 480)] == pytest.approx(
        [100.0, 100.0, 100.5, 101.0, 160.0, 160.0]
    )


def test_a_cursor_reads_a_long_index_in_windows(log):
    count = 10_000
    append(log, b"x" * count)
    index_of(log, *((100.0 + number, number + 1) for number in range(count)))
    cursor = TimeIndex(log).cursor(count)

    assert [cursor.time_at(number + 1) for number in range(count)] == pytest.approx(
        [100.0 + number for number in range(count)]
    )
    assert cursor.time_at(count + 1) is None
