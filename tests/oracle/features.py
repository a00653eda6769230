"""What the generator promises to make, so that it cannot come to make less without a test noticing.

A feature is a pattern over lines such as `trainJob.spec.trainer.numNodes=100` (list indices left
out), or a predicate on a whole pair where things must come together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from re import compile as pattern
from typing import Any

from astrago_trainer.core.merge.schema_data import STRUCTS, VERSIONS
from tests.oracle.runtimes import ANCESTOR, INITIALIZERS, QUEUE
from tests.oracle.values import fields_of

Json = dict[str, Any]

# Not offered to the merge on purpose: it says that it does not know this policy.
LEFT_OUT = {
    ("trainer.v1alpha1.MLPolicy", "flux"),
    ("trainer.v1alpha1.FluxMLPolicySource", "numProcPerNode"),
}

_TRAINER = r"^trainJob\.spec\.trainer"
_RUNTIME = r"^runtime\.spec"
_TEMPLATE = rf"{_RUNTIME}\.template\.spec"
_JOBS = rf"{_TEMPLATE}\.replicatedJobs"
_POD = rf"{_JOBS}\.template\.spec\.template\.spec"
_VALUE_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_VOLUMES = (
    "emptyDir", "configMap", "secret", "persistentVolumeClaim", "hostPath", "projected",
    "ephemeral",
    "downwardAPI", "csi", "nfs",
)  # fmt: skip
_POD_PATCH = (
    "serviceAccountName", "nodeSelector", "affinity", "tolerations", "volumes", "initContainers",
    "containers",
    "schedulingGates", "imagePullSecrets",
)  # fmt: skip
_ODD_QUANTITIES = (
    '"500m"', '"1500m"', '"0.5"', "2", "1.5", '"1e3"', '"2.250Gi"', '"1.500"', '"+4Gi"', '"04Gi"',
    '"0"', '"-1"', '"10Ei"',
)  # fmt: skip


def patterns(version: str) -> dict[str, str]:
    """Each promised feature of `version` and the pattern that some line of some pair must match."""
    return _everywhere() | _patch_features(version) | _version_features(version)


def predicates(version: str) -> dict[str, Callable[[Json], bool]]:
    """Promised features for which several things must come together in one pair."""
    return {
        "a namespaced runtime": lambda p: p["runtime"].get("kind") == "TrainingRuntime",
        "a runtime that does not exist": lambda p: _reference(p) not in (None, _name(p)),
        "no spec.trainer": lambda p: _part(p, "trainJob", "spec", "trainer") is None,
        "no suspend": lambda p: _part(p, "trainJob", "spec", "suspend") is None,
        "no mlPolicy": lambda p: _part(p, "runtime", "spec", "mlPolicy") is None,
        "torchtune with a GPU": lambda p: _is_tune(p) and "gpu" in json.dumps(p["runtime"]),
        "initializers without their jobs": lambda p: (
            bool(_steps(p)) and not _jobs(p) & set(INITIALIZERS)
        ),
        "initializers with their jobs": lambda p: (
            bool(_steps(p)) and bool(_jobs(p) & set(INITIALIZERS))
        ),
        "MPI without a launcher": lambda p: "mpi" in _policy(p) and "launcher" not in _jobs(p),
        "MPI without nodes": lambda p: "mpi" in _policy(p) and "node" not in _jobs(p),
        "MPI with a default left out": lambda p: (
            _part(_policy(p), "mpi", "numProcPerNode") is None and "mpi" in _policy(p)
        ),
        "no trainer step": lambda p: f'"{ANCESTOR}": "trainer"' not in json.dumps(p["runtime"]),
        "several jobs": lambda p: len(_jobs(p)) > 2,
    }


def lines(pair: Json) -> Iterator[str]:
    """The leaves of a pair, one line each."""
    return _lines(pair, "")


def struct_fields(pair: Json, version: str) -> Iterator[tuple[str, str]]:
    """The fields of Go structs that a pair sets to something."""
    for side, struct in (("runtime", "ClusterTrainingRuntime"), ("trainJob", "TrainJob")):
        yield from _struct_fields(pair[side], f"trainer.v1alpha1.{struct}", version)


def all_struct_fields(version: str) -> set[tuple[str, str]]:
    """All fields of all structs that a pair of `version` can hold."""
    table = STRUCTS | VERSIONS[version]
    return {(struct, field) for struct, fields in table.items() for field in fields} - LEFT_OUT


def missing_patterns(wanted: dict[str, str], seen: Iterable[str]) -> list[str]:
    """The names of those that no line matches."""
    text = "\n".join(seen)
    return [name for name, regex in wanted.items() if not pattern(f"(?m){regex}").search(text)]


def _everywhere() -> dict[str, str]:
    wanted = {
        f"trainer.{f}": rf"{_TRAINER}\.{f}\b"
        for f in ("image", "command", "args", "env", "numProcPerNode")
    }
    wanted |= {f"trainer.numNodes {n}": rf"{_TRAINER}\.numNodes={n}$" for n in (0, -3, 1, 2, 100)}
    wanted |= {f"trainer.env from {s}": rf"{_TRAINER}\.env\.valueFrom\.{s}" for s in _VALUE_SOURCES}
    wanted |= {
        f"trainer.resourcesPerNode.{r}": rf"{_TRAINER}\.resourcesPerNode\.{r}"
        for r in ("limits", "requests")
    }
    wanted |= {
        f"quantity {q}": rf"=({q.replace('.', '[.]').replace('+', '[+]')})$"
        for q in _ODD_QUANTITIES
    }
    wanted |= {f"suspend {s}": rf"^trainJob\.spec\.suspend={s}$" for s in ("true", "false")}
    wanted |= {f"runtime volume {v}": rf"{_POD}\.volumes\.{v}\b" for v in _VOLUMES}
    for step in ("dataset", "model"):
        base = rf"^trainJob\.spec\.initializer\.{step}"
        wanted |= {
            f"initializer.{step}.{f}": rf"{base}\.{f}\b" for f in ("storageUri", "env", "secretRef")
        }
    wanted |= {
        f"ancestor {s}": rf"{_JOBS}\.template\.metadata\.labels\.{ANCESTOR}=\"{s}\""
        for s in (*INITIALIZERS, "trainer")
    }
    mpi = rf"{_RUNTIME}\.mlPolicy\.mpi"
    return wanted | {
        "trainer {}": rf"{_TRAINER}={{}}$",
        "an empty command": rf"{_TRAINER}\.command=\[\]$",
        "empty args": rf"{_TRAINER}\.args=\[\]$",
        "an empty variable": rf"{_TRAINER}\.env\.value=\"\"$",
        "unicode": "[\u0100-\uffff]",
        "managedBy": r"^trainJob\.spec\.managedBy=",
        "torch": rf"{_RUNTIME}\.mlPolicy\.torch\b",
        "torchtune": rf"{_TRAINER}\.command=\"tune\"$",
        "torchtune LoRA": rf"{_TRAINER}\.args=\"model\.lora_attn_modules",
        "torchtune QLoRA": rf"{_TRAINER}\.args=\"model\.quantize_base=True",
        "torchtune QLoRA off": rf"{_TRAINER}\.args=\"model\.quantize_base=False",
        "torchtune DoRA": rf"{_TRAINER}\.args=\"model\.use_dora=True",
        "torchtune output of the runtime": rf"{_POD}\.containers\.command=\"output_dir=",
        "MPI launcher as node": rf"{mpi}\.runLauncherAsNode=true",
        "MPI launcher apart": rf"{mpi}\.runLauncherAsNode=false",
        "MPI mount path": rf"{mpi}\.sshAuthMountPath=\"/home",
        "MPI slots": rf"{mpi}\.numProcPerNode=4$",
        "MPI of another make": rf"{mpi}\.mpiImplementation=\"(Intel|MPICH)\"",
        "plain with nodes": rf"{_RUNTIME}\.mlPolicy\.numNodes=",
        "coscheduling": rf"{_RUNTIME}\.podGroupPolicy\.coscheduling\.scheduleTimeoutSeconds=60$",
        "volcano": rf"{_RUNTIME}\.podGroupPolicy\.volcano\b",
        "volcano topology": r"\.podGroupPolicy\.volcano\.networkTopology\.highestTierAllowed=\d",
        "volcano queue": rf"\.annotations\.{QUEUE}=\"gpu\"",
        "volcano queue without a name": rf"\.annotations\.{QUEUE}=\"\"",
        "a priority class": rf"{_POD}\.priorityClassName=\"high\"",
        "a critical priority class": rf"{_POD}\.priorityClassName=\"system-node-critical\"",
        "an init container that stays": rf"{_POD}\.initContainers\.restartPolicy=\"Always\"",
        "a sidecar": rf"{_POD}\.containers\.name=\"sidecar\"",
        "a named port": rf"{_POD}\.containers\.ports\.name=\"http\"",
        "the trainer's own port": rf"{_POD}\.containers\.ports\.containerPort=29500",
        "the initializer's mount": rf"{_POD}\.containers\.volumeMounts\.name=\"initializer\"",
        "reserved variables": rf"{_TRAINER}\.env\.name=\"(PET|OMPI)_",
        "a deprecated runtime": r"^runtime\.metadata\.labels\.\S+/support=\"deprecated\"",
        "labels of the JobSet": rf"{_RUNTIME}\.template\.metadata\.labels\.",
        "labels of a Job": rf"{_JOBS}\.template\.metadata\.labels\.app",
        "labels of a pod": rf"{_JOBS}\.template\.spec\.template\.metadata\.labels\.app",
        "pod-level resources": rf"{_POD}\.resources\.",
        "pod overhead": rf"{_POD}\.overhead\.",
        "a probe on a named port": rf"{_POD}\.containers\.\w+Probe\.\w+\.port=\"http\"",
        "failure policy rules": rf"{_TEMPLATE}\.failurePolicy\.rules\.",
        "a network of its own": rf"{_TEMPLATE}\.network\.subdomain=\"net\"",
        "dependsOn": rf"{_JOBS}\.dependsOn\.",
        "an unknown field": r"\.(unknown|x-note|NumNodes)\b",
        "a null": r"=null$",
    }  # fmt: skip


def _patch_features(version: str) -> dict[str, str]:
    base = r"^trainJob\.spec\.podTemplateOverrides"
    if version != "2.1":
        base = r"^trainJob\.spec\.runtimePatches\.trainingRuntimeSpec\.template\.spec"
        base += r"\.replicatedJobs\.template\.spec\.template"
    fields = list(_POD_PATCH)
    if version != "2.1":
        fields += ["securityContext", "containers.securityContext"]
    if version == "2.3":
        fields.append("terminationGracePeriodSeconds")
    wanted = {f"patch {f}": rf"{base}\.spec\.{f}\b" for f in fields}
    wanted |= {f"patch volume {v}": rf"{base}\.spec\.volumes\.{v}\b" for v in _VOLUMES}
    for kind in ("containers", "initContainers"):
        wanted |= {
            f"patch {kind}.{f}": rf"{base}\.spec\.{kind}\.{f}\b" for f in ("env", "volumeMounts")
        }
    wanted |= {
        f"patch env from {s}": rf"{base}\.spec\.\w+\.env\.valueFrom\.{s}" for s in _VALUE_SOURCES
    }
    return wanted | {
        "patch pod labels": rf"{base}\.metadata\.labels\.app",
        "patch pod annotations": rf"{base}\.metadata\.annotations\.app",
        "patch of an unknown container": rf"{base}\.spec\.containers\.name=\"typo\"",
        "patch of a reserved container's variables": rf"{base}\.spec\.containers\.env\.name=",
        "patch with a deep affinity": rf"{base}\.spec\.affinity\.nodeAffinity\.\w+\.\w+\.\w+\.",
    }


def _version_features(version: str) -> dict[str, str]:
    if version == "2.1":
        wanted = {
            f"numProcPerNode {n}": rf"{_TRAINER}\.numProcPerNode={n}$"
            for n in ('"auto"', '"cpu"', '"gpu"', "2", '"all"')
        }
        wanted |= {
            f"torch {n}": rf"mlPolicy\.torch\.numProcPerNode={n}$"
            for n in ('"auto"', '"cpu"', '"gpu"', "2")
        }
        return wanted | {
            "spec.labels": r"^trainJob\.spec\.labels\.",
            "spec.annotations": r"^trainJob\.spec\.annotations\.",
            "an unknown target job": r"\.podTemplateOverrides\.targetJobs\.name=\"nod\"",
        }
    base = r"^trainJob\.spec\.runtimePatches"
    template = rf"{base}\.trainingRuntimeSpec\.template"
    wanted = {
        "jax": rf"{_RUNTIME}\.mlPolicy\.jax=",
        "xgboost": rf"{_RUNTIME}\.mlPolicy\.xgboost=",
        "reserved variables of XGBoost": rf"{_TRAINER}\.env\.name=\"DMLC_",
        "activeDeadlineSeconds": r"^trainJob\.spec\.activeDeadlineSeconds=600",
        "volumeClaimPolicies": rf"{_TEMPLATE}\.volumeClaimPolicies\.",
        "a manager": rf"{base}\.manager=\"kueue\.x-k8s\.io/manager\"",
        "a bad manager": rf"{base}\.manager=\"(manager|a\.b/|/x)\"",
        "the time of a patch": rf"{base}\.time=",
        "patch JobSet labels": rf"{template}\.metadata\.labels\.",
        "patch Job labels": rf"{template}\.spec\.replicatedJobs\.template\.metadata\.labels\.",
        "an unknown replicated job": rf"{template}\.spec\.replicatedJobs\.name=\"nod\"",
    }
    if version == "2.3":
        targets = rf"{_RUNTIME}\.mlPolicy\.torch\.envInjection\.targets"
        wanted |= {
            "envInjection": rf"{targets}\.containerNames=\"node\"",
            "envInjection into an init container": rf"{targets}\.containerNames=\"setup\"",
            "envInjection into nothing": rf"{targets}\.containerNames=\"ghost\"",
        }
    return wanted


def _lines(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _lines(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for inner in value:
            yield from _lines(inner, path)
    else:
        yield f"{path}={json.dumps(value, ensure_ascii=False)}"


def _struct_fields(value: Any, struct: str, version: str) -> Iterator[tuple[str, str]]:
    if not isinstance(value, dict):
        return
    for field in fields_of(version, struct):
        inner = value.get(field.name)
        if inner is None:
            continue
        yield struct, field.name
        if field.kind == "struct":
            yield from _struct_fields(inner, field.inner, version)
        elif field.kind == "list" and field.inner.startswith("struct:") and isinstance(inner, list):
            for item in inner:
                yield from _struct_fields(item, field.inner.removeprefix("struct:"), version)


def _part(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _name(pair: Json) -> Any:
    return _part(pair, "runtime", "metadata", "name")


def _reference(pair: Json) -> Any:
    return _part(pair, "trainJob", "spec", "runtimeRef", "name")


def _policy(pair: Json) -> Json:
    policy = _part(pair, "runtime", "spec", "mlPolicy")
    return policy if isinstance(policy, dict) else {}


def _steps(pair: Json) -> Any:
    return _part(pair, "trainJob", "spec", "initializer")


def _is_tune(pair: Json) -> bool:
    return bool(_part(pair, "trainJob", "spec", "trainer", "command") == ["tune", "run"])


def _jobs(pair: Json) -> set[str]:
    jobs = _part(pair, "runtime", "spec", "template", "spec", "replicatedJobs")
    return (
        {job.get("name", "") for job in jobs if isinstance(job, dict)}
        if isinstance(jobs, list)
        else set()
    )
