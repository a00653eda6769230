"""Pods that are to go from a node that does not answer are taken off it by force.

Nobody there says that they have ended, so they would stay for as long as the node is silent, and JobSet does not start
the group elsewhere before the last of them is gone (jobset#576). Ranks that still run beyond a broken line are cut off
from their group, which has gone on without them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from astrago_trainer.engines.base import EngineError
from astrago_trainer.engines.kubernetes.absence import is_stranded
from astrago_trainer.engines.kubernetes.client import Client, Conflict, NotFound
from astrago_trainer.engines.kubernetes.objects import Node, Pod
from astrago_trainer.engines.kubernetes.resources import PODS

WAIT_SECONDS = 10.0
"""Once the node is silent and the pod is to go: for a line that is back in this very moment."""

_log = logging.getLogger(__name__)


class Stranded:
    """Those of one cluster."""

    def __init__(
        self,
        client: Client,
        find_node: Callable[[str], Node | None],
        pod_now: Callable[[Pod], Pod | None],
    ) -> None:
        """Nodes by name, and what has become of a pod."""
        self._client = client
        self._find_node = find_node
        self._pod_now = pod_now
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def look(self, pod: Pod) -> None:
        """Called whenever a pod of ours, or its node, has changed."""
        uid = pod.metadata.uid
        if uid not in self._tasks and self._is_stranded(pod):
            self._tasks[uid] = task = asyncio.create_task(self._take_off(pod))
            task.add_done_callback(lambda _: self._tasks.pop(uid, None))

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _take_off(self, pod: Pod) -> None:
        meta, node = pod.metadata, pod.spec.node_name
        while True:
            await asyncio.sleep(WAIT_SECONDS)
            now = self._pod_now(pod)
            if now is None or now.metadata.uid != meta.uid or not self._is_stranded(now):
                return
            try:
                await self._client.delete(
                    PODS, meta.namespace, meta.name, uid=meta.uid, at_once=True
                )
            except (NotFound, Conflict):
                return
            except EngineError as error:
                _log.warning("pod %s/%s stays on %s: %s", meta.namespace, meta.name, node, error)
            else:
                _log.info("pod %s/%s was taken off silent %s", meta.namespace, meta.name, node)

    def _is_stranded(self, pod: Pod) -> bool:
        return is_stranded(pod, self._find_node(pod.spec.node_name))
