"""Bytes to lines, wherever the stream is cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.logs.contents import as_shown, ends_of, lines_of, small, untimed

from astrago_trainer.logs.lines import (
    Chunk,
    Line,
    LineCutter,
    character_start,
    last_state,
    whole_characters,
)
from astrago_trainer.logs.live import MAX_UPDATE, LiveLines

cuts = st.one_of(st.lists(st.integers(0, 400), max_size=12), st.just(list(range(400))))


def pieces(content: bytes, where: list[int]) -> list[bytes]:
    places = sorted({0, len(content), *(place for place in where if place < len(content))})
    return [content[a:b] for a, b in pairwise(places)]


def cut(content: bytes, where: list[int], **options) -> list[Line]:
    cutter = LineCutter(0, **options)
    lines = [line for piece in pieces(content, where) for line in cutter.feed(piece)]
    assert cutter.position == len(content)
    rest = cutter.rest()
    return [*lines, rest] if rest else lines


@untimed
@given(small, cuts, st.booleans())
def test_lines_are_the_same_wherever_the_stream_is_cut(content, where, raw):
    lines = cut(content, where, raw=raw)

    whole = lines_of(content)
    assert [line.data for line in lines] == (whole if raw else [as_shown(line) for line in whole])
    assert [content[line.offset : line.end] for line in lines] == ends_of(content)
    assert [line.ended for line in lines] == [end.endswith(b"\n") for end in ends_of(content)]
    assert not any(line.cut for line in lines)


@untimed
@given(small, cuts, st.booleans(), st.integers(4, 20))
def test_a_long_line_is_cut_at_a_character(content, where, raw, most):
    for line, whole in zip(
        cut(content, where, raw=raw, max_line=most), lines_of(content), strict=True
    ):
        full = whole if raw else as_shown(whole)
        assert line.cut == (len(full) > most)
        assert full.startswith(line.data)
        assert full.decode("utf-8", "replace").startswith(line.text)
        assert len(line.data) == len(full) if not line.cut else most - 3 <= len(line.data) <= most


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"plain", b"plain"),
        (b"dos\r", b"dos"),
        (b"\r 10%\r 20%", b" 20%"),
        (b" 10%\r 20%\r", b" 20%"),
        (b"gone\r\r", b"gone"),
        (b"\r", b""),
        (b"100%\rdone", b"done"),
    ],
)
def test_the_last_state_of_a_line(line, shown):
    assert last_state(line) == shown


def test_a_progress_bar_is_one_line_and_keeps_little_memory():
    cutter = LineCutter(0)
    for number in range(100_000):
        assert cutter.feed(b"\r%d of 100000" % number) == []

    assert cutter.rest().data == b"99999 of 100000"
    assert [line.data for line in cutter.feed(b"\ndone\n")] == [b"99999 of 100000", b"done"]


@untimed
@given(st.one_of(st.binary(max_size=40), small), cuts)
def test_no_character_is_cut_in_a_stream(content, where):
    text, kept = "", b""
    for piece in pieces(content, where):
        kept += piece
        length = whole_characters(kept)
        assert len(kept) - length <= 3
        text += kept[:length].decode("utf-8", "replace")
        kept = kept[length:]
    text += kept.decode("utf-8", "replace")

    assert text == content.decode("utf-8", "replace")


@untimed
@given(st.text(max_size=20), st.integers(0, 60))
def test_the_start_of_a_character_is_found(text, place):
    data = text.encode()[place:]

    assert text.endswith(data[character_start(data) :].decode())


def test_text_shows_what_is_no_utf8():
    assert Chunk(0, b"a\xffb").text == Line(0, 3, b"a\xffb").text == "a\ufffdb"


def test_live_lines_show_the_newest_state_once_per_chunk():
    live = LiveLines(0)

    shown = live.accept(Chunk(0, b"start\n\r1%\r2%\r3%"), is_behind=False)
    assert [(line.data, line.ended, line.resume) for line in shown] == [
        (b"start", True, 6),
        (b"3%", False, 6),
    ]
    assert live.accept(Chunk(15, b"\r3%"), is_behind=False) == []
    (update,) = live.accept(Chunk(18, b"\r4%"), is_behind=False)
    assert (update.offset, update.data) == (6, b"4%")
    (line,) = live.accept(Chunk(21, b"\rdone\n"), is_behind=False)
    assert (line.offset, line.data, line.ended, line.resume) == (6, b"done", True, 27)
    assert live.finish() == []


def test_live_lines_do_not_show_states_that_are_history():
    live = LiveLines(0)

    assert live.accept(Chunk(0, b"\r1%\r2%"), is_behind=True) == []
    (update,) = live.accept(Chunk(6, b"\r3%"), is_behind=False)
    assert update.data == b"3%"


def test_a_long_line_is_shown_when_it_ends_or_never_will():
    live = LiveLines(0)
    long = b"x" * (MAX_UPDATE + 1)

    assert live.accept(Chunk(0, long), is_behind=False) == []
    assert [line.data for line in live.finish()] == [long]
    assert [line.data for line in live.accept(Chunk(len(long), b"y\n"), is_behind=False)] == [
        long + b"y"
    ]


def test_live_lines_begin_anew_with_the_log():
    live = LiveLines(100)
    live.accept(Chunk(100, b"half a"), is_behind=False)

    assert live.accept(Chunk(0, b"new\n"), is_behind=False) == [Line(0, 4, b"new")]
