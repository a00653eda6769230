"""Variables that a request must not set, and those that it may."""

from __future__ import annotations

import pytest

from astrago_trainer.core.errors import Problem
from astrago_trainer.core.platform import FRAMEWORKS, Framework
from astrago_trainer.core.reserved import RESERVED, check_reserved, find_reserved

TORCH = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"]
EVERYWHERE = [
    "PET_NNODES",
    "PET_NPROC_PER_NODE",
    "PET_NODE_RANK",
    "PET_MASTER_ADDR",
    "PET_MASTER_PORT",
    "PET_MAX_RESTARTS",
    "JOB_COMPLETION_INDEX",
    "HOSTNAME",
    "JAX_NUM_PROCESSES",
    "JAX_PROCESS_ID",
    "JAX_COORDINATOR_ADDRESS",
    "DMLC_TRACKER_URI",
    "DMLC_TRACKER_PORT",
    "DMLC_TASK_ID",
    "DMLC_NUM_WORKER",
    "KUBEFLOW_TRAINER_SERVER_URL",
    "KUBEFLOW_TRAINER_TOKEN",
    "ASTRAGO_WORKING_DIR",
]
ONLY: dict[Framework, list[str]] = {
    "pytorch": TORCH,
    "tensorflow": ["TF_CONFIG", "NUM_WORKERS", "NAMESPACE"],
    "horovod": [
        "OMPI_MCA_orte_default_hostfile",
        "OMPI_MCA_orte_keep_fqdn_hostnames",
        "OMPI_MCA_orte_set_default_slots",
        "OMPI_MCA_plm_rsh_args",
        "OMPI_COMM_WORLD_RANK",
    ],
}
FREE = [
    "EPOCHS",
    "LD_PRELOAD",
    "PATH",
    "NCCL_DEBUG",
    "TF_PORT",
    "JAX_PLATFORMS",
    "OMPI_MCA_btl",
    "DMLC_ROLE",
    "PETS",
    "rank",
]


@pytest.mark.req("M127", "X6")
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("name", EVERYWHERE)
def test_names_of_the_operator_are_reserved_everywhere(name: str, framework: Framework) -> None:
    assert find_reserved(name, framework) is not None


@pytest.mark.parametrize(
    ("framework", "name"), [(framework, name) for framework in ONLY for name in ONLY[framework]]
)
def test_names_of_one_framework_are_free_in_the_others(framework: Framework, name: str) -> None:
    taken = [each for each in FRAMEWORKS if find_reserved(name, each) is not None]
    assert taken == [framework]


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("name", FREE)
def test_tuning_is_free(name: str, framework: Framework) -> None:
    assert find_reserved(name, framework) is None


def test_a_refusal_says_who_sets_it_why_and_what_to_do() -> None:
    assert check_reserved(["EPOCHS", "WORLD_SIZE"], "pytorch") == (
        Problem(
            path="env[1].name",
            code="FieldValueForbidden",
            message=(
                "WORLD_SIZE is reserved: the platform's prelude, or torchrun sets it, because it "
                "follows from nodes and processes_per_node."
            ),
            remedy="Set nodes.",
        ),
    )


@pytest.mark.parametrize("variable", RESERVED, ids=lambda variable: variable.pattern)
def test_every_rule_explains_itself(variable: object) -> None:
    assert all(getattr(variable, field) for field in ("set_by", "reason", "instead", "frameworks"))
