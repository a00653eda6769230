"""Search: the same lines as Python's own `re`, line by line, whatever the pattern; and a pattern cannot hurt."""

from __future__ import annotations

import os
import re
import subprocess
import time
import warnings
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.logs.contents import as_shown, ends_of, lines_of, untimed

from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.logs.matching import (
    SEARCHED,
    matching_lines,
    plain_finder,
    regex_finder,
    within_lines,
)
from astrago_trainer.logs.reader import LogFile
from astrago_trainer.logs.view import View

PIECES = (
    b"\n", b"\n", b"a", b"b", b"ab", b"x\n", b" ", b"12", b"\t", b"-", b"\r", b"]",
    b"^", "é".encode(), "한".encode(), b"\xff",
)  # fmt: skip
contents = st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join)
ATOMS = (
    "a", "b", "ab", ".", r"\s", r"\S", r"\d", r"\D", r"\w", r"\W", r"\b", r"\B", "^", "$", r"\A", r"\Z", "[ab]", "[^a]",
    r"[^\s]", r"[\s-]", r"[^]a]", "[]a]", r"[\t-\r]", r"\n", r"\t", r"\.", "é", "한", "[가-힣]", "(?i:A)", "(a|b)",
    "(?:b|)",
    r"[^\n]", r"\x0a", "(?=b)", "(?!b)", "(?<=a)", r"(a)\1", "(?P<n>b)", r"[\]\-]", "\n", " ", "-", r"\-", "(?s:.)",
)  # fmt: skip
QUANTIFIERS = ("", "", "", "*", "+", "?", "{2}", "{,2}", "*?", "*+", "++")
patterns = st.lists(
    st.builds("{}{}".format, st.sampled_from(ATOMS), st.sampled_from(QUANTIFIERS)), min_size=1, max_size=4
).map("".join)  # fmt: skip


def compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return re.compile(pattern, flags)
        except re.error:
            assume(False)
            raise


def spans(content: bytes, matches, *, raw: bool) -> list[tuple[int, int]]:
    """Start and end of the lines that match, by the plain meaning."""
    found, at = [], 0
    for line, end in zip(lines_of(content), ends_of(content), strict=True):
        if matches(line if raw else as_shown(line)):
            found.append((at, at + len(line)))
        at += len(end)
    return found


def searched(path, content: bytes, finder, *, raw: bool, max_line: int = 1 << 20):
    path.write_bytes(content)
    fd = os.open(path, os.O_RDONLY)
    try:
        frames = list(
            matching_lines(View(fd), (0, len(content)), finder, raw=raw, max_line=max_line)
        )
    finally:
        os.close(fd)
    assert frames[-1] == (len(content), SEARCHED)
    return [frame for frame in frames if frame[1] != SEARCHED]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("search") / "node.log"


