"""Packages that a job brings: an init container installs them into a volume that the training container uses.

A TrainJob cannot add an init container (M128), so such a job gets a runtime of its own. On one machine the local engine
takes a Python environment with these packages instead of running the container.
"""

from __future__ import annotations

from typing import Any

from astrago_trainer.core.platform import (
    REQUIREMENTS_CONTAINER,
    REQUIREMENTS_VARIABLE,
    Platform,
)
from astrago_trainer.core.render.runtime import NODE, view_runtime
from astrago_trainer.core.spec import JobSpec

Json = dict[str, Any]

_VOLUME, _PATH = "astrago-packages", "/astrago"
USE_PACKAGES = f'export PATH="{_PATH}/packages/bin:$PATH"'
_MEMORY = {"limits": {"cpu": "2", "memory": "2Gi"}, "requests": {"cpu": "100m", "memory": "256Mi"}}
"""Less than a training asks for, so it costs nothing: the pod's request is the largest of both."""


def add_requirements(
    runtime: Json, spec: JobSpec, platform: Platform, *, image: str | None
) -> dict[str, str]:
    """Add the init container to each training job of `runtime`; returns the sources of the added lines."""
    sources: dict[str, str] = {}
    view = view_runtime(runtime)
    training = {job.name for job in view.training_jobs}
    for index, job in enumerate(view.jobs):
        container = job.container(NODE)
        if job.name not in training or container is None:
            continue
        init = job.pod.setdefault("initContainers", [])
        init.append(
            {
                "name": REQUIREMENTS_CONTAINER,
                "image": image or container.get("image", ""),
                "command": ["sh", "-c", platform.requirements_script],
                # One variable, which nothing in the pod reads as shell text.
                "env": [{"name": REQUIREMENTS_VARIABLE, "value": "\n".join(spec.requirements)}],
                "resources": _MEMORY,
                "volumeMounts": [{"name": _VOLUME, "mountPath": _PATH}],
            }
        )
        job.pod.setdefault("volumes", []).append({"name": _VOLUME, "emptyDir": {}})
        mounts = container.setdefault("volumeMounts", [])
        mounts.append({"name": _VOLUME, "mountPath": _PATH, "readOnly": True})
        place = f"spec.template.spec.replicatedJobs[{index}].template.spec.template.spec"
        sources[f"{place}.initContainers[{len(init) - 1}]"] = "requirements"
    return sources
