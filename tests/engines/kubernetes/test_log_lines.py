"""The kubelet's times are taken off, and following goes on at the byte, wherever it was cut."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from astrago_trainer.engines.kubernetes.log_lines import LogLines, Position


def stamp(second: int, nanos: int = 0) -> bytes:
    return f"2026-01-01T00:00:{second:02d}.{nanos:09d}Z".encode()


@st.composite
def logs(draw) -> list[tuple[bytes, bytes]]:
    """Lines with times that do not decrease; several share one, as a fast program's do."""
    steps = draw(st.lists(st.tuples(st.integers(0, 2), st.binary(max_size=12)), max_size=12))
    found, now = [], 0
    for step, text in steps:
        now += step
        found.append((stamp(now // 3, now % 3), text.replace(b"\n", b"") + b"\n"))
    return found


def answer(log: list[tuple[bytes, bytes]], since: str = "") -> bytes:
    """As the kubelet gives it: from the whole second on."""
    second = since[: len("2026-01-01T00:00:00")].encode()
    return b"".join(when + b" " + text for when, text in log if when[: len(second)] >= second)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in pairwise(places)]


@given(logs(), st.lists(st.integers(0, 500)))
def test_any_pieces_give_the_text(log, cuts):
    lines = LogLines(Position())

    got = b"".join(lines.feed(piece) for piece in pieces(answer(log), cuts))

    assert got == b"".join(text for _, text in log)


@given(logs(), st.integers(0, 500), st.integers(0, 500))
def test_a_cut_anywhere_loses_nothing_and_repeats_nothing(log, first, second):
    kept, position = b"", Position()
    for cut in (first, second, None):
        lines = LogLines(position)
        data = answer(log, position.since)
        kept += lines.feed(data if cut is None else data[: cut % (len(data) + 1)])
        position = lines.position

    assert kept == b"".join(text for _, text in log)


def test_what_the_kubelet_says_itself_is_no_log():
    lines = LogLines(Position())
    data = stamp(1) + b" one\nunable to retrieve container logs for containerd://abc\n"
    assert lines.feed(data) == b"one\n"


def test_a_line_without_end_comes_as_it_is_written():
    lines = LogLines(Position())
    assert lines.feed(stamp(1) + b" 10%") == b"10%"
    assert lines.feed(b"\r20%\n") == b"\r20%\n"
    assert lines.position == Position(stamp(1), len(b"10%\r20%\n"))
