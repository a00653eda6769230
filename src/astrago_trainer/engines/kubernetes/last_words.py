"""What a training said before it failed, from its kept log, where its container left no message of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from astrago_trainer.core.diagnosis.last_words import READ_BYTES, last_words
from astrago_trainer.engines.kubernetes.failures import Failure, first_cause
from astrago_trainer.logs.layout import log_path


def with_last_words(failures: Sequence[Failure], folder: Path) -> list[Failure]:
    """The same; those that explain the present attempt and the one before it with their words."""
    newest = max((each.attempt for each in failures), default=0)
    causes = [first_cause(list(failures), attempt) for attempt in (newest - 1, newest)]
    return [
        replace(each, said=_said(each, folder)) if each in causes else each for each in failures
    ]


def _said(failure: Failure, folder: Path) -> str:
    if failure.said or failure.is_aftermath or not failure.pod:
        return failure.said
    return _tail(log_path(folder, failure.attempt, failure.pod, failure.container))


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - READ_BYTES, 0))
            return last_words(file.read().decode(errors="replace"))
    except OSError:
        return ""
