"""Which files are meant by a rank of a job: pods of the job `node` count from 0, others come after them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.core.names import pod_hostname
from astrago_trainer.engines.base import ENVIRONMENT_FAILED
from astrago_trainer.logs.layout import LogName, find_logs, log_path
from astrago_trainer.service.errors import NotFound
from astrago_trainer.store.jobs import Job

TRAINING_CONTAINER = "node"
INSTALL_CONTAINER = "environment"
"""The log of an install, as the local engine names it."""
"""The Trainer's own name for the container that trains, in every runtime."""
MOST_NUMBERED = 8
"""Ranks of a job whose logs are read for numbers: what a plot can show, and a thousand jobs can afford."""
_NODE = "node"
_OTHERS = ("launcher", "dataset-initializer", "model-initializer")
"""Replicated jobs of one pod beside the nodes, in the order of their ranks."""
_POD = re.compile(r"(?P<job>.+)-0-(?P<index>\d{1,9})(?:-[a-z0-9]{5})?")


class LogPlace(NamedTuple):
    """The log of one container of one rank."""

    rank: int
    attempt: int
    pod: str
    container: str
    path: Path


class Cursor(NamedTuple):
    """Where somebody stopped reading: `attempt:rank:offset`."""

    attempt: int
    rank: int
    offset: int

    def __str__(self) -> str:
        return f"{self.attempt}:{self.rank}:{self.offset}"


def rank_of(job: Job, replicated_job: str, index: int) -> int:
    """The number under which a pod is asked for."""
    if replicated_job == _NODE:
        return index
    others = _OTHERS.index(replicated_job) if replicated_job in _OTHERS else len(_OTHERS)
    return job.nodes + others + index


def numbered_ranks(job: Job) -> dict[int, int]:
    """Whose logs are read for numbers: the rank of the series, and that of the log.

    The first ranks and the last one, where stages of a pipeline end in a loss. Of horovod it is the launcher alone:
    mpirun prints there what the ranks say, and that counts as rank 0.
    """
    if job.framework == "horovod":
        return {0: job.nodes}
    return {rank: rank for rank in (*range(min(job.nodes, MOST_NUMBERED) - 1), job.nodes - 1)}


def find_places(
    job: Job, folder: Path, attempt: int, ranks: Sequence[int], container: str
) -> list[LogPlace]:
    """The logs of these ranks, or of all that the job has; those of nodes are named before they are there.

    Raises NotFound for a rank or container that the job does not have.
    """
    there = find_logs(folder, attempt)
    found = {
        rank: LogPlace(rank, attempt, each.pod, each.container, each.path)
        for each in there
        if each.container == container and (rank := _rank(job, each)) is not None
    }
    if container == TRAINING_CONTAINER and job.reason == ENVIRONMENT_FAILED and not found:
        # No rank has run: what the installer printed is all there is to read.
        found = {
            rank: LogPlace(rank, attempt, each.pod, each.container, each.path)
            for each in there
            if each.container == INSTALL_CONTAINER and (rank := _rank(job, each)) is not None
        }
    if container == TRAINING_CONTAINER:
        has_launcher = job.framework == "horovod"
        for rank in ranks or range(job.nodes + has_launcher):
            if rank not in found and rank < job.nodes + has_launcher:
                kind, index = (_NODE, rank) if rank < job.nodes else (_OTHERS[0], 0)
                pod = pod_hostname(job.name, index, replicated_job=kind)
                path = log_path(folder, attempt, pod, container)
                found[rank] = LogPlace(rank, attempt, pod, container, path)
    elif not found:
        names = sorted({each.container for each in there}) or [TRAINING_CONTAINER]
        raise NotFound(
            f"the job {job.name!r} has no log of a container {container[:60]!r} in attempt {attempt}; "
            f"it has those of {', '.join(names)}."
        )
    missing = [rank for rank in ranks if rank not in found]
    if missing:
        raise NotFound(
            f"the job {job.name!r} has no rank {missing[0]} in attempt {attempt}; "
            f"it has {_listed(found)}."
        )
    return [found[rank] for rank in sorted(ranks or found)]


def read_ranks(text: str) -> tuple[int, ...]:
    """`0`, or `0,3,5`; empty for all."""
    if not text:
        return ()
    parts = text.split(",")
    if len(parts) <= 1000 and all(each.isascii() and each.isdecimal() for each in parts):
        ranks = tuple(dict.fromkeys(int(each) for each in parts if len(each) < 10))
        if ranks:
            return ranks
    message = f"must be a number, or several with commas between; found {text[:40]!r}."
    raise InvalidRequest([Problem("rank", "FieldValueInvalid", message)])


def read_cursors(text: str) -> tuple[Cursor, ...]:
    """`attempt:rank:offset`, several with commas between."""
    cursors = []
    for each in text.split(",") if text else ():
        parts = each.strip().split(":")
        if len(parts) != 3 or not all(
            part.isascii() and part.isdecimal() and len(part) < 19 for part in parts
        ):
            message = f"must be attempt:rank:offset, as a line came with it; found {each[:40]!r}."
            remedy = "Leave it out to begin at the start."
            raise InvalidRequest([Problem("cursor", "FieldValueInvalid", message, remedy)])
        cursors.append(Cursor(*map(int, parts)))
    return tuple(cursors)


def _rank(job: Job, log: LogName) -> int | None:
    prefix = f"{job.name}-"
    found = _POD.fullmatch(log.pod[len(prefix) :]) if log.pod.startswith(prefix) else None
    return None if found is None else rank_of(job, found["job"], int(found["index"]))


def _listed(ranks: Iterable[int]) -> str:
    known = sorted(ranks)
    if not known:
        return "none yet"
    is_row = known == list(range(known[0], known[-1] + 1)) and len(known) > 1
    return f"{known[0]} to {known[-1]}" if is_row else ", ".join(map(str, known[:20]))
