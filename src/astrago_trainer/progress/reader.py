"""One line of a log to what it says about the training.

Knows how people and libraries print: `Epoch 1, Batch 10/47, Loss: 2.1`, `step 5 loss 0.3`, dicts as transformers logs
them, bars of tqdm, Lightning and Keras. Lines come from tenants: each expression here runs in time linear in the line
(every repetition is bounded, or possessive and begins only where a word or bar begins), and a line is cut before.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from astrago_trainer.progress.names import (
    EPOCH,
    EPOCHS,
    QUALIFIERS,
    STEP,
    STEPS,
    WORDS,
    is_metric,
    series_name,
)

MAX_LINE = 2000
"""Characters of a line that are looked at; a wide bar with ten metrics has 400."""


@dataclass(slots=True)
class Reading:
    """What one line says; None and empty where it says nothing."""

    epoch: int | None = None
    epochs: int | None = None
    position: float | None = None
    """An epoch with a fraction, as transformers counts: 1.25."""
    step: int | None = None
    steps: int | None = None
    fraction: float | None = None
    """Of the whole training, said outright."""
    remaining_seconds: float | None = None
    is_bar: bool = False
    ends_epoch: bool = False
    values: dict[str, float | None] = field(default_factory=dict)

    @property
    def says_something(self) -> bool:
        return bool(self.values) or any(
            each is not None
            for each in (self.epoch, self.epochs, self.position, self.step, self.fraction)
        )


_NUMBER = r"[-+]?(?:(?:\d{1,24}(?:\.\d{0,24})?|\.\d{1,24})(?:e[-+]?\d{1,4})?|nan|inf(?:inity)?)"
_PAIR = re.compile(
    rf"""(?<![\w./@%-])
    (?P<key>(?:(?:{"|".join(QUALIFIERS)})\ )*+[a-z_][\w./@-]*+)
    ['"]?\s{{0,4}}+(?:[:=]\s{{0,8}}+)?['"(\[]?\s{{0,6}}+
    (?P<value>{_NUMBER})(?!\w|\s?%\|)
    (?:\s?/\s{{0,6}}(?P<total>\d{{1,12}})(?!\w))?""",
    re.VERBOSE | re.ASCII,
)
_BAR = re.compile(
    r"""(?<!\d)\d{1,3}%\|[^|]{0,1000}+\|\s{0,8}
    (?P<done>\d[\d.]{0,15})(?P<unit>[kmgtp]?)/(?P<total>\d[\d.]{0,15})(?P<total_unit>[kmgtp]?)\s
    \[[\d:]{1,16}<(?P<left>[\d:]{1,16}|\?)(?P<after>[^\]]{0,1000})""",
    re.VERBOSE | re.ASCII,
)
_KERAS = re.compile(
    r"""[\s\b]{0,1000}+(?P<done>\d{1,12})/(?P<total>\d{1,12})\s
    (?=\[[=>.]|━|.{0,1500}?\d[mu]?s/step)""",
    re.VERBOSE | re.ASCII,
)
_COUNT = re.compile(
    r"(?:\[\s{0,12}|━\s{1,4})(?P<done>\d{1,12})\s?/\s{0,12}(?P<total>\d{1,12})(?=[\s\]])", re.ASCII
)
_ESCAPES = re.compile(r"\x1b\[[0-9;?]{0,16}[a-z]")
_ENDED = re.compile(r"\b(?:done|finished|completed?|ended)\b")
_EPOCH_FIRST = re.compile(r"[^a-z]{0,40}+epoch\b")
_TRAINS = re.compile(r"epoch|train|step|iter|batch|fit")
_BYTES = re.compile(r"\d[kmgt]?i?b/s")
_WHOLE = re.compile(r"\+?[0-9]{1,12}")  # no training has more steps, and every database can hold it
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}

HINTS = (*WORDS, "epoch", "step", "batch", "iter", "%|")
"""A line without any of these, in whatever case, says nothing."""


def read_line(line: str) -> Reading | None:
    """What a line says; None for nothing. Only its first MAX_LINE characters count."""
    text = line[:MAX_LINE].lower()
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    bar = _BAR.search(text) if "%|" in text else None
    if bar is not None:
        reading = _read_bar(text, bar)
    elif (keras := _KERAS.match(text)) is not None:
        reading = _read_pairs(text, accepts_all=True)
        reading.step, reading.steps = int(keras["done"]), int(keras["total"])
    else:
        reading = _read_text(text)
    return reading if reading is not None and reading.says_something else None


def finite(text: str) -> float | None:
    """The number in a text that looks like one; None for NaN and infinities."""
    value = float(text)
    return value if math.isfinite(value) else None


def _read_text(text: str) -> Reading:
    reading = _read_pairs(text, accepts_all=text.lstrip().startswith("{"))
    if reading.epoch is not None and not (
        reading.values or reading.epochs or reading.step is not None or _EPOCH_FIRST.match(text)
    ):
        reading.epoch = None  # prose: "saved at epoch 2"
    if reading.step is None and (reading.values or reading.epoch is not None):
        count = _COUNT.search(text)
        if count is not None:
            reading.step, reading.steps = int(count["done"]), int(count["total"])
    if reading.epoch is not None and reading.step is None:
        # One line per epoch with its results comes at the epoch's end; a bare heading at its start.
        is_result = reading.epochs is not None and bool(reading.values)
        reading.ends_epoch = is_result or _ENDED.search(text) is not None
    return reading


def _read_bar(text: str, bar: re.Match[str]) -> Reading | None:
    """A bar of tqdm. Of downloads, maps and the like there are many: they are not the training."""
    head, after = text[: bar.start()], bar["after"]
    values = _read_pairs(after, accepts_all=True).values
    if _BYTES.search(after) or not (values or not head.strip() or _TRAINS.search(head)):
        return None
    reading = _read_pairs(head, accepts_all=False)
    reading.values |= values
    reading.is_bar = True
    reading.step = _scaled(bar["done"], bar["unit"])
    reading.steps = _scaled(bar["total"], bar["total_unit"])
    reading.remaining_seconds = _seconds(bar["left"])
    return reading


def _read_pairs(text: str, *, accepts_all: bool) -> Reading:
    """Words with numbers behind them; with `accepts_all` each one is a series, if there is one that surely is."""
    reading = Reading()
    others: dict[str, float | None] = {}
    for found in _PAIR.finditer(text):
        name, number = series_name(found["key"]), found["value"]
        if name in EPOCH:
            _read_epoch(reading, number, found["total"])
        elif name in STEP:
            _read_step(reading, number, found["total"])
        elif name in EPOCHS and _WHOLE.fullmatch(number):
            reading.epochs = reading.epochs or int(number)
        elif name in STEPS or name == "v_num":  # v_num: Lightning's number of the run
            continue
        elif is_metric(name):
            reading.values.setdefault(name, finite(number))
        elif name and accepts_all:
            others.setdefault(name, finite(number))
    if reading.values:
        reading.values = {**others, **reading.values}
    return reading


def _read_epoch(reading: Reading, number: str, total: str | None) -> None:
    if reading.epoch is not None or reading.position is not None:
        return
    if _WHOLE.fullmatch(number):
        reading.epoch = int(number)
        reading.epochs = int(total) if total else reading.epochs
    else:
        reading.position = finite(number)


def _read_step(reading: Reading, number: str, total: str | None) -> None:
    if reading.step is None and _WHOLE.fullmatch(number):
        reading.step = int(number)
        reading.steps = int(total) if total else None


def _scaled(number: str, unit: str) -> int | None:
    """`45` or `1.2k`; None for what has several points, or more digits than a step has."""
    try:
        scaled = round(float(number) * _UNITS[unit])
    except ValueError:
        return None
    return scaled if scaled < 10**12 else None


def _seconds(clock: str) -> float | None:
    """`01:02` or `1:02:03` to seconds; None for `?`."""
    if "?" in clock or not all(clock.split(":")):
        return None
    seconds = 0
    for part in clock.split(":"):
        seconds = seconds * 60 + int(part)
    return float(seconds)
