"""Patterns of users' own: what they may say, and that they cannot hurt."""

from __future__ import annotations

import time

import pytest

from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.progress.patterns import MAX_PATTERN, MAX_PATTERNS, Patterns, check_patterns
from astrago_trainer.progress.picker import Picker
from astrago_trainer.progress.points import Progress
from astrago_trainer.progress.reader import Reading


@pytest.mark.parametrize(
    ("pattern", "line", "expected"),
    [
        (r"energy (?P<energy>\S+)", "energy -1.5e3 eV", Reading(values={"energy": -1500.0})),
        (r"(?P<name>\w+) is (?P<value>\S+)", "Fehler is 0.5", Reading(values={"fehler": 0.5})),
        (r"Schritt (?P<step>\d+) von (?P<steps>\d+)", "Schritt 3 von 9", Reading(step=3, steps=9)),
        (
            r"(?P<percent>\d+) Prozent.*noch (?P<remaining>\d+) s",
            "50 Prozent, noch 90 s",
            Reading(fraction=0.5, remaining_seconds=90),
        ),
        (r"energy (?P<energy>\S+)", "energy unknown", None),
        (r"energy (?P<energy>\S+)", "energy nan", Reading(values={"energy": None})),
        (r"energy (?P<energy>\S+)", "nothing", None),
    ],
)  # fmt: skip
def test_groups_say_what_a_line_means(pattern, line, expected):
    assert Patterns([pattern]).read_line(line) == expected


def test_patterns_come_before_the_built_in_reading_or_stand_alone():
    log, pattern = b"loss=1\nenergy -5\n", r"energy (?P<energy>\S+)"

    def names(**options):
        picked = Picker(attempt=0, rank=0, patterns=[pattern], **options).feed(0, log, time=1.0)
        return [point.series for point in picked.points]

    assert names() == ["loss", "energy"]
    assert names(has_defaults=False) == ["energy"]


def test_a_percentage_is_progress():
    picker = Picker(
        attempt=0, rank=0, patterns=[r"(?P<percent>\d+) Prozent, noch (?P<remaining>\d+)"]
    )

    picked = picker.feed(0, b"50 Prozent, noch 90 s\n", time=7.0)

    assert picked.progress == Progress(0.5, 90.0, 7.0)


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        ("(", "bad-pattern"),
        (r"(?P<a>x)(?P=a)", "bad-pattern"),
        (r"(?=loss)(?P<a>x)", "bad-pattern"),
        (r"(?P<a>(x{1000}){1000})", "bad-pattern"),
        (r"(?P<a>[^z]{1,900})z", "bad-pattern"),
        ("(?P<a>\ud800)", "bad-pattern"),
        (r"loss (\d+)", "no-group"),
        (r"(?P<name>\w+)", "half-pair"),
        (r"(?P<a>" + "x" * MAX_PATTERN + ")", "too-long"),
    ],
)
def test_a_bad_pattern_is_refused_with_its_place(pattern, code):
    problems = check_patterns([r"(?P<loss>\d+)", pattern])

    assert [(problem.path, problem.code) for problem in problems] == [("patterns[1]", code)]
    with pytest.raises(InvalidRequest):
        Patterns([pattern])


def test_there_are_not_too_many():
    assert [problem.code for problem in check_patterns(["(?P<a>x)"] * (MAX_PATTERNS + 1))] == [
        "too-many"
    ]


@pytest.mark.parametrize(
    "pattern", [r"(?P<a>(x+)+)$", r"(?P<a>(?:x?){60}x{60}y)", r"(?P<a>.*.*.*.*.*=.*)z"]
)
def test_a_hostile_pattern_on_a_hostile_line_is_cheap_or_switched_off(pattern):
    picker = Picker(attempt=0, rank=0, patterns=[pattern])
    data = b"".join(b"x" * 490 + b"%d\n" % number for number in range(130))
    start = time.thread_time()
    for number in range(20):
        picker.feed(number * len(data), data, time=1.0)
    seconds = time.thread_time() - start

    assert seconds < 1.0
    assert picker.switched_off == (pattern,) or seconds < 0.2


def test_a_pattern_that_is_switched_off_leaves_the_others_working():
    slow, good = r"(?P<a>(?:x?){60}x{60}y)", r"energy (?P<energy>\S+)"
    picker = Picker(attempt=0, rank=0, patterns=[slow, good])
    data = (b"x" * 490 + b"\n") * 130
    number = 0
    while not picker.switched_off:
        picker.feed(number, data, time=1.0)
        number += len(data)
        assert number < 200 * len(data), "it is never switched off"

    assert picker.feed(number, b"energy 1\n", time=1.0).points[0].value == 1.0
