"""XGBoost (2.2 and later): the DMLC_* variables of its tracker, one worker a GPU or a node."""

from __future__ import annotations

from astrago_trainer.core.merge.lists import env_field, env_value, set_env
from astrago_trainer.core.merge.model import COMPLETION_INDEX, PORT, Plan
from astrago_trainer.core.merge.origins import Origin
from astrago_trainer.core.merge.plugins.plainml import set_node_count
from astrago_trainer.core.merge.plugins.torch import master_address, open_port
from astrago_trainer.core.merge.resources import gpus, int32, resources_for_processes

RESERVED = ("DMLC_NUM_WORKER", "DMLC_TASK_ID", "DMLC_TRACKER_PORT", "DMLC_TRACKER_URI")
ORIGIN = Origin("mlPolicy.xgboost")


def enforce(plan: Plan) -> None:
    """Active where the runtime has `mlPolicy.xgboost`; the plugin without a framework runs as well."""
    if plan.version == "2.1" or plan.runtime.policy("xgboost") is None:
        return
    set_node_count(plan)
    pods, container = plan.trainer_set(), plan.trainer_container()
    if plan.job.trainer is None or pods is None or container is None:
        return
    per_node = gpus(resources_for_processes(plan))
    workers = int32(pods.count * (int32(per_node) if per_node > 0 else 1))
    entries = [
        env_value("DMLC_TRACKER_URI", master_address(plan)),
        env_value("DMLC_TRACKER_PORT", str(PORT)),
        env_field("DMLC_TASK_ID", COMPLETION_INDEX),
        env_value("DMLC_NUM_WORKER", str(workers)),
    ]
    set_env(container, [(entry, ORIGIN) for entry in entries], plan.origins)
    open_port(plan, container, ORIGIN)
