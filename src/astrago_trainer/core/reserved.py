"""Environment variables that belong to the platform or the operator: a user's value would break the
job or be lost.

Only names that something really sets are refused. `LD_PRELOAD`, `PATH`, `NCCL_*`, `JAX_PLATFORMS`
or `OMPI_MCA_btl` stay free: a pod is its user's own, and tuning it is the point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from astrago_trainer.core.errors import Problem
from astrago_trainer.core.platform import FRAMEWORKS, Framework

_ALL = frozenset(FRAMEWORKS)
_TORCH = frozenset[Framework]({"pytorch"})
_TENSORFLOW = frozenset[Framework]({"tensorflow"})
_HOROVOD = frozenset[Framework]({"horovod"})


@dataclass(frozen=True, slots=True)
class ReservedVariable:
    """One name, or all names with one beginning (`PET_*`), that a request must not set."""

    pattern: str
    set_by: str
    reason: str
    instead: str
    frameworks: frozenset[Framework] = _ALL

    def covers(self, name: str, framework: Framework) -> bool:
        if framework not in self.frameworks:
            return False
        if self.pattern.endswith("*"):
            return name.startswith(self.pattern[:-1])
        return name == self.pattern

    def refusal(self, name: str) -> str:
        return f"{name} is reserved: {self.set_by} sets it, because {self.reason}."


def _torch(pattern: str, reason: str, instead: str) -> ReservedVariable:
    return ReservedVariable(pattern, "the platform's prelude, or torchrun", reason, instead, _TORCH)


def _mpi(pattern: str, reason: str, instead: str) -> ReservedVariable:
    return ReservedVariable(pattern, "Trainer's MPI policy", reason, instead, _HOROVOD)


_ADDRESS = "it follows from the job's name and the pod's index"
_SIZE = "it follows from nodes and processes_per_node"

RESERVED: tuple[ReservedVariable, ...] = (
    ReservedVariable(
        "PET_*",
        "Trainer's torch policy (TensorFlow: the platform)",
        "it tells torchrun and the prelude about the group",
        "Set nodes and processes_per_node, or give torchrun the option in the command.",
    ),
    _torch("RANK", _ADDRESS, "Read it in the code; set nodes for the number of ranks."),
    _torch("WORLD_SIZE", _SIZE, "Set nodes."),
    _torch("LOCAL_RANK", "it numbers the processes of one node", "Read it in the code."),
    _torch("LOCAL_WORLD_SIZE", _SIZE, "Set processes_per_node."),
    _torch("MASTER_ADDR", _ADDRESS, "Read it in the code; worker 0 is always the master."),
    _torch("MASTER_PORT", "the operator opens this port", "Read it in the code."),
    ReservedVariable(
        "TF_CONFIG",
        "the platform's generator",
        "it lists the addresses of all workers",
        "Set nodes; TF_PORT changes the port.",
        _TENSORFLOW,
    ),
    ReservedVariable(
        "NUM_WORKERS",
        "the platform",
        "the generator of TF_CONFIG reads the number of nodes from it",
        "Set nodes; give data loaders their number under another name.",
        _TENSORFLOW,
    ),
    ReservedVariable(
        "NAMESPACE",
        "the runtime",
        "the generator of TF_CONFIG builds host names from it",
        "Use another name.",
        _TENSORFLOW,
    ),
    _mpi("OMPI_MCA_orte_default_hostfile", _ADDRESS, "Set nodes."),
    _mpi("OMPI_MCA_orte_set_default_slots", _SIZE, "Set processes_per_node."),
    _mpi("OMPI_MCA_orte_keep_fqdn_hostnames", "host names of pods need it", "Leave it out."),
    _mpi("OMPI_MCA_plm_rsh_args", "workers may start late", "Pass --mca to mpirun."),
    ReservedVariable(
        "OMPI_COMM_WORLD_*", "mpirun", "it numbers the processes", "Read it in the code.", _HOROVOD
    ),
    ReservedVariable(
        "JOB_COMPLETION_INDEX",
        "Kubernetes",
        "it is the pod's index, from which ranks follow",
        "Read it in the code.",
    ),
    ReservedVariable(
        "HOSTNAME",
        "Kubernetes",
        "other pods find this one under that name",
        "Use another name.",
    ),
    *(
        ReservedVariable(
            name, "Trainer's JAX policy", "it describes the group to JAX", "Set nodes."
        )
        for name in ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "JAX_COORDINATOR_ADDRESS")
    ),
    *(
        ReservedVariable(
            name, "Trainer's XGBoost policy", "it describes the group to XGBoost", "Set nodes."
        )
        for name in ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER")
    ),
    ReservedVariable(
        "KUBEFLOW_TRAINER_*",
        "Trainer",
        "progress is reported to the address it holds",
        "Leave it out; transformers and the Kubeflow SDK read it by themselves.",
    ),
    ReservedVariable(
        "ASTRAGO_*",
        "the platform",
        "the platform talks to its own scripts with these names",
        "Use another name.",
    ),
)


def check_reserved(env_names: Sequence[str], framework: Framework) -> tuple[Problem, ...]:
    """One problem for each name that is taken, with who sets it and what to do instead."""
    return tuple(
        Problem(
            path=f"env[{index}].name",
            code="FieldValueForbidden",
            message=variable.refusal(name),
            remedy=variable.instead,
        )
        for index, name in enumerate(env_names)
        if (variable := find_reserved(name, framework)) is not None
    )


def find_reserved(name: str, framework: Framework) -> ReservedVariable | None:
    """The rule that reserves `name` for jobs of this framework."""
    return next((each for each in RESERVED if each.covers(name, framework)), None)
