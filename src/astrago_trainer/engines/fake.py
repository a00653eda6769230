"""An engine in memory that does what it is told to: finishes jobs, is slow, loses one, fails the third call.

For tests of everything that stands on an engine, and for looking at a page full of jobs without running any.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from astrago_trainer.core.lifecycle import Phase, is_terminal
from astrago_trainer.engines.base import (
    GONE,
    Ability,
    Effective,
    EngineRejected,
    EngineUnavailable,
    Event,
    FoundNamespace,
    Handle,
    Node,
    Observation,
    Pod,
    PodPhase,
    Quota,
)


@dataclass
class Trouble:
    """What goes wrong, and when. Nothing, unless told."""

    fail_calls: frozenset[int] = frozenset()
    """Numbers of the calls, counted from 1, that raise EngineUnavailable before they do anything."""
    fail_after_calls: frozenset[int] = frozenset()
    """The same, after they have done it: the caller cannot know."""
    delay: Callable[[], asyncio.Future[None]] | None = None
    """Awaited in every call: a test decides when it ends, so that nobody sleeps."""


@dataclass
class FakeEngine:
    """Jobs are Running once applied, until a test says otherwise."""

    name: ClassVar[str] = "fake"
    abilities: frozenset[Ability] = frozenset(Ability)
    trouble: Trouble = field(default_factory=Trouble)
    calls: list[tuple[str, Handle]] = field(default_factory=list)
    data: Path = Path("fake")
    """Where logs would be."""
    machines: list[Node] = field(default_factory=list)
    """What `nodes` answers."""
    ceilings: dict[str, list[Quota]] = field(default_factory=dict)
    """What `quota` answers, by namespace."""
    namespaces: list[str] = field(default_factory=list)
    """That were made, in their order."""
    taken: frozenset[str] = frozenset()
    """Namespaces that are somebody else's."""
    existing: dict[str, FoundNamespace] = field(default_factory=dict)
    """Namespaces that others made, by name."""
    adopted: list[str] = field(default_factory=list)
    """Of these, the ones in which jobs can run, in the order of the calls."""
    _jobs: dict[Handle, tuple[Effective, Observation]] = field(default_factory=dict)
    _listeners: set[asyncio.Queue[Handle]] = field(default_factory=set)

    async def apply(self, handle: Handle, effective: Effective) -> None:
        async with _Call(self, "apply", handle):
            known = self._jobs.get(handle)
            if known is not None and (known[0] == effective or is_terminal(_phase(known[1]))):
                return
            phase = Phase.SUSPENDED if effective.suspend else Phase.RUNNING
            before = GONE if known is None else known[1]
            after = replace(before, phase=phase, pods=() if effective.suspend else _pods(effective))
            self._set(handle, effective, self._told(after, phase.value))

    async def observe(self, handle: Handle) -> Observation:
        async with _Call(self, "observe", handle):
            return self._jobs[handle][1] if handle in self._jobs else GONE

    async def stop(self, handle: Handle) -> None:
        async with _Call(self, "stop", handle):
            self._jobs.pop(handle, None)
            self._tell(handle)

    async def changes(self) -> AsyncIterator[Handle]:
        queue: asyncio.Queue[Handle] = asyncio.Queue()
        self._listeners.add(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self._listeners.discard(queue)

    async def nodes(self) -> list[Node]:
        return list(self.machines)

    async def quota(self, namespace: str) -> list[Quota]:
        return list(self.ceilings.get(namespace, ()))

    async def make_namespace(self, namespace: str) -> None:
        async with _Call(self, "make_namespace", Handle(namespace, "", "")):
            if namespace in self.taken:
                raise EngineRejected(f"the namespace {namespace} is somebody else's")
            self.namespaces.append(namespace)

    async def find_namespace(self, namespace: str) -> FoundNamespace | None:
        async with _Call(self, "find_namespace", Handle(namespace, "", "")):
            if namespace in self.namespaces:
                return FoundNamespace({}, is_tenants=True)
            return self.existing.get(namespace)

    async def adopt_namespace(self, namespace: str) -> None:
        async with _Call(self, "adopt_namespace", Handle(namespace, "", "")):
            if namespace in self.taken:
                raise EngineRejected(f"the namespace {namespace} is somebody else's")
            self.adopted.append(namespace)

    def logs(self, handle: Handle) -> Path:
        return self.data / handle.namespace / f"{handle.name}-{handle.uid}"

    def finish(self, handle: Handle, phase: Phase = Phase.COMPLETE, reason: str = "") -> None:
        """The job ends, well or not."""
        effective, before = self._jobs[handle]
        ended = PodPhase.SUCCEEDED if phase is Phase.COMPLETE else PodPhase.FAILED
        pods = tuple(replace(pod, phase=ended) for pod in before.pods)
        after = replace(before, phase=phase, reason=reason, pods=pods)
        self._set(handle, effective, self._told(after, phase.value))

    def lose(self, handle: Handle) -> None:
        """The job is gone, as if somebody had removed it behind our back."""
        del self._jobs[handle]
        self._tell(handle)

    def _set(self, handle: Handle, effective: Effective, observation: Observation) -> None:
        self._jobs[handle] = (effective, observation)
        self._tell(handle)

    def _tell(self, handle: Handle) -> None:
        for queue in self._listeners:
            queue.put_nowait(handle)

    @staticmethod
    def _told(observation: Observation, reason: str) -> Observation:
        number = len(observation.events)
        event = Event(number, float(number), reason, f"the job is {reason}")
        return replace(observation, events=(*observation.events, event))


class _Call:
    """Counts a call, makes it slow, and lets it fail before or after its work."""

    def __init__(self, engine: FakeEngine, what: str, handle: Handle) -> None:
        self._engine = engine
        engine.calls.append((what, handle))
        self._number = len(engine.calls)

    async def __aenter__(self) -> None:
        trouble = self._engine.trouble
        if trouble.delay is not None:
            await trouble.delay()
        if self._number in trouble.fail_calls:
            raise EngineUnavailable(f"call {self._number} was told to fail")

    async def __aexit__(self, kind: object, *_: object) -> None:
        if kind is None and self._number in self._engine.trouble.fail_after_calls:
            raise EngineUnavailable(f"call {self._number} was told to fail after its work")


def _phase(observation: Observation) -> Phase:
    assert observation.phase is not None
    return observation.phase


def _pods(effective: Effective) -> tuple[Pod, ...]:
    name = effective.job_set["metadata"]["name"]
    return tuple(
        Pod(
            f"{name}-{job['name']}-0-{index}",
            job["name"],
            index,
            PodPhase.RUNNING,
            node="here",
            address=f"192.0.2.{index + 1}",
        )
        for job in effective.job_set["spec"].get("replicatedJobs", ())
        for index in range(job["template"]["spec"].get("completions", 1))
    )
