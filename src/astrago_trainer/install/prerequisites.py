"""What must be in the cluster before us: Kubeflow Trainer, which brings JobSet. Pure, but for the one that asks."""

from __future__ import annotations

from dataclasses import dataclass

from astrago_trainer.core.errors import Problem
from astrago_trainer.engines.base import EngineRejected
from astrago_trainer.engines.kubernetes.client import NotFound
from astrago_trainer.engines.kubernetes.dialect import find_dialect
from astrago_trainer.install.cluster import InstallClient

RELEASES = {"2.1": "v2.1.0", "2.2": "v2.2.1", "2.3": "v2.3.0"}
"""Of the Trainer, as tests run against them; each brings the JobSet that belongs to it."""
JOBSET_RELEASES = {"2.1": "v0.10.1", "2.2": "v0.11.1", "2.3": "v0.12.0"}
_LOWEST_MINOR = 30
"""ValidatingAdmissionPolicy is v1 since Kubernetes 1.30."""


@dataclass(frozen=True, slots=True)
class Operators:
    """What was found; empty for what is missing."""

    kubernetes: str
    trainer: str
    """`2.1`, `2.2` or `2.3`, by its schema."""
    has_jobset: bool


async def find_operators(client: InstallClient) -> Operators:
    """Raises EngineUnavailable when the API server cannot be asked."""
    version = await client.get("/version")
    try:
        trainer = await find_dialect(client)
    except EngineRejected:
        trainer = ""
    try:
        await client.get("/apis/jobset.x-k8s.io/v1alpha2")
        has_jobset = True
    except NotFound:
        has_jobset = False
    return Operators(str(version.get("gitVersion", "")), trainer, has_jobset)


def check_operators(found: Operators) -> list[Problem]:
    """Everything that is missing, with the commands that bring it."""
    problems = []
    if not found.trainer:
        problems.append(
            Problem(
                "Kubeflow Trainer",
                "missing",
                "the cluster has no Kubeflow Trainer 2.1, 2.2 or 2.3 (trainer.kubeflow.org/v1alpha1).",
                f"Install one of them, with its JobSet: {trainer_commands()[0]} "
                f"(or {', '.join(list(RELEASES.values())[1:])})",
            )
        )
    if not found.has_jobset:
        commands = jobset_commands(found.trainer) if found.trainer else []
        remedy = f"Install it: {commands[0]}" if commands else "It comes with the Trainer."
        problems.append(
            Problem(
                "JobSet",
                "missing",
                "the cluster has no JobSet (jobset.x-k8s.io/v1alpha2), without which no job gets pods.",
                remedy,
            )
        )
    minor = minor_of(found.kubernetes)
    if minor is not None and minor < _LOWEST_MINOR:
        message = (
            f"{found.kubernetes} has no admission policies; 1.{_LOWEST_MINOR} or later is needed."
        )
        problems.append(Problem("Kubernetes", "too-old", message))
    return problems


def trainer_commands() -> list[str]:
    """One for each release."""
    return [
        f'kubectl apply --server-side -k "https://github.com/kubeflow/trainer.git/manifests/overlays/manager?ref={tag}"'
        for tag in RELEASES.values()
    ]


def jobset_commands(dialect: str) -> list[str]:
    tag = JOBSET_RELEASES[dialect]
    return [
        "kubectl apply --server-side -f "
        f"https://github.com/kubernetes-sigs/jobset/releases/download/{tag}/manifests.yaml"
    ]


def minor_of(version: str) -> int | None:
    """`v1.34.4-eks-1` is 34."""
    parts = version.lstrip("v").split(".")
    return int(parts[1]) if len(parts) > 1 and parts[1].isdecimal() else None
