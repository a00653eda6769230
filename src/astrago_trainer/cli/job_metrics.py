"""Numbers out of the logs of a job on this machine, for jobs that no server looked at while they ran."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from astrago_trainer.logs.layout import find_logs
from astrago_trainer.logs.reader import LogFile
from astrago_trainer.progress.picker import Picker
from astrago_trainer.progress.points import Progress
from astrago_trainer.server.log_places import TRAINING_CONTAINER

Json = dict[str, Any]


def read_metrics(folder: Path) -> Json:
    """Of the newest attempt; where several ranks tell a series, the first of them counts."""
    logs = [each for each in find_logs(folder) if each.container == TRAINING_CONTAINER]
    newest = max((each.attempt for each in logs), default=0)
    series: dict[str, list[list[float | None]]] = {}
    progress: Progress | None = None
    for rank, log in enumerate(each for each in logs if each.attempt == newest):
        picker = Picker(attempt=newest, rank=rank)
        found: dict[str, list[list[float | None]]] = {}
        offset = 0
        picked = []
        for data in LogFile(log.path).iter_bytes():
            picked.append(picker.feed(offset, data, time=time.time()))
            offset += len(data)
        picked.append(picker.settle(time=time.time()))
        for each in picked:
            progress = each.progress or progress
            for point in each.points:
                found.setdefault(point.series, []).append([point.step, point.time, point.value])
        series = {**found, **series}
    far = progress and {
        "fraction": progress.fraction,
        "remaining_seconds": progress.remaining_seconds,
    }
    return {"progress": far, "series": series}
