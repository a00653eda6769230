"""When a job needs a runtime of its own, and what is changed in that copy.

Restarts cannot be set by a TrainJob, nor image and resources of MPI workers (trainer-facts 1.6,
1.11), nor can it add the init container that installs packages; a request for one of them makes a
TrainingRuntime that goes with the job.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from astrago_trainer.core.platform import Platform
from astrago_trainer.core.render.draft import Draft
from astrago_trainer.core.render.requirements import add_requirements
from astrago_trainer.core.render.resources import resources_of
from astrago_trainer.core.render.runtime import (
    NODE,
    RuntimeView,
    own_runtime,
    restarts_of,
    set_restarts,
    set_worker,
    view_runtime,
)
from astrago_trainer.core.render.trainer import image_of
from astrago_trainer.core.spec import JobSpec

Json = dict[str, Any]


def find_own_runtime(
    spec: JobSpec, runtime: Mapping[str, Any], platform: Platform, *, job: str
) -> tuple[Json | None, Mapping[str, str]]:
    """The job's own copy of `runtime` and the sources of its changes; None where none is needed."""
    view = view_runtime(runtime)
    restarts = spec.max_restarts
    if restarts is None:
        restarts = platform.default_max_restarts
    needs_restarts = restarts is not None and restarts != restarts_of(runtime)
    image, resources = _worker_changes(spec, view, platform)
    if not (needs_restarts or image is not None or resources.value or spec.requirements):
        return None, {}

    own = own_runtime(runtime, job=job, namespace=spec.namespace, user=spec.user)
    sources: dict[str, str] = {}
    if needs_restarts and restarts is not None:
        set_restarts(own, restarts)
        if spec.max_restarts is not None:
            sources["spec.template.spec.failurePolicy.maxRestarts"] = "max_restarts"
    if image is not None or resources.value:
        set_worker(own, image=image, resources=resources.value)
        place = _worker_path(view)
        if image is not None and spec.image is not None:
            sources[f"{place}.image"] = "image"
        for path, field in resources.sources.items():
            sources[f"{place}.resources.{path}"] = field
    if spec.requirements:
        sources |= add_requirements(own, spec, platform, image=image_of(spec, view, platform))
    return own, sources


def _worker_changes(
    spec: JobSpec, view: RuntimeView, platform: Platform
) -> tuple[str | None, Draft]:
    """Image and resources that MPI workers lack; a launcher that is a node shares its resources."""
    container = _worker_container(view)
    if container is None:
        return None, Draft()
    image = image_of(spec, view, platform)
    changed_image = image if image != container.get("image") else None
    if view.has_launcher_as_node:
        return changed_image, Draft()
    base = container.get("resources")
    wanted = resources_of(spec.resources, "resources", base if isinstance(base, dict) else {})
    return changed_image, wanted


def _worker_container(view: RuntimeView) -> Json | None:
    if view.policy != "mpi":
        return None
    return next((job.container(NODE) for job in view.jobs if job.name == NODE), None)


def _worker_path(view: RuntimeView) -> str:
    job = [each.name for each in view.jobs].index(NODE)
    names = [each.get("name") for each in view.jobs[job].pod["containers"]]
    return (
        f"spec.template.spec.replicatedJobs[{job}].template.spec.template.spec"
        f".containers[{names.index(NODE)}]"
    )
