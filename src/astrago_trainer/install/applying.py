"""Applies an installation, object after object, and tells what each apply did. A second call changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from astrago_trainer.engines.base import EngineRejected, EngineUnavailable
from astrago_trainer.engines.kubernetes.client import Conflict, Forbidden, NotFound
from astrago_trainer.install.cluster import InstallClient, name_of, namespace_of
from astrago_trainer.install.differences import diff_lines, is_same

Json = dict[str, Any]


class Outcome(StrEnum):
    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Applied:
    """One object and what became of it."""

    kind: str
    namespace: str
    name: str
    outcome: Outcome
    trouble: str = ""
    """Why it was refused, and what to do."""
    diff: tuple[str, ...] = ()
    """Of a dry run."""


async def apply_all(
    client: InstallClient, objects: Sequence[Json], *, is_dry: bool = False, is_forced: bool = False
) -> AsyncIterator[Applied]:
    """One refusal does not keep the others back: all problems are seen at once."""
    made: set[str] = set()
    for each in objects:
        done = await _apply(client, each, is_dry=is_dry, is_forced=is_forced, made=made)
        if each["kind"] == "Namespace" and done.outcome is Outcome.CREATED:
            made.add(done.name)
        yield done


async def _apply(
    client: InstallClient, wanted: Json, *, is_dry: bool, is_forced: bool, made: set[str]
) -> Applied:
    where = wanted["kind"], namespace_of(wanted), name_of(wanted)
    title = f"{where[0]} {where[2]}"
    if is_dry and namespace_of(wanted) in made:
        # A dry run has made no namespace, and nothing can be tried in it.
        return Applied(*where, Outcome.CREATED, diff=tuple(diff_lines(None, wanted, title)))
    try:
        before = await client.find_like(wanted)
        after = await client.put(wanted, is_dry=is_dry, is_forced=is_forced)
    except (EngineRejected, EngineUnavailable) as error:
        return Applied(*where, Outcome.REFUSED, _words(error))
    lines = tuple(diff_lines(before, after, title)) if is_dry else ()
    if before is None:
        return Applied(*where, Outcome.CREATED, diff=lines)
    outcome = Outcome.UNCHANGED if is_same(before, after) else Outcome.CHANGED
    return Applied(*where, outcome, diff=lines)


def _words(error: Exception) -> str:
    if isinstance(error, Conflict):
        return f"{error} → --force-conflicts takes these fields over."
    if isinstance(error, NotFound):
        return f"{error} → astrago install --diff says what is missing in the cluster."
    if isinstance(error, Forbidden):
        said = str(error).partition("bind it: ")[2] or str(error)
        return f"{said} → install with the rights of a cluster's administrator."
    return str(error)
