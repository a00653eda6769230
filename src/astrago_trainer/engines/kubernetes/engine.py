"""Jobs on a cluster, behind the same contract as those on one machine.

Watches answer every question about a job; only apply, stop and the answer "gone" ask the API server. Nothing of a job
is in this object alone: the cluster has the job, the data folder its logs and events, so any process takes over.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from astrago_trainer.core.lifecycle import Phase, is_terminal
from astrago_trainer.engines.base import (
    GONE,
    Ability,
    Effective,
    EngineRejected,
    EngineUnavailable,
    FoundNamespace,
    Handle,
    Node,
    Observation,
    Quota,
)
from astrago_trainer.engines.kubernetes.absence import NONE, Absence, absence_of, absences
from astrago_trainer.engines.kubernetes.applying import apply, is_ours
from astrago_trainer.engines.kubernetes.board import Board, Key
from astrago_trainer.engines.kubernetes.client import Client
from astrago_trainer.engines.kubernetes.collecting import LogCollector
from astrago_trainer.engines.kubernetes.credentials import Access, find_access
from astrago_trainer.engines.kubernetes.dialect import find_dialect
from astrago_trainer.engines.kubernetes.last_words import with_last_words
from astrago_trainer.engines.kubernetes.namespaces import (
    adopt_namespace,
    find_namespace,
    make_namespace,
)
from astrago_trainer.engines.kubernetes.nodes import nodes_now, room_words
from astrago_trainer.engines.kubernetes.objects import (
    ClusterEvent,
    Job,
    JobSet,
    OtherPod,
    Pod,
    ResourceQuota,
    TrainJob,
)
from astrago_trainer.engines.kubernetes.objects import Node as ClusterNode
from astrago_trainer.engines.kubernetes.phase import (
    CONTROLLER_SECONDS,
    JobObjects,
    is_ahead_of_pods,
    observe,
)
from astrago_trainer.engines.kubernetes.pods import is_current, jobset_of
from astrago_trainer.engines.kubernetes.quotas import tightest
from astrago_trainer.engines.kubernetes.resources import (
    EVENTS,
    JOB_UID,
    JOBS,
    JOBSET_NAME,
    JOBSETS,
    NODES,
    PODS,
    QUOTAS,
    TRAINJOBS,
)
from astrago_trainer.engines.kubernetes.runtimes import InstalledRuntimes
from astrago_trainer.engines.kubernetes.stopping import delete_leftovers, delete_trainjob
from astrago_trainer.engines.kubernetes.stranded import Stranded
from astrago_trainer.engines.kubernetes.tenants import TenantPolicy
from astrago_trainer.engines.kubernetes.waiting import UNSCHEDULABLE
from astrago_trainer.engines.kubernetes.watching import Watched
from astrago_trainer.logs.limits import LogLimits

SYNC_SECONDS = 20.0
"""For the first lists, and for a watch to show what was written; both take milliseconds on a healthy cluster."""
END_SECONDS = 90.0
"""For pods to go: three times the usual grace. After that the caller is told and comes again."""
_DRAIN_SECONDS = 10.0
LAST_LINES_SECONDS = 30.0
"""For the logs of a job that has ended to come to their ends; they do within a moment, unless the way is bad."""
_READING = "the job has ended; the last lines of its logs are being read"
_HOLDS_ROOM = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"


class KubernetesEngine:
    """The jobs of one cluster, or of some of its namespaces."""

    name: ClassVar[str] = "kubernetes"
    abilities = frozenset({Ability.SUSPEND, Ability.NODES, Ability.NAMESPACES, Ability.QUOTA})

    def __init__(
        self,
        data: Path,
        *,
        access: Access | None = None,
        namespaces: Sequence[str] | None = None,
        tenants: TenantPolicy | None = None,
        step: Callable[[str], None] = lambda _: None,
        log_limits: LogLimits = LogLimits(),  # noqa: B008 - a constant
    ) -> None:
        """`namespaces`: all of them unless told; `tenants`: what a tenant's namespace is to hold.

        `step` is called between the writes of apply, by name: tests end the process there.
        """
        self._data = data
        self._log_limits = log_limits
        self._access = access
        self._namespaces = [""] if namespaces is None else list(namespaces)
        self._tenants = tenants or TenantPolicy()
        self._step = step
        self._client: Client | None = None
        self._logs: LogCollector | None = None
        self._stranded: Stranded | None = None
        self._board = Board(self.logs, self._on_change)
        self._watched: list[Watched[Any]] = []
        self._nodes: Watched[ClusterNode] | None = None
        self._runtimes: InstalledRuntimes | None = None
        self._pods: list[Watched[Pod]] = []
        self._others: list[Watched[OtherPod]] = []
        self._quotas: list[Watched[ResourceQuota]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._listeners: set[_Listener] = set()
        self._awaited: set[Handle] = set()
        self._folders: dict[Path, Handle] = {}
        self._ended: dict[Handle, float] = {}
        self._absent: dict[str, Absence] = {}
        """What is the matter with nodes, to notice when it changes."""
        self._stopping: set[Key] = set()
        """Whose pods are ours though their TrainJob is gone."""

    async def apply(self, handle: Handle, effective: Effective) -> None:
        client = await self._ready()
        written = await apply(client, handle, effective, self._step)
        uid, version = str(written["metadata"]["uid"]), str(written["metadata"]["resourceVersion"])
        key = handle.namespace, handle.name
        # What was written must be seen before anybody asks: a job that seems to be gone would be made again.
        if not await self._board.until(
            key, lambda found: _shows(found, uid, version), SYNC_SECONDS
        ):
            raise EngineUnavailable(f"the watch does not show TrainJob {key[0]}/{key[1]} yet")
        is_suspended = effective.suspend and bool(written["spec"].get("suspend"))
        if is_suspended and not await self._board.until(key, _has_no_pods, END_SECONDS):
            raise EngineUnavailable(
                f"pods of {key[0]}/{key[1]} still run after {END_SECONDS:.0f} s"
            )

    async def observe(self, handle: Handle) -> Observation:
        client = await self._ready()
        objects = self._board.find(handle)
        if objects is None:
            # Rare, and grave: the caller makes a job that is gone anew. So the truth is asked for.
            found = await client.find(TRAINJOBS, handle.namespace, handle.name)
            if found is not None and is_ours(found, handle):
                raise EngineUnavailable(
                    f"the watch does not show TrainJob {handle.namespace}/{handle.name} yet"
                )
            return GONE
        journal = self._board.journal(handle)
        failures = with_last_words(journal.failures, self.logs(handle))
        seen = observe(
            objects,
            failures=failures,
            events=journal.events,
            absent=self._absences(objects),
            now=time.time(),
        )
        if seen.reason == UNSCHEDULABLE:
            return self._with_numbers(seen, objects)
        if (
            seen.phase is not None
            and is_terminal(seen.phase)
            and self._reads_on(handle, is_ahead_of_pods(objects, seen))
        ):
            return replace(seen, phase=Phase.RUNNING, reason="ReadingLogs", message=_READING)
        return seen

    async def stop(self, handle: Handle) -> None:
        client = await self._ready()
        key = handle.namespace, handle.name
        uid = await delete_trainjob(client, handle)

        def is_over(found: JobObjects) -> bool:
            is_there = found.trainjob is not None and found.trainjob.metadata.uid == uid
            return not is_there and not _rest(found, handle)

        is_anothers = uid is None
        if not is_anothers and not await self._goes(key, is_over):
            raise EngineUnavailable(
                f"{_left(self._board.get(key))} of {key[0]}/{key[1]} are still there after {END_SECONDS:.0f} s"
            )
        await delete_leftovers(client, handle)
        self._ended.pop(handle, None)
        if self._logs is not None:
            await self._logs.drain(self.logs(handle), _DRAIN_SECONDS)

    async def changes(self) -> AsyncIterator[Handle]:
        listener = _Listener()
        self._listeners.add(listener)
        try:
            self._start()
            while True:
                yield await listener.next()
        finally:
            self._listeners.discard(listener)

    def logs(self, handle: Handle) -> Path:
        return self._data / "jobs" / handle.namespace / f"{handle.name}-{handle.uid}"

    async def nodes(self) -> list[Node]:
        """Needs the right to read nodes, and pods of all namespaces; what may not be read is not there."""
        await self._ready()
        if self._nodes is not None and self._nodes.trouble and not self._nodes.objects:
            raise EngineUnavailable(f"the nodes cannot be read: {self._nodes.trouble}")
        return self._seen_nodes()

    def runtimes(self) -> Mapping[str, Mapping[str, Any]] | None:
        return None if self._runtimes is None else self._runtimes.manifests()

    async def quota(self, namespace: str) -> list[Quota]:
        await self._ready()
        found = (quota for each in self._quotas for quota in each.objects)
        return tightest(each for each in found if each.metadata.namespace == namespace)

    async def make_namespace(self, namespace: str) -> None:
        await make_namespace(self._start(), namespace, self._tenants)

    async def find_namespace(self, namespace: str) -> FoundNamespace | None:
        if self._namespaces != [""] and namespace not in self._namespaces:
            raise EngineRejected(
                f"this server watches the namespaces {', '.join(self._namespaces)} alone, because its account may not "
                f"watch all of them. Start it with "
                f"ASTRAGO_NAMESPACES='{','.join((*self._namespaces, namespace))}' to use {namespace!r}"
            )
        return await find_namespace(self._start(), namespace)

    async def adopt_namespace(self, namespace: str) -> None:
        await adopt_namespace(self._start(), namespace, self._tenants)

    async def dialect(self) -> str:
        """The release of the Trainer whose fields are to be written."""
        return await find_dialect(self._start())

    async def close(self) -> None:
        """Jobs go on; whoever opens an engine on the same data folder goes on as well."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks, self._watched = [], []
        self._nodes, self._runtimes = None, None
        self._pods, self._others, self._quotas = [], [], []
        if self._stranded is not None:
            await self._stranded.close()
        if self._logs is not None:
            await self._logs.close()
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _ready(self) -> Client:
        """With everything listed once."""
        client = self._start()
        try:
            async with asyncio.timeout(SYNC_SECONDS):
                for each in self._watched:
                    await each.is_listed.wait()
        except TimeoutError:
            trouble = next((each.trouble for each in self._watched if each.trouble), "no answer")
            raise EngineUnavailable(f"the cluster cannot be watched: {trouble}") from None
        return client

    def _start(self) -> Client:
        if self._client is not None:
            return self._client
        self._client = client = Client(self._access or find_access())
        self._logs = LogCollector(client, self._logs_ended, limits=self._log_limits)
        for namespace in self._namespaces:
            self._watch_jobs(client, namespace)
        self._nodes = Watched(client, NODES, ClusterNode, self._take_node, is_needed=False)
        self._stranded = Stranded(client, self._nodes.find, self._pod_now)
        self._runtimes = InstalledRuntimes(client)
        self._watched += [self._nodes, self._runtimes.watched]
        self._tasks = [asyncio.create_task(self._keep(each)) for each in self._watched]
        return client

    def _watch_jobs(self, client: Client, namespace: str) -> None:
        board = self._board
        pods = Watched(client, PODS, Pod, self._take_pod, namespace=namespace, selector=JOBSET_NAME)
        others = Watched(
            client,
            PODS,
            OtherPod,
            _kept,
            namespace=namespace,
            selector=f"!{JOBSET_NAME}",
            fields=_HOLDS_ROOM,
            is_needed=False,
        )
        quotas = Watched(client, QUOTAS, ResourceQuota, _kept, namespace=namespace, is_needed=False)
        self._pods.append(pods)
        self._others.append(others)
        self._quotas.append(quotas)
        self._watched += [
            Watched(
                client,
                TRAINJOBS,
                TrainJob,
                self._take_trainjob,
                namespace=namespace,
                selector=JOB_UID,
            ),
            Watched(
                client,
                JOBSETS,
                JobSet,
                board.take_job_set,
                namespace=namespace,
                is_needed=False,
            ),
            Watched(
                client,
                JOBS,
                Job,
                board.take_job,
                namespace=namespace,
                selector=JOBSET_NAME,
                is_needed=False,
            ),
            pods,
            Watched(
                client,
                EVENTS,
                ClusterEvent,
                board.take_event,
                namespace=namespace,
                is_kept=False,
                is_needed=False,
            ),
            others,
            quotas,
        ]

    def _seen_nodes(self) -> list[Node]:
        return nodes_now(
            () if self._nodes is None else self._nodes.objects,
            (pod for each in self._pods for pod in each.objects),
            (pod for each in self._others for pod in each.objects),
        )

    def _absences(self, objects: JobObjects) -> Mapping[str, Absence]:
        """Of the nodes under a job; none where the role allows no nodes."""
        if self._nodes is None or not self._nodes.objects:
            return NONE
        return absences(objects.pods.values(), self._nodes.find)

    def _with_numbers(self, seen: Observation, objects: JobObjects) -> Observation:
        """The scheduler counts nodes; people want to know how much each of them has."""
        waiting = [
            pod
            for pod in objects.pods.values()
            if not pod.spec.node_name and is_current(pod, seen.attempt)
        ]
        words = room_words(waiting[0], self._seen_nodes()) if waiting else ""
        return replace(seen, message=f"{seen.message.rstrip('.')}. {words}") if words else seen

    async def _keep(self, watched: Watched[Any]) -> None:
        """The TrainJobs first: what is not about one of ours is not looked at."""
        for each in self._watched:
            if each.kind is TrainJob and watched.kind is not TrainJob:
                await each.is_listed.wait()
        await watched.run()

    def _take_trainjob(self, trainjob: TrainJob, is_gone: bool) -> None:
        """Its pods may have been told of before it."""
        self._board.take_trainjob(trainjob, is_gone)
        if not is_gone:
            key = trainjob.metadata.namespace, trainjob.metadata.name
            self._follow(key, self._board.get(key).pods.values())

    def _take_node(self, node: ClusterNode, is_gone: bool) -> None:
        """Only that it falls silent, comes back or goes changes anything for jobs; it says much else of itself."""
        name = node.metadata.name
        absence = None if is_gone else absence_of(node)
        if not is_gone and absence == self._absent.get(name):
            return
        self._absent.pop(name, None)
        if absence is not None:
            self._absent[name] = absence
        there = [pod for each in self._pods for pod in each.objects if pod.spec.node_name == name]
        for key in {_key_of(pod) for pod in there}:
            if (handle := self._board.handle(key)) is not None:
                self._tell(handle)
        for pod in there:
            self._look_if_stranded(pod)

    def _take_pod(self, pod: Pod, is_gone: bool) -> None:
        self._board.take_pod(pod, is_gone)
        if not is_gone:
            self._follow(_key_of(pod), [pod])
            self._look_if_stranded(pod)
        elif self._logs is not None:
            self._logs.forget(pod)

    async def _goes(self, key: Key, is_over: Callable[[JobObjects], bool]) -> bool:
        """Whether what is being removed is gone in time."""
        self._stopping.add(key)
        try:
            for pod in self._board.get(key).pods.values():
                self._look_if_stranded(pod)
            return await self._board.until(key, is_over, END_SECONDS)
        finally:
            self._stopping.discard(key)

    def _look_if_stranded(self, pod: Pod) -> None:
        """Only what is ours: somebody else's JobSets may be in the same namespace."""
        key = _key_of(pod)
        is_ours = self._board.handle(key) is not None or key in self._stopping
        if is_ours and self._stranded is not None:
            self._stranded.look(pod)

    def _pod_now(self, pod: Pod) -> Pod | None:
        return self._board.get(_key_of(pod)).pods.get(pod.metadata.name)

    def _follow(self, key: Key, pods: Iterable[Pod]) -> None:
        handle = self._board.handle(key)
        if handle is not None and self._logs is not None:
            folder = self.logs(handle)
            self._folders[folder] = handle
            self._logs.look(folder, pods)

    def _reads_on(self, handle: Handle, is_ahead: bool) -> bool:
        """Whether its end is to be told later: whoever hears of it takes the logs for whole."""
        is_behind = self._logs is not None and self._logs.is_behind(self.logs(handle))
        if not is_ahead and not is_behind:
            self._ended.pop(handle, None)
            return False
        loop = asyncio.get_running_loop()
        if handle not in self._ended:
            self._ended[handle] = loop.time()
            loop.call_later(LAST_LINES_SECONDS + 0.1, self._tell, handle)
        return loop.time() < self._ended[handle] + LAST_LINES_SECONDS

    def _logs_ended(self, folder: Path) -> None:
        handle = self._folders.pop(folder, None)
        if handle is not None:
            self._tell(handle)

    def _on_change(self, key: Key, handle: Handle | None) -> None:
        if handle is None:
            return
        found = self._board.get(key)
        if found.trainjob is not None and not found.jobs and handle not in self._awaited:
            # A controller that is down changes nothing: somebody has to notice that nothing happens.
            self._awaited.add(handle)
            loop = asyncio.get_running_loop()
            loop.call_later(CONTROLLER_SECONDS + 1, self._nothing_happened, handle)
        self._tell(handle)

    def _nothing_happened(self, handle: Handle) -> None:
        self._awaited.discard(handle)
        if self._board.find(handle) is not None:
            self._tell(handle)

    def _tell(self, handle: Handle) -> None:
        for listener in self._listeners:
            listener.tell(handle)


