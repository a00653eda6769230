"""Numbers out of the logs of a job on this machine, for jobs that no server looked at while they ran."""

from __future__ import annotations

import time
from pathlib import Path

from astrago_trainer.logs.layout import find_logs
from astrago_trainer.logs.reader import LogFile
from astrago_trainer.progress.picker import Picker
from astrago_trainer.server.collecting import progress_points
from astrago_trainer.server.log_places import TRAINING_CONTAINER, find_places, numbered_ranks
from astrago_trainer.server.metric_view import Point
from astrago_trainer.store.jobs import Job

Series = dict[str, list[Point]]


def read_metrics(job: Job, folder: Path) -> dict[int, Series]:
    """By rank and name, of the newest attempt; ranks that tell no number are left out."""
    newest = max((each.attempt for each in find_logs(folder)), default=0)
    ranks = numbered_ranks(job)
    places = find_places(job, folder, newest, tuple(ranks.values()), TRAINING_CONTAINER)
    found = {
        rank: _read(rank, newest, place.path)
        for rank, place in zip(ranks, places, strict=True)
        if place.path.exists()
    }
    return {rank: series for rank, series in found.items() if series}


def _read(rank: int, attempt: int, path: Path) -> Series:
    picker = Picker(attempt=attempt, rank=rank)
    picked = []
    offset = 0
    for data in LogFile(path).iter_bytes():
        picked.append(picker.feed(offset, data, time=time.time()))
        offset += len(data)
    picked.append(picker.settle(time=time.time()))
    series: Series = {}
    for each in picked:
        for point in each.points:
            told = series.setdefault(point.series, [])
            # Where the log names no step, points are counted, as the server does.
            step = len(told) + 1 if point.step is None else point.step
            told.append((step, point.time, point.value))
        if rank == 0 and each.progress is not None:
            for name, value in progress_points(each.progress):
                series.setdefault(name, []).append(value)
    return series
