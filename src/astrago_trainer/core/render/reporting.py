"""How a training reports its progress: the variables of the Trainer's status contract, and the file with its token.

What is rendered names a Secret and never holds what is in it, so previews, the store and manifests have no token. Who
hands the job to an engine adds the Secret. A folder of our own: the Trainer mounts a token too where its gate is open.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from astrago_trainer.core.spec.rules import PROGRESS_PATH, PROGRESS_VOLUME

TOKEN_KEY = "token"  # noqa: S105 - the name of a file


def status_path(namespace: str, job: str) -> str:
    """Where a job's training reports to, on the Trainer's server and on ours; names have nothing to be escaped."""
    return f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/trainjobs/{job}/status"


def status_variables(server: str, namespace: str, job: str, *, ca_file: str = "") -> dict[str, str]:
    """What the training container is given so that it reports to `server` (`https://host:port`, without a path).

    Paths, not secrets. Without `ca_file` the certificates of the container's system are used.
    """
    variables = {
        "KUBEFLOW_TRAINER_SERVER_URL": server.rstrip("/") + status_path(namespace, job),
        "KUBEFLOW_TRAINER_SERVER_TOKEN": f"{PROGRESS_PATH}/{TOKEN_KEY}",
    }
    if ca_file:
        variables["KUBEFLOW_TRAINER_SERVER_CA_CERT"] = ca_file
    return variables


def token_volume(job: str) -> dict[str, Any]:
    """Optional: a job must not wait for what it can do without."""
    return {"secret": {"secretName": token_secret_name(job), "optional": True}}


def token_secret_name(job: str) -> str:
    return f"{job}-progress"


def token_secret(namespace: str, job: str, token: str) -> dict[str, Any]:
    """Owned by its job, like the job's code; not immutable, because the next job of its name has another one."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": token_secret_name(job), "namespace": namespace},
        "stringData": {TOKEN_KEY: token},
    }


def wants_token(job_set: Mapping[str, Any]) -> bool:
    """Whether the pods of this JobSet mount such a token."""
    return any(
        volume.get("name") == PROGRESS_VOLUME
        for job in job_set["spec"].get("replicatedJobs", ())
        for volume in job["template"]["spec"]["template"]["spec"].get("volumes", ())
    )