def _key_of(pod: Pod) -> Key:
    return pod.metadata.namespace, jobset_of(pod)


def _kept(_item: object, _is_gone: bool) -> None:
    """Nobody is told: it is looked at when somebody asks."""


class _Listener:
    """Names with news; one that is told twice before it is heard is heard once."""

    def __init__(self) -> None:
        self._names: dict[Handle, None] = {}
        self._told = asyncio.Event()

    def tell(self, handle: Handle) -> None:
        self._names[handle] = None
        self._told.set()

    async def next(self) -> Handle:
        await self._told.wait()
        first = next(iter(self._names))
        del self._names[first]
        if not self._names:
            self._told.clear()
        return first


def _shows(found: JobObjects, uid: str, version: str) -> bool:
    """Versions are numbers that grow; newer ones hold what was written as well."""
    meta = None if found.trainjob is None else found.trainjob.metadata
    return meta is not None and meta.uid == uid and int(meta.resource_version) >= int(version)


def _has_no_pods(found: JobObjects) -> bool:
    return all(pod.status.phase in ("Succeeded", "Failed") for pod in found.pods.values())


def _rest(found: JobObjects, handle: Handle) -> list[str]:
    """Pods of this job; those of a later one of the same name are not meant."""
    if found.trainjob is not None and found.trainjob.metadata.labels.job_uid != handle.uid:
        return []
    return list(found.pods)


def _left(found: JobObjects) -> str:
    return ", ".join(f"pod {name}" for name in found.pods) or "its TrainJob"