@untimed
@given(contents, patterns, st.booleans(), st.booleans())
def test_a_pattern_finds_the_lines_that_re_finds(scratch, content, pattern, raw, ignore_case):
    plain = compiled(pattern, re.IGNORECASE if ignore_case else 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        finder = regex_finder(pattern, ignore_case=ignore_case, raw=raw)

    expected = spans(
        content, lambda line: plain.search(line.decode("utf-8", "surrogateescape")), raw=raw
    )
    assert searched(scratch, content, finder, raw=raw) == expected


@untimed
@given(contents, patterns, st.integers(8, 30))
def test_blocks_do_not_change_what_is_found(scratch, content, pattern, most):
    """A small longest line makes small blocks; only lines below it are compared."""
    assume(all(len(line) <= most for line in lines_of(content)))
    compiled(pattern)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        finder = regex_finder(pattern, ignore_case=False, raw=True)

    assert searched(scratch, content, finder, raw=True, max_line=most) == searched(
        scratch, content, finder, raw=True
    )


@untimed
@given(contents, st.sampled_from(["a", "ab", " ", "한", "x", "\r", "a\n"]), st.booleans())
def test_a_text_finds_the_lines_it_is_in(scratch, content, text, raw):
    needle = text.encode()

    expected = spans(content, lambda line: needle in line, raw=raw)
    assert searched(scratch, content, plain_finder(needle, raw=raw), raw=raw) == expected
    assert (
        searched(scratch, content, plain_finder(needle, raw=raw), raw=raw, max_line=1 << 16)
        == expected
    )


@untimed
@given(contents, st.sampled_from(["a", "ab"]), st.integers(4, 12), st.booleans())
def test_of_a_long_line_as_much_is_searched_as_is_shown(scratch, content, text, most, raw):
    found = searched(scratch, content, plain_finder(text.encode(), raw=raw), raw=raw, max_line=most)

    log = LogFile(scratch, max_line=most)
    shown = [line for line in log.lines_from(0, raw=raw) if text.encode() in line.data]
    assert found == [(line.offset, line.end - line.ended) for line in shown]


@pytest.mark.parametrize(
    ("pattern", "rewritten"),
    [
        (r"loss\s+nan", r"loss[^\S\n]+nan"),
        (r"Epoch [^ ]*", r"Epoch [^\n ]*"),
        (r"[^]x]", r"[^\n\]x]"),
        (r"a(?:b|c)$", r"a(?:b|c)$"),
        ("(?=x)", None),
        (r"a\s*+$", None),
        (r"\Astart", None),
        ("two\nlines", None),
        (r"[\s,]", None),
    ],
)
def test_a_pattern_for_blocks_cannot_reach_over_a_newline(pattern, rewritten):
    assert within_lines(pattern) == rewritten


def numbered(log, count: int) -> LogFile:
    log.write_bytes(b"".join(b"line %d\n" % number for number in range(count)))
    return LogFile(log)


@pytest.mark.parametrize(
    ("pattern", "options"),
    [
        ("line 7", {}),
        ("line 7$", {}),
        ("LINE 7", {"ignore_case": True}),
        ("line 7", {"plain": True}),
    ],
)
def test_all_ways_to_search_give_hits_with_context(log, pattern, options):
    found = numbered(log, 12).search(pattern, before=2, after=1, **options)

    (hit,) = found.hits
    assert [line.data for line in (*hit.before, hit.line, *hit.after)] == [
        b"line 5", b"line 6", b"line 7", b"line 8",
    ]  # fmt: skip
    assert (found.end, found.why) == (log.stat().st_size, "end")


@pytest.mark.parametrize("around", [(0, 0), (1, 0), (0, 2), (3, 3), (100, 100)])
def test_hits_in_a_row_are_what_grep_shows(log, around):
    file = numbered(log, 200)
    before, after = around
    hits = file.search("1[38]", before=before, after=after).hits

    shown = [line.data for hit in hits for line in (*hit.before, hit.line, *hit.after)]
    grep = subprocess.run(
        ["grep", "--no-group-separator", f"-B{before}", f"-A{after}", "1[38]", log],
        capture_output=True, check=True,
    )  # fmt: skip
    assert shown == grep.stdout.splitlines()


def test_a_plain_search_takes_special_characters_as_they_are(log):
    log.write_bytes(b"a.b\naxb\n(((\n")
    file = LogFile(log)

    assert [hit.line.data for hit in file.search("a.b", plain=True).hits] == [b"a.b"]
    assert [hit.line.data for hit in file.search("(((", plain=True).hits] == [b"((("]
    assert [hit.line.data for hit in file.search("A.B", plain=True, ignore_case=True).hits] == [
        b"a.b"
    ]
    assert len(file.search("a.b").hits) == 2


@pytest.mark.parametrize("pattern", ["line", "l.ne"])
def test_a_search_goes_on_where_it_stopped(log, pattern):
    file = numbered(log, 50)
    hits, start = [], 0
    while True:
        found = file.search(pattern, start=start, max_hits=7)
        hits += found.hits
        if found.why == "end":
            break
        assert found.why == "hits"
        start = found.end

    assert [hit.line.data for hit in hits] == [b"line %d" % number for number in range(50)]


def test_a_search_may_be_limited_to_a_stretch(log):
    file = numbered(log, 10)  # seven bytes a line

    assert [hit.line.data for hit in file.search("line", start=14, stop=28).hits] == [
        b"line 2", b"line 3",
    ]  # fmt: skip


def test_a_search_sees_lines_as_they_are_shown(log):
    log.write_bytes(b"\r 10%\r 20%\n")
    file = LogFile(log)

    assert [len(file.search(p).hits) for p in ("20%", "10%", "^ 20%$", "10.$")] == [1, 0, 1, 0]
    assert [len(file.search(p, raw=True).hits) for p in ("10%", "10.")] == [1, 1]


def test_an_answer_is_bounded_in_bytes(log):
    log.write_bytes((b"hit" + b"x" * 900_000 + b"\n") * 30)
    file = LogFile(log)
    counts, start = [], 0
    while start < log.stat().st_size:
        found = file.search("hit", start=start)
        assert sum(len(hit.line.data) for hit in found.hits) <= 8 << 20
        counts.append(len(found.hits))
        start = found.end

    assert counts == [9, 9, 9, 3]


def test_lines_around_a_hit_are_bounded(log):
    log.write_bytes((b"x" * 100_000 + b"\n") * 150 + b"hit\n")
    (hit,) = LogFile(log).search("hit", before=10**9).hits

    assert len(hit.before) == 100
    assert {(len(line.data), line.cut) for line in hit.before} == {(1 << 14, True)}


def test_a_runaway_pattern_costs_its_budget_and_not_our_time(log):
    log.write_bytes(b"harmless aab\n" * 3 + b"a" * 60 + b"!\n" + b"aab\n")
    before, cpu, wall = _children(), time.process_time(), time.monotonic()
    found = LogFile(log).search(r"(a+)+b$", budget=1.0)

    assert found.why == "time"
    assert time.process_time() - cpu < 0.5
    assert time.monotonic() - wall < 5.0
    assert _children() <= before, "the one that searched is collected"


def _children() -> set[str]:
    """Of this process, zombies too."""
    lists = Path("/proc/self/task").glob("*/children")
    return {pid for path in lists for pid in path.read_text(encoding="ascii").split()}


def test_what_was_found_before_the_time_was_over_is_kept(log):
    easy = b"found aab\n" + b"nothing\n" * 300_000
    log.write_bytes(easy + b"a" * 60 + b"!\n" + b"aab\n")
    found = LogFile(log).search(r"(a+)+b$", budget=2.0)

    assert found.why == "time"
    assert [hit.line.data for hit in found.hits] == [b"found aab"]
    assert 1 << 20 <= found.end <= len(easy)


def test_a_text_search_keeps_to_its_budget_too(log):
    log.write_bytes(b"nothing here\n" * 400_000)
    found = LogFile(log).search("absent", budget=0.0)

    assert found.why == "time"
    assert 0 < found.end < log.stat().st_size


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("(", "missing \\)"),
        ("", "1 to 1000"),
        ("x" * 1001, "1 to 1000"),
        ("(" * 999, "."),
        ("a{99999999999}", "."),
    ],
)
def test_what_is_no_pattern_is_refused_with_the_reason(log, pattern, says):
    with pytest.raises(InvalidRequest, match=says) as refused:
        numbered(log, 3).search(pattern)

    assert refused.value.problems[0].path == "pattern"
