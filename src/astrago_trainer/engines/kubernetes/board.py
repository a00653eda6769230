"""All jobs of the cluster in memory, put together from the watches; tells who listens what has changed.

Objects of one job arrive on several watches in any order, so each is put in its place by the name that all of them
share: TrainJob and JobSet have it, Jobs and pods carry it as a label, events say whom they are about.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from pathlib import Path

from astrago_trainer.engines.base import Handle
from astrago_trainer.engines.kubernetes.failures import Failure, deletion_of, failures_of
from astrago_trainer.engines.kubernetes.journal import Journal
from astrago_trainer.engines.kubernetes.objects import ClusterEvent, Job, JobSet, Pod, TrainJob
from astrago_trainer.engines.kubernetes.phase import JobObjects

Key = tuple[str, str]
"""Namespace and name."""

MOST_EVENTS = 200
"""Of one job that are looked at; the oldest go. All of them are in its journal."""
_KINDS = frozenset({"TrainJob", "JobSet", "Job", "Pod"})


class Board:
    """What the cluster has of every job."""

    def __init__(
        self, folder: Callable[[Handle], Path], on_change: Callable[[Key, Handle | None], None]
    ) -> None:
        """`on_change` is told where something is new, and whose it is; also of a job that is gone now."""
        self._folder = folder
        self._on_change = on_change
        self._jobs: dict[Key, JobObjects] = {}
        self._journals: dict[Handle, Journal] = {}
        self._waiting: dict[Key, set[asyncio.Event]] = {}
        self._early: dict[str, ClusterEvent] = {}

    def find(self, handle: Handle) -> JobObjects | None:
        """Of this very job; one of the same name is another one."""
        found = self._jobs.get((handle.namespace, handle.name))
        if found is None or found.trainjob is None or handle_of(found.trainjob) != handle:
            return None
        return found

    def get(self, key: Key) -> JobObjects:
        return self._jobs.get(key) or JobObjects()

    def handle(self, key: Key) -> Handle | None:
        trainjob = self.get(key).trainjob
        return None if trainjob is None else handle_of(trainjob)

    def journal(self, handle: Handle) -> Journal:
        if handle not in self._journals:
            self._journals[handle] = Journal(self._folder(handle))
        return self._journals[handle]

    async def until(self, key: Key, claim: Callable[[JobObjects], bool], seconds: float) -> bool:
        """Whether the claim came to hold in time. Looks again with each change."""
        told = asyncio.Event()
        self._waiting.setdefault(key, set()).add(told)
        try:
            async with asyncio.timeout(seconds):
                while not claim(self.get(key)):
                    told.clear()
                    await told.wait()
            return True
        except TimeoutError:
            return False
        finally:
            self._waiting[key].discard(told)
            if not self._waiting[key]:
                del self._waiting[key]

    def take_trainjob(self, item: TrainJob, is_gone: bool) -> None:
        key = item.metadata.namespace, item.metadata.name
        known = self._at(key)
        if is_gone:
            if known.trainjob is not None and known.trainjob.metadata.uid == item.metadata.uid:
                known.trainjob = None
                known.events.clear()
            self._journals.pop(handle_of(item), None)
            self._changed(key, handle_of(item))
            return
        is_new = known.trainjob is None
        known.trainjob = item
        if is_new:
            for pod in known.pods.values():
                self._note_failures(key, pod)
            early, self._early = self._early, {}
            for event in early.values():
                self.take_event(event, False)
        self._changed(key)

    def take_job_set(self, item: JobSet, is_gone: bool) -> None:
        key = item.metadata.namespace, item.metadata.name
        known = self._at(key)
        if not is_gone:
            known.job_set = item
        elif known.job_set is not None and known.job_set.metadata.uid == item.metadata.uid:
            known.job_set = None
        self._changed(key)

    def take_job(self, item: Job, is_gone: bool) -> None:
        key = item.metadata.namespace, item.metadata.labels.job_set
        if is_gone:
            self._at(key).jobs.pop(item.metadata.name, None)
        else:
            self._at(key).jobs[item.metadata.name] = item
        self._changed(key)

    def take_pod(self, item: Pod, is_gone: bool) -> None:
        key = item.metadata.namespace, item.metadata.labels.job_set
        self._note_failures(key, item)
        if is_gone:
            self._at(key).pods.pop(item.metadata.name, None)
        else:
            self._at(key).pods[item.metadata.name] = item
        self._changed(key)

    def take_event(self, item: ClusterEvent, is_gone: bool) -> None:
        """Events of others, and of a job of the same name before this one, are left out."""
        if is_gone:
            return
        key = self._whom(item)
        if key is None:
            self._keep_early(item)
            return
        known = self._at(key)
        assert known.trainjob is not None
        began, time = known.trainjob.metadata.creation_timestamp, item.time
        if time is None or (began is not None and time < began):
            return
        known.events.pop(item.metadata.uid, None)  # the newest are last
        known.events[item.metadata.uid] = item
        if len(known.events) > MOST_EVENTS:
            del known.events[next(iter(known.events))]
        about = item.involved_object
        # A repeated event counts up in place: the same words are told once.
        name = f"{item.metadata.uid}/{hash_of(item.message)}"
        words = f"{about.kind} {about.name}: {item.message}"
        handle = handle_of(known.trainjob)
        if self.journal(handle).note(name, time.timestamp(), item.reason, words):
            self._changed(key)

    def _note_failures(self, key: Key, pod: Pod) -> None:
        handle = self.handle(key)
        if handle is None:
            return
        journal = self.journal(handle)
        found = failures_of(pod)
        deletion = deletion_of(pod)
        if deletion is not None and not found and self._is_cause(key, deletion, journal):
            journal.note_failure(deletion)
        for failure in found:
            journal.note_failure(failure)

    def _is_cause(self, key: Key, deletion: Failure, journal: Journal) -> bool:
        """Whether the operator has no reason of its own to delete pods now.

        It must be noted when it is seen: the operator deletes the others in the same moment, and then all look alike.
        """
        known = self._at(key)
        assert known.trainjob is not None
        conditions = known.trainjob.status.conditions
        is_wanted = known.trainjob.spec.suspend or any(each.is_true for each in conditions)
        is_over = any(pod.status.phase == "Succeeded" for pod in known.pods.values())
        has_cause = any(each.attempt == deletion.attempt for each in journal.failures)
        return not (is_wanted or is_over or has_cause)

    def _keep_early(self, event: ClusterEvent) -> None:
        """Watches are not in step: an event may come before the job that it is about."""
        if event.involved_object.kind in _KINDS:
            self._early[event.metadata.uid] = event
            if len(self._early) > MOST_EVENTS:
                del self._early[next(iter(self._early))]

    def _whom(self, event: ClusterEvent) -> Key | None:
        """The job that an event is about. Names of Jobs and pods begin with the name of their job."""
        namespace, name = event.metadata.namespace, event.involved_object.name
        while name:
            known = self._jobs.get((namespace, name))
            if known is not None and known.trainjob is not None:
                return namespace, name
            name = name.rpartition("-")[0]
        return None

    def _at(self, key: Key) -> JobObjects:
        return self._jobs.setdefault(key, JobObjects())

    def _changed(self, key: Key, gone: Handle | None = None) -> None:
        if key in self._jobs and self._jobs[key].is_empty:
            del self._jobs[key]
        for told in self._waiting.get(key, ()):
            told.set()
        self._on_change(key, gone or self.handle(key))


def handle_of(trainjob: TrainJob) -> Handle:
    meta = trainjob.metadata
    return Handle(meta.namespace, meta.name, meta.labels.job_uid)


def hash_of(text: str) -> str:
    """Short, and the same in every process."""
    return f"{zlib.crc32(text.encode()):08x}"
