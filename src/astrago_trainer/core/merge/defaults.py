"""What the API server fills in before anybody reads an object: the defaults of the CRDs, and JobSet's own webhook.

The merge itself takes objects as the controller reads them, so whoever starts from a file applies these first.
"""

from __future__ import annotations

from typing import Any

from astrago_trainer.core.merge.origins import DEFAULT, Origins
from astrago_trainer.core.merge.schema import struct

Json = dict[str, Any]

_RUNTIME_REF = {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime"}
_NAMELESS: Json = {"name": ""}  # what refers to a ConfigMap or Secret and leaves the name out
_DEFAULTS: dict[str, Json] = {
    "core.v1.AzureDiskVolumeSource": {"fsType": "ext4", "readOnly": False},
    "core.v1.ConfigMapEnvSource": _NAMELESS,
    "core.v1.ConfigMapKeySelector": _NAMELESS,
    "core.v1.ConfigMapProjection": _NAMELESS,
    "core.v1.ConfigMapVolumeSource": _NAMELESS,
    "core.v1.ContainerPort": {"protocol": "TCP"},
    "core.v1.FileKeySelector": {"optional": False},
    "core.v1.GRPCAction": {"service": ""},
    "core.v1.ISCSIVolumeSource": {"iscsiInterface": "default"},
    "core.v1.LocalObjectReference": _NAMELESS,
    "core.v1.RBDVolumeSource": {"keyring": "/etc/ceph/keyring", "pool": "rbd", "user": "admin"},
    "core.v1.ScaleIOVolumeSource": {"fsType": "xfs", "storageMode": "ThinProvisioned"},
    "core.v1.SecretEnvSource": _NAMELESS,
    "core.v1.SecretKeySelector": _NAMELESS,
    "core.v1.SecretProjection": _NAMELESS,
    "jobset.v1alpha2.FailurePolicy": {"restartStrategy": "Recreate"},
    "jobset.v1alpha2.ReplicatedJob": {"groupName": "default", "replicas": 1},
    "jobset.v1alpha2.VolumeRetentionPolicy": {"whenDeleted": "Delete"},
    "scheduling.v1beta1.NetworkTopologySpec": {"highestTierAllowed": 1, "mode": "hard"},
    "trainer.v1alpha1.CoschedulingPodGroupPolicySource": {"scheduleTimeoutSeconds": 60},
    "trainer.v1alpha1.FluxMLPolicySource": {"numProcPerNode": 1},
    "trainer.v1alpha1.MPIMLPolicySource": {
        "mpiImplementation": "OpenMPI",
        "numProcPerNode": 1,
        "runLauncherAsNode": False,
        "sshAuthMountPath": "/root/.ssh",
    },
    "trainer.v1alpha1.RuntimeRef": _RUNTIME_REF,
    "trainer.v1alpha1.TorchMLPolicySource": {"numProcPerNode": "auto"},
    "trainer.v1alpha1.TrainJobSpec": {
        "managedBy": "trainer.kubeflow.org/trainjob-controller",
        "suspend": False,
    },
}
"""By type; a default of a field that the version does not have does not apply."""


def with_defaults(value: Any, kind: str, version: str, origins: Origins) -> Any:
    """`value` with the defaults of its CRD; what is filled in is marked, what is complete is returned as it is."""
    outer, _, inner = kind.partition(":")
    if outer == "struct" and isinstance(value, dict):
        return _struct_with_defaults(value, inner, version, origins)
    if outer == "list" and isinstance(value, list):
        items = [with_defaults(item, inner, version, origins) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        copy = origins.fork(value)
        copy[:] = items
        return copy
    return value


def _struct_with_defaults(value: Json, name: str, version: str, origins: Origins) -> Json:
    fields = struct(name, version)
    changed: Json = {}
    for key, item in value.items():
        if isinstance(item, (dict, list)) and key in fields:
            new = with_defaults(item, fields[key].kind, version, origins)
            if new is not item:
                changed[key] = new
    missing = {
        k: v for k, v in _DEFAULTS.get(name, {}).items() if k in fields and value.get(k) is None
    }
    if not changed and not missing:
        return value
    copy: Json = origins.fork(value)
    copy.update(changed)
    for key, default in missing.items():
        copy[key] = default
        origins.mark_key(copy, key, DEFAULT)
    return copy


def job_set_with_defaults(job_set: Json, version: str, origins: Origins) -> Json:
    """The JobSet as it is stored: its CRD's defaults, then those of its webhook."""
    job_set = origins.fork(job_set)
    job_set["spec"] = spec = origins.fork(
        with_defaults(job_set["spec"], "struct:jobset.v1alpha2.JobSetSpec", version, origins)
    )
    _fill(spec, "successPolicy", {"operator": "All"}, origins)
    _fill(spec, "startupPolicy", {"startupPolicyOrder": "AnyOrder"}, origins)
    spec["network"] = network = origins.fork(spec.get("network", {}))
    _fill(network, "enableDNSHostnames", True, origins)
    _fill(network, "publishNotReadyAddresses", True, origins)
    if "replicatedJobs" in spec:
        spec["replicatedJobs"] = [
            _replicated_with_defaults(job, origins) for job in spec["replicatedJobs"]
        ]
    rules = spec.get("failurePolicy", {}).get("rules")
    if rules and any("name" not in rule for rule in rules):
        spec["failurePolicy"] = policy = origins.fork(spec["failurePolicy"])
        policy["rules"] = [origins.fork(rule) for rule in rules]
        for index, rule in enumerate(policy["rules"]):
            _fill(rule, "name", f"failurePolicyRule{index}", origins)
    return job_set


def _replicated_with_defaults(job: Json, origins: Origins) -> Json:
    job = origins.fork(job)
    job["template"] = template = origins.fork(job["template"])
    template["spec"] = job_spec = origins.fork(template["spec"])
    job_spec["template"] = pod_template = origins.fork(job_spec["template"])
    pod_template["spec"] = pod = origins.fork(pod_template["spec"])
    _fill(job_spec, "completionMode", "Indexed", origins)
    _fill(pod, "restartPolicy", "OnFailure", origins)
    return job


def _fill(node: Json, key: str, value: Any, origins: Origins) -> None:
    if node.get(key) is None:
        node[key] = value
        origins.mark_key(node, key, DEFAULT)
