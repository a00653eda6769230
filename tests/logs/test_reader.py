"""What is read from a log, compared with the plain meaning of its whole content."""

from __future__ import annotations

import os
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.logs.contents import as_shown, big, ends_of, lines_of, small, untimed

from astrago_trainer.logs.line_index import LineIndex
from astrago_trainer.logs.reader import LogFile
from astrago_trainer.logs.view import View


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("reader") / "node.log"


def of(path, content: bytes, **options) -> LogFile:
    path.write_bytes(content)
    return LogFile(path, **options)


@untimed
@given(big, st.integers(0, 12))
def test_the_tail_is_the_end_of_the_whole(scratch, content, count):
    log = of(scratch, content)
    expected = b"".join(ends_of(content)[-count:] if count else [])

    assert log.tail(count) == (len(content) - len(expected), expected)
    assert log.tail_offset(count) == len(content) - len(expected)
    shown = [as_shown(line) for line in (lines_of(content)[-count:] if count else [])]
    assert [line.data for line in log.tail_lines(count)] == shown


@untimed
@given(small, st.integers(1, 30), st.integers(4, 60))
def test_a_limited_tail_begins_with_a_line_or_at_least_a_character(scratch, content, count, limit):
    offset, data = of(scratch, content).tail(count, limit=limit)

    assert content[offset:] == data
    assert len(data) <= limit
    full = b"".join(ends_of(content)[-count:])
    if len(full) <= limit:
        assert data == full
    elif offset and content[offset - 1 : offset] != b"\n":  # one line alone is too long
        assert b"\n" not in data[:-1]
        assert limit - 3 <= len(data)


@settings(untimed, max_examples=40)
@given(big, st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), max_size=5), st.booleans())
def test_lines_by_number_are_those_of_the_whole(scratch, content, questions, raw):
    log = of(scratch, content)
    expected = lines_of(content)
    middle = max(0, len(expected) - 3)
    for first, count in [*questions, (middle, 5), (len(expected), 1)]:
        lines = list(log.lines(first, count, raw=raw))
        wanted = expected[first : first + count]
        assert [line.data for line in lines] == (wanted if raw else [as_shown(w) for w in wanted])
        assert [log.line_number(line.offset) for line in lines] == list(
            range(first, first + len(lines))
        )
    assert log.line_count() == len(expected)


@untimed
@given(big, st.integers(0, 140_000), st.integers(1000, 70_000))
def test_reading_on_gives_the_whole_without_cutting_characters(scratch, content, offset, limit):
    log = of(scratch, content)
    got = b""
    while chunk := log.read(offset + len(got), limit).data:
        assert len(chunk) <= limit
        got += chunk

    assert got == content[offset:]
    assert b"".join(log.iter_bytes(offset, block=limit)) == content[offset:]
    assert b"".join(log.iter_bytes(offset, offset + limit)) == content[offset : offset + limit]


def test_a_chunk_ends_with_a_whole_character(log):
    text = "한" * 30_000
    file = of(log, text.encode())

    assert [len(file.read(0, limit).data) % 3 for limit in (65536, 65535, 65534, 4)] == [0] * 4
    assert (
        file.read(0, 2).data == "한".encode()[:2]
    )  # no room for a character: bytes, or it would never end


def test_lines_from_an_offset(log):
    file = of(log, b"one\ntwo\nthree")

    assert [(line.offset, line.data) for line in file.lines_from(4)] == [(4, b"two"), (8, b"three")]
    assert [line.data for line in file.lines_from(0, 6)] == [b"one", b"tw"]


def test_a_missing_log_is_empty(log):
    file = LogFile(log)

    assert (file.size, file.line_count(), file.line_number(5)) == (0, 0, 0)
    assert file.tail(10) == file.read(0) == (0, b"")
    assert [*file.iter_bytes(), *file.lines(0, 9), *file.tail_lines(9), *file.lines_from(0)] == []
    assert file.offset_at(1e9) == 0
    assert file.time_at(0) is None
    assert file.search("x").hits == ()


