"""The crash sweep of the service on the cluster: `… -m tests.cluster.service.sweep NAMESPACE VERSION cluster submit 1`.

What is there of a job is asked from the API server. Between the writes of a creation there are points as well. A job
that runs has a log, and whoever was killed while it was followed, the whole of it is kept once.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from cluster.layout import Layout
from tests.cluster.api import Api, Space
from tests.service import crashes
from tests.service.engines_for_crashes import ENGINES

from astrago_trainer.catalogue import default_platform
from astrago_trainer.core.render.configmaps import USER_LABEL
from astrago_trainer.engines.base import Ability, Effective, Handle, Observation
from astrago_trainer.engines.kubernetes.credentials import kubeconfig_access
from astrago_trainer.engines.kubernetes.engine import KubernetesEngine
from astrago_trainer.engines.kubernetes.resources import JOB_UID
from astrago_trainer.store.crash import crash_point

NAMESPACE = sys.argv[1] if __name__ == "__main__" else ""
LINES = [str(number) for number in range(1, 501)]


class Moved:
    """The engine, with the sweep's namespace `team` in the one of the test."""

    name = KubernetesEngine.name
    abilities = frozenset({Ability.SUSPEND})

    def __init__(self, data: Path) -> None:
        access = kubeconfig_access(Layout.default().kubeconfig)
        self._engine = KubernetesEngine(
            data,
            access=access,
            namespaces=[NAMESPACE],
            step=lambda name: crash_point(f"step: {name}"),
        )

    async def apply(self, handle: Handle, effective: Effective) -> None:
        await self._engine.apply(there(handle), effective)

    async def observe(self, handle: Handle) -> Observation:
        return await self._engine.observe(there(handle))

    async def stop(self, handle: Handle) -> None:
        await self._engine.stop(there(handle))

    async def changes(self) -> AsyncIterator[Handle]:
        async for handle in self._engine.changes():
            yield replace(handle, namespace="team")

    def logs(self, handle: Handle) -> Path:
        return self._engine.logs(there(handle))


def there(handle: Handle) -> Handle:
    return replace(handle, namespace=NAMESPACE)


class Cluster:
    """See `engines_for_crashes.Witness`."""

    command = f"seq 1 {LINES[-1]}; exec sleep 1000"

    def __init__(self, data: Path) -> None:
        self.engine = Moved(data)
        self._data = data
        self._space = Space(Api(Layout.default()), NAMESPACE)

    async def until_started(self) -> None:
        while not (self.running() and self.starts()):
            await asyncio.sleep(0.05)
        while len(found := self._logged()) < len(LINES):
            await asyncio.sleep(0.05)
        assert found == LINES, f"the log is not whole: {len(found)} lines, {found[:3]}…{found[-3:]}"

    def _logged(self) -> list[str]:
        """What the store has of the job's own lines; the prelude's come before them."""
        folder = self._data / "jobs" / NAMESPACE
        lines = [
            line
            for path in folder.glob("job-*/logs/*/*/node.log")
            for line in path.read_text(encoding="utf-8").splitlines()
        ]
        return lines[lines.index(LINES[0]) :] if LINES[0] in lines else []

    def running(self) -> list[str]:
        return [
            f"{each['metadata']['name']}-{each['metadata']['labels'][JOB_UID]}"
            for each in self._space.list("trainjobs")
        ]

    def starts(self) -> list[str]:
        return [each["metadata"]["name"] for each in self._space.list("pods")]

    def left(self) -> list[str]:
        folders = [str(path) for path in (self._data / "jobs").glob("*/*")]
        objects = [
            f"{kind}/{each['metadata']['name']}"
            for kind in ("trainjobs", "jobsets", "pods", "trainingruntimes", "configmaps")
            for each in self._space.list(kind)
            if kind != "configmaps" or USER_LABEL in (each["metadata"].get("labels") or {})
        ]
        return folders + objects

    def clean_up(self) -> None:
        for each in self._space.list("trainjobs"):
            self._space.delete("trainjobs", each["metadata"]["name"])
        end = time.monotonic() + crashes.PATIENCE
        while any(self._space.list(kind) for kind in ("trainjobs", "jobsets", "pods")):
            assert time.monotonic() < end
            time.sleep(0.05)


def main() -> Any:
    ENGINES["cluster"] = Cluster
    crashes.platform = default_platform(sys.argv[2])  # type: ignore[arg-type]
    del sys.argv[1:3]
    return crashes.main()


if __name__ == "__main__":
    sys.exit(main())
