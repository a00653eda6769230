"""The merge: a runtime and a TrainJob become the objects the controller would make, with the origin of every leaf.

It reproduces Kubeflow Trainer 2.1, 2.2 and 2.3 down to list orders and the words of a refusal, and is held to it by
comparison with the operator's own code (`tests/oracle`). The phases, in the order in which they are run:

1. compile: the runtime in the form the API types give it          model.py, schema.py
2. overrides: strategic merge patches over the template            overrides.py, strategic.py
3. admission: what the validating webhook refuses                  admission.py
4. ML policy: torch, MPI, JAX, XGBoost, or none of them            plugins/
5. pod group policy: gang scheduling                               plugins/podgroup.py
6. build: counts, initializers, `spec.trainer`, labels, suspend    build.py
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from astrago_trainer.core.errors import Problem
from astrago_trainer.core.merge.admission import check_admission, check_reference
from astrago_trainer.core.merge.build import build_job_set, merge_resources
from astrago_trainer.core.merge.model import (
    VERSIONS,
    CompiledRuntime,
    ControllerFailure,
    Job,
    NotSupported,
    Plan,
    compile_runtime,
    read_job,
)
from astrago_trainer.core.merge.origins import Origin, Origins
from astrago_trainer.core.merge.overrides import start_plan
from astrago_trainer.core.merge.plugins import jax, mpi, plainml, podgroup, torch, xgboost
from astrago_trainer.core.merge.schema import Mismatch
from astrago_trainer.core.merge.strategic import PatchError

__all__ = ["VERSIONS", "CompiledRuntime", "Merged", "Origin", "compile_runtime", "merge"]

Json = dict[str, Any]

# The operator runs these in random order; they exclude each other, except plain and XGBoost, which both add variables.
ML_POLICIES = (plainml.enforce, torch.enforce, mpi.enforce, jax.enforce, xgboost.enforce)
BUILDERS = (mpi.objects, podgroup.objects)


@dataclass(frozen=True, slots=True)
class Merged:
    """The outcome. Its objects may share parts with a compiled runtime: read them, do not change them."""

    objects: tuple[Json, ...]
    """What the controller would apply, the JobSet first; empty when it would be refused."""
    problems: tuple[Problem, ...]
    """What admission says: path, code and message are the controller's field, type and detail."""
    origins: Origins = field(default_factory=Origins, repr=False, compare=False)

    def leaf_origins(self) -> dict[str, Origin]:
        """The origin of each leaf by its JSON pointer, `/0/spec/…` being the JobSet's."""
        return self.origins.leaves(self.objects)

    @property
    def provenance(self) -> dict[str, str]:
        """The same in words: `runtime`, `override 0`, `mlPolicy.torch`, `spec.trainer.image`, `default`…"""
        return {pointer: origin.layer for pointer, origin in self.leaf_origins().items()}


def merge(
    runtime: Mapping[str, Any] | CompiledRuntime,
    trainjob: Mapping[str, Any],
    version: str = "2.1",
    *,
    priority_classes: Collection[str] = (),
) -> Merged:
    """What the controller of that version makes of the pair. Neither input is changed, no CRD default is applied.

    `priority_classes` are those the cluster has; Volcano refuses others.
    """
    compiled = (
        runtime if isinstance(runtime, CompiledRuntime) else compile_runtime(runtime, version)
    )
    job = read_job(trainjob, version)
    misfits = (*compiled.problems, *job.problems)
    if misfits:
        return Merged((), misfits)
    unknown = check_reference(compiled, job)
    if unknown is not None:
        return Merged((), (unknown,))
    try:
        return _merge(compiled, job, priority_classes)
    except (ControllerFailure, PatchError, Mismatch) as failure:
        return Merged((), (Problem("", "InternalError", str(failure)),))
    except NotSupported as gap:
        return Merged((), (Problem("spec.runtimeRef", "NotSupported", str(gap)),))


def _merge(runtime: CompiledRuntime, job: Job, priority_classes: Collection[str]) -> Merged:
    if runtime.policy("flux") is not None:
        raise NotSupported(
            "mlPolicy.flux wraps the command in scripts of the operator's own; it cannot be previewed."
        )
    plan = start_plan(runtime, job)
    merge_resources(plan)
    refusals = check_admission(plan, priority_classes)
    if refusals:
        return Merged((), tuple(refusals))
    for enforce in ML_POLICIES:
        enforce(plan)
    podgroup.enforce(plan)
    return _build(plan)


def _build(plan: Plan) -> Merged:
    extra = [made for build in BUILDERS for made in build(plan)]
    return Merged((build_job_set(plan), *extra), (), plan.origins)