def test_a_log_may_appear_and_grow_while_it_is_known(log):
    file = LogFile(log)
    assert file.line_count() == 0
    content = b""
    for number in range(6):
        content += b"line %d\n" % number * 9_000 + b"half"
        log.write_bytes(content)
        assert file.line_count() == len(lines_of(content))
        last = len(lines_of(content)) - 1
        assert [line.data for line in file.lines(last, 2)] == [b"half"]
        assert file.line_number(len(content) - 1) == last


def test_what_comes_while_it_is_read_is_left_for_the_next_call(log):
    file = of(log, b"a\n" * 100_000)
    with log.open("ab", buffering=0) as more:
        taken = 0
        for block in file.iter_bytes(block=1000):
            more.write(b"b" * 1000)
            taken += len(block)
        lines = 0
        for _ in file.lines(0, 10**9):
            if lines % 1000 == 0:
                more.write(b"c\n")
            lines += 1

    assert taken == 200_000
    assert lines == 100_001


def test_a_log_that_is_cut_off_while_it_is_read_ends(log):
    file = of(log, b"0123456789\n" * 50_000)
    assert file.line_count() == 50_000
    blocks = file.iter_bytes(block=11)
    next(blocks)
    lines = file.lines(0, 10**9)
    next(lines)
    os.truncate(log, 22)

    assert b"".join(blocks) == b"0123456789\n"
    assert len(list(lines)) < 50_000
    assert file.line_count() == 2
    assert [line.data for line in file.lines(0, 9)] == [b"0123456789"] * 2


def test_another_file_in_its_place_is_counted_anew(log, tmp_path):
    file = of(log, b"a\n" * 100_000)
    assert file.line_count() == 100_000
    (tmp_path / "new").write_bytes(b"b\nb\n" * 100_000)
    (tmp_path / "new").replace(log)

    assert file.line_count() == 200_000


def test_a_progress_bar_is_one_line(log):
    bar = b"".join(b"\r%6d of 100000" % number for number in range(100_000))
    file = of(log, b"begin\n" + bar + b"\nend\n")

    assert file.line_count() == 3
    assert [line.data for line in file.lines(0, 9)] == [b"begin", b" 99999 of 100000", b"end"]
    assert [line.data for line in file.tail_lines(2)] == [b" 99999 of 100000", b"end"]
    (raw,) = file.lines(1, 1, raw=True)
    assert (len(raw.data), raw.cut) == (1 << 20, True)


def test_a_limited_tail_of_lines_shows_the_last_state_of_a_long_bar(log):
    file = of(log, b"x" * 100_000 + b"\r 99%\r100%\ndone\n")

    assert [line.data for line in file.tail_lines(5, limit=1000)] == [b"100%", b"done"]


def test_a_long_line_is_cut_in_lines_and_whole_in_bytes(log):
    file = of(log, b"x" * 3_000_000 + b"\nshort\n")
    long, short = file.lines(0, 5)

    assert (len(long.data), long.cut, long.end, short.data) == (1 << 20, True, 3_000_001, b"short")
    assert sum(map(len, file.iter_bytes())) == 3_000_007
    assert len(file.tail(2, limit=1000).data) <= 1000


def test_an_index_that_counted_further_still_answers_for_less(log):
    log.write_bytes(b"a\n" * 100_000)
    index = LineIndex()
    with log.open("rb") as file:
        answers = [
            index.newlines(View(file.fileno()), size) for size in (200_000, 7, 131_072, 200_000)
        ]

    assert answers == [100_000, 3, 65_536, 100_000]


@settings(untimed, max_examples=20)
@given(big)
def test_threads_may_share_a_log(scratch, content):
    log = of(scratch, content)
    counts = []
    threads = [threading.Thread(target=lambda: counts.append(log.line_count())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert counts == [len(lines_of(content))] * 4
