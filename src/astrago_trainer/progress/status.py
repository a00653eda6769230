"""The Trainer's status contract (its KEP-2779): what a training reports.

transformers and the Kubeflow SDK report by themselves where the variables of `core.render.reporting` are. The rules are
those of the Trainer's own server and of its resource definition, so that what it accepts we accept, and the other way
round.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from astrago_trainer.core.errors import InvalidRequest, Problem, Unreadable
from astrago_trainer.progress.names import EPOCH, STEP, series_name
from astrago_trainer.progress.points import Point, Progress
from astrago_trainer.progress.reader import finite

MAX_BODY = 1 << 16
MAX_METRICS = 256
MAX_TEXT = 64

_MAX_INT32 = 2**31 - 1
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)", re.ASCII)
_NUMBER = re.compile(
    r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|[-+]?(?:nan|inf|infinity)", re.I | re.ASCII
)
_COUNTS = {"total_steps", "max_steps", "total_epochs"}


class Report(NamedTuple):
    """One status that a training sent."""

    points: Sequence[Point]
    progress: Progress
    accepted: Mapping[str, Any]
    """The body as it was understood: the answer to the sender, and `status.trainerStatus` of the job."""


def read_status(body: bytes, *, attempt: int, received: float) -> Report | None:
    """A posted body to points and progress; None when there is no status in it, which is no error.

    `received` bounds the time that the sender claims. Raises InvalidRequest with everything that is wrong.
    """
    status = _parse(body).get("trainerStatus")
    if status is None:
        return None
    if not isinstance(status, dict):
        raise InvalidRequest([_wrong("trainerStatus", "an object", status)])
    problems = [*_check_numbers(status), *_check_time(status), *_check_metrics(status)]
    if problems:
        raise InvalidRequest(problems)
    return _to_report(status, attempt, received)


def _parse(body: bytes) -> dict[str, Any]:
    if len(body) > MAX_BODY:
        message = f"a status has at most {MAX_BODY} bytes, this one has {len(body)}."
        raise Unreadable([Problem("", "too-large", message, "Report fewer metrics.")])
    try:
        parsed = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        reason = "too deep" if isinstance(error, RecursionError) else error
        raise Unreadable([Problem("", "bad-json", f"the status is no JSON: {reason}.")]) from error
    if not isinstance(parsed, dict):
        raise Unreadable([_wrong("", "an object", parsed)])
    return parsed


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not allowed")


def _check_numbers(status: dict[str, Any]) -> list[Problem]:
    limits = {"progressPercentage": 100, "estimatedRemainingSeconds": _MAX_INT32}
    return [
        _wrong(f"trainerStatus.{name}", f"a whole number from 0 to {limit}", status[name])
        for name, limit in limits.items()
        if status.get(name) is not None
        and not (type(status[name]) is int and 0 <= status[name] <= limit)
    ]


def _check_time(status: dict[str, Any]) -> list[Problem]:
    path, text = "trainerStatus.lastUpdatedTime", status.get("lastUpdatedTime")
    if text is None:
        message = (
            "lastUpdatedTime is required when trainerStatus is present"  # the Trainer's own words
        )
        return [Problem(path, "FieldValueRequired", message)]
    if isinstance(text, str) and _TIME.fullmatch(text):
        try:
            datetime.fromisoformat(text).timestamp()
        except (ValueError, OverflowError):  # the 31st of February; a zone beyond the year 1
            pass
        else:
            return []
    return [_wrong(path, "a time such as 2026-01-31T12:00:00Z", text)]


def _check_metrics(status: dict[str, Any]) -> list[Problem]:
    path, metrics = "trainerStatus.metrics", status.get("metrics")
    if metrics is None:
        return []
    if not isinstance(metrics, list):
        return [_wrong(path, "a list", metrics)]
    if len(metrics) > MAX_METRICS:
        message = f"must have at most {MAX_METRICS} items, not {len(metrics)}."
        return [Problem(path, "FieldValueTooMany", message)]
    problems = []
    for index, metric in enumerate(metrics):
        if not isinstance(metric, dict):
            problems.append(_wrong(f"{path}[{index}]", "an object", metric))
            continue
        problems += [
            _wrong(
                f"{path}[{index}].{key}", f"a text of 1 to {MAX_TEXT} characters", metric.get(key)
            )
            for key in ("name", "value")
            if not (isinstance(metric.get(key), str) and 1 <= len(metric[key]) <= MAX_TEXT)
        ]
    return problems


def _wrong(path: str, expected: str, found: object) -> Problem:
    shown = json.dumps(found)
    shown = shown if len(shown) <= 80 else shown[:80] + "…"
    return Problem(path, "FieldValueInvalid", f"must be {expected}, not {shown}.")


def _to_report(status: dict[str, Any], attempt: int, received: float) -> Report:
    numbers = {
        series_name(metric["name"]): finite(metric["value"])
        for metric in status.get("metrics") or ()
        if _NUMBER.fullmatch(metric["value"].strip())
    }
    step = _whole(next((numbers[name] for name in numbers if name in STEP), None))
    epoch = next((numbers[name] for name in numbers if name in EPOCH), None)
    time = min(received, datetime.fromisoformat(status["lastUpdatedTime"]).timestamp())
    places = STEP | EPOCH | _COUNTS | {""}
    points = [
        Point(series, value, step, epoch, time, 0, attempt)
        for series, value in numbers.items()
        if series not in places
    ]
    percent, remaining = status.get("progressPercentage"), status.get("estimatedRemainingSeconds")
    progress = Progress(
        fraction=None if percent is None else percent / 100,
        remaining_seconds=None if remaining is None else float(remaining),
        time=time,
        step=step,
        steps=_whole(numbers.get("total_steps", numbers.get("max_steps"))),
        epoch=epoch,
        epochs=_whole(numbers.get("total_epochs")),
    )
    return Report(points, progress, {"trainerStatus": _known_fields(status)})


def _whole(number: float | None) -> int | None:
    return int(number) if number is not None and 0 <= number < 10**12 else None


def _known_fields(status: dict[str, Any]) -> dict[str, Any]:
    fields = ("progressPercentage", "estimatedRemainingSeconds", "metrics", "lastUpdatedTime")
    known = {name: status[name] for name in fields if status.get(name) is not None}
    if "metrics" in known:
        known["metrics"] = [
            {"name": each["name"], "value": each["value"]} for each in known["metrics"]
        ]
    return known
