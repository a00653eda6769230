"""Follows every container of our jobs from its first byte and keeps what it writes, because its pod will take it along.

One connection per running container, one file per attempt, rank and container, as on the local engine. A rank whose pod
or container starts again within an attempt goes on in the same file. The place in the kubelet's log is kept beside the
file, so that another process goes on there: nothing twice, nothing lost that the kubelet still has.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from datetime import datetime
from functools import partial
from pathlib import Path
from weakref import WeakValueDictionary

import msgspec

from astrago_trainer.engines.base import EngineUnavailable
from astrago_trainer.engines.kubernetes.client import Client, Refused
from astrago_trainer.engines.kubernetes.log_lines import LogLines, Position
from astrago_trainer.engines.kubernetes.objects import ContainerStatus, Pod
from astrago_trainer.engines.kubernetes.pods import attempt_of, name_of, statuses_of
from astrago_trainer.engines.kubernetes.resources import PODS
from astrago_trainer.logs.layout import log_path
from astrago_trainer.logs.limits import LogLimits
from astrago_trainer.logs.writer import LogWriter

_FIRST_DELAY, _LONGEST_DELAY = 0.2, 10.0
_MOST_REFUSALS = 5
"""In a row, of a container that has ended: about 6 s, in which a kubelet finds its pods again."""
_STATUS_SECONDS = 2.0
"""The kubelet tells of an end within about a second after the log has ended."""

_AT_ONCE = 32
"""Logs of ended containers that are read at once: a server that starts may find thousands of them."""
_LONGEST_ABSENCE = 300.0
"""Between two tries at the log of an ended container whose node does not answer; the pod may lie there for days."""

_log = logging.getLogger(__name__)

Container = tuple[str, str]
"""The uid of its pod, and its name."""


class LogCollector:
    """All followed containers of one engine."""

    def __init__(
        self,
        client: Client,
        on_end: Callable[[Path], None] = lambda _: None,
        *,
        limits: LogLimits = LogLimits(),  # noqa: B008 - a constant
    ) -> None:
        """`on_end` is told the folder of a job whose logs are at their ends."""
        self._limits = limits
        self._client = client
        self._on_end = on_end
        self._open: Counter[Path] = Counter()
        """How many logs of a job's folder are being read."""
        self._followers: dict[Container, _Follower] = {}
        self._whole: set[Container] = set()
        """Read to the end, of pods that are still there: most of them, so no more than this is kept."""
        self._locks: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()
        """Two pods of one rank follow one another in one file; a lock is held by those who follow."""
        self._turns = asyncio.Semaphore(_AT_ONCE)

    def look(self, folder: Path, pods: Iterable[Pod]) -> None:
        """Follows what has begun, and passes the news on to who follows already."""
        for pod in pods:
            for status in statuses_of(pod):
                who = pod.metadata.uid, status.name
                if who in self._whole:
                    continue
                if who in self._followers:
                    self._followers[who].tell(pod)
                elif _has_begun(status):
                    path = log_path(folder, attempt_of(pod), name_of(pod), status.name)
                    lock = self._locks.setdefault(path, asyncio.Lock())
                    writer = partial(LogWriter, path, limits=self._limits, tenant=folder.parent)
                    follower = _Follower(
                        self._client, pod, status.name, path, lock, self._turns, writer
                    )
                    self._followers[who] = follower
                    self._open[folder] += 1
                    follower.task.add_done_callback(partial(self._ended, folder, who))

    def is_behind(self, folder: Path) -> bool:
        """Whether something below this folder is still being read."""
        return folder in self._open

    def _ended(self, folder: Path, who: Container, _: asyncio.Task[None]) -> None:
        if not self._followers.pop(who).is_gone:
            self._whole.add(who)
        self._open[folder] -= 1
        if not self._open[folder]:
            del self._open[folder]
            self._on_end(folder)

    def forget(self, pod: Pod) -> None:
        """The pod is gone: what is being read is read to its end."""
        for status in statuses_of(pod):
            who = pod.metadata.uid, status.name
            self._whole.discard(who)
            if (follower := self._followers.get(who)) is not None:
                follower.tell(None)

    async def drain(self, folder: Path, seconds: float) -> None:
        """Returns when the logs below this folder are at their ends."""
        mine = [each.task for each in self._followers.values() if folder in each.path.parents]
        if mine:
            _, late = await asyncio.wait(mine, timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def close(self) -> None:
        tasks = [each.task for each in self._followers.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Place(msgspec.Struct, array_like=True):
    """The writer's token: where we are in which pod's log."""

    pod: str = ""
    created: str = ""
    """Pods of one rank follow one another; a later one is begun when the earlier one has been read."""
    read: int = -1
    """The last start of the container of which everything is here."""
    stamp: str = ""
    size: int = 0


class _Follower:
    """One container of one pod, through all its starts."""

    def __init__(
        self,
        client: Client,
        pod: Pod,
        container: str,
        path: Path,
        lock: asyncio.Lock,
        turns: asyncio.Semaphore,
        writer: Callable[[], LogWriter],
    ) -> None:
        self._client = client
        self._pod = pod
        self._container = container
        self.path = path
        self._lock = lock
        self._turns = turns
        self._writer = writer
        self.is_gone = False
        self._news = asyncio.Event()
        self.task = asyncio.create_task(self._run(), name=f"log of {pod.metadata.name}")

    def tell(self, pod: Pod | None) -> None:
        """How the pod is now; None when it is gone."""
        if pod is None:
            self.is_gone = True
        else:
            self._pod = pod
        self._news.set()

    async def _run(self) -> None:
        """Until everything is in the file; a full disk is waited out, for the kubelet has it meanwhile."""
        delay = _FIRST_DELAY
        try:
            async with self._lock:
                while True:
                    try:
                        if await self._is_written():
                            return
                        pause, delay = delay, min(delay * 2, _LONGEST_ABSENCE)
                    except OSError as error:
                        _log.warning("the log %s cannot be written: %s", self.path, error)
                        pause = _LONGEST_DELAY
                    self._news.clear()
                    await self._wait(pause)
        except Exception:
            _log.exception("the log %s is not kept up", self.path)

    async def _is_written(self) -> bool:
        """One that has ended waits for its turn, which costs nobody anything."""
        has_ended = _is_final(self._pod, self._status())
        async with self._turns if has_ended else nullcontext():
            writer = await asyncio.to_thread(self._writer)
            try:
                return await self._follow(writer, has_ended=has_ended)
            finally:
                await asyncio.shield(asyncio.to_thread(writer.close))

    async def _follow(self, writer: LogWriter, *, has_ended: bool) -> bool:
        """Whether all of it is there. One that `has_ended` gives its turn away when nobody answers."""
        place = self._taken_up(writer)
        if place is None or (has_ended and place.read >= self._status().restart_count):
            return True
        delay, refusals, silence = _FIRST_DELAY, 0, _STATUS_SECONDS
        while True:
            self._news.clear()
            status, is_gone = self._status(), self.is_gone
            try:
                if status.restart_count > place.read + 1:
                    await self._read(writer, place, is_previous=True)
                    place.read = status.restart_count - 1
                is_new = await self._read(writer, place)
                delay, refusals = _FIRST_DELAY, 0
            except Refused as error:
                # The kubelet no longer has it; or has just started again, and does not know its pods yet.
                refusals += 1
                _log.info("%s of %s: %s", self._container, self._pod.metadata.name, error)
                if is_gone or (refusals > _MOST_REFUSALS and _is_final(self._pod, status)):
                    return True
                await self._wait(delay)
                delay = min(delay * 2, _LONGEST_DELAY)
                continue
            except EngineUnavailable:
                if has_ended:
                    return False
                await self._wait(delay)
                delay = min(delay * 2, _LONGEST_DELAY)
                continue
            if is_gone:
                return True
            if status.state.terminated is not None:  # known before the read, so that was all of it
                place.read = status.restart_count
                writer.token = msgspec.json.encode(place)
                if _is_final(self._pod, status):
                    return True
                await self._wait(None)
            else:
                # Cut off, or about to be told of its end; one that stays like this is asked less and less often.
                silence = _STATUS_SECONDS if is_new else min(silence * 2, _LONGEST_DELAY)
                await self._wait(silence)

    def _taken_up(self, writer: LogWriter) -> _Place | None:
        """Where to go on; None when all of this pod is in the file, and a later one too."""
        meta = self._pod.metadata
        created = str(meta.creation_timestamp)
        known = msgspec.json.decode(writer.token, type=_Place) if writer.token else _Place()
        if known.pod == meta.uid:
            return known
        return None if known.created > created else _Place(meta.uid, created)

    async def _read(self, writer: LogWriter, place: _Place, *, is_previous: bool = False) -> bool:
        """To the end of the container, or the present end of the one before it. Whether there was anything new."""
        is_new = False
        lines = LogLines(Position(place.stamp.encode(), place.size))
        meta = self._pod.metadata
        query = {"container": self._container, "timestamps": "true"}
        query |= {"previous": "true"} if is_previous else {"follow": "true"}
        if since := lines.position.since:
            query["sinceTime"] = since
        path = PODS.path(meta.namespace, meta.name, "log")
        # A silent container is no dead line: the connection's keepalive notices a dead one.
        async with self._client.stream(path, query, silence=None) as response:
            async for chunk in response.aiter_bytes():  # as they come: 64 KiB at most
                text = lines.feed(chunk)
                if text:
                    is_new = True
                    place.stamp, place.size = lines.position.stamp.decode(), lines.position.size
                    when = datetime.fromisoformat(place.stamp).timestamp()
                    token = msgspec.json.encode(place)
                    await asyncio.to_thread(writer.append, text, when, token)
        return is_new

    async def _wait(self, seconds: float | None) -> None:
        """For news of the pod, or so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            pass

    def _status(self) -> ContainerStatus:
        return next(each for each in statuses_of(self._pod) if each.name == self._container)


def _has_begun(status: ContainerStatus) -> bool:
    state = status.state
    return state.running is not None or state.terminated is not None or status.restart_count > 0


def _is_final(pod: Pod, status: ContainerStatus) -> bool:
    """Whether the container will not start again in this pod."""
    ended = status.state.terminated
    if pod.status.phase in ("Succeeded", "Failed"):
        return True
    return ended is not None and (
        pod.spec.restart_policy == "Never"
        or (pod.spec.restart_policy == "OnFailure" and ended.exit_code == 0)
    )
