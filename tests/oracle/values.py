"""Random values of Kubernetes types: a die with words, quantities and lists, and any struct of the
field table.

Everything follows from one seed. Pools are small on purpose: names must meet again in runtime,
patch and TrainJob, or nothing would ever be merged. The generic part reads the same table as the
merge, so a new field is drawn by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any, TypeVar

from astrago_trainer.core.merge.schema_data import STRUCTS, VERSIONS

Json = dict[str, Any]
T = TypeVar("T")

NAMES = ("data", "scratch", "shm", "model", "cache", "logs", "creds", "initializer", "tools", "a")
ENV_NAMES = (
    "LOG_LEVEL",
    "EPOCHS",
    "NCCL_DEBUG",
    "HF_HOME",
    "A",
    "B",
    "C",
    "STORAGE_URI",
    "lower.case",
    "OMP",
)
RESERVED_ENV = {
    "torch": (
        "PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT",
    ),
    "mpi": (
        "OMPI_MCA_orte_default_hostfile", "OMPI_MCA_orte_keep_fqdn_hostnames",
        "OMPI_MCA_orte_set_default_slots", "OMPI_MCA_plm_rsh_args",
    ),
    "jax": ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "JAX_COORDINATOR_ADDRESS"),
    "xgboost": ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER"),
}  # fmt: skip
MOUNT_PATHS = (
    "/data", "/dev/shm", "/workspace", "/workspace/model", "/etc/mpi", "/root/.ssh",
    "/home/mpiuser/.ssh",
    "/tmp/a b", "/logs",
)  # fmt: skip
IMAGES = ("pytorch/pytorch:2.7.1", "ghcr.io/org/img@sha256:00ff", "busybox", "python:3.12-slim")
FINALIZERS = ("a.io/x", "b.io/y", "c.io/z", "d.io/w", "kubernetes.io/late")
LABEL_KEYS = ("app", "team", "example.com/tier", "kueue.x-k8s.io/queue-name", "a", "b", "z-last")
WORDS = (
    "alpha", "beta-2", "gamma", "true", "0", "10.5", "with space", "ünïcode-값-😀", "a<b>&c",
    "$(A)/x", "tab\tnew\nline",
    "quo\"te\\", "\u2028sep", "",
)  # fmt: skip
TIMES = (
    "2026-01-02T03:04:05Z", "2026-01-02T03:04:05+09:00", "2026-01-02T03:04:05.678901Z",
    "1999-12-31T23:59:59-01:30",
)  # fmt: skip
QUANTITIES = (
    "500m", "1500m", "0.5", "1e3", "2.250Gi", "1.500", "+4Gi", "04Gi", "0", "-1", "1", "2", "4",
    "8", "100m", "1Gi", "16Gi",
    "512Mi", "1.5Gi", "1000Mi", "1024Ki", "1k", "1M", "2G", "0.1", "1.", ".5", "1E", "3Ei", "1n",
    "15u", "0.0001",
    "123456789012345678901234567890", "9223372036854775807", "9223372036854775808", "10Ei", "1e18",
    "1E3", "1e-3",
    "12e6", "0m", "00", "-0", "-500m", "1.0000000001", "0.1Ki", "1000000000n", " 7 ",
)  # fmt: skip
NUMBER_QUANTITIES = (0, 1, 2, 8, 64, 1000, 1.5, 0.5, 0.25, 1e3, -1, 10**15, 2**53 + 1)
GPU_KEYS = (
    "nvidia.com/gpu", "nvidia.com/gpu", "amd.com/gpu", "example.com/GPUs", "nvidia.com/gpumem",
    "gpu.intel.com/i915",
)  # fmt: skip
GPU_COUNTS = ("1", "1", "2", "4", 8, 1, 2, "0", "500m", "1500m", "3.2", "-2", "1e1")
INTEGERS = (0, 0, 1, 1, 2, 3, 5, 10, 30, 60, 600, 8080, -1)
DEVICES = (
    "nvidia.com/mig-1g.5gb",
    "rdma/hca",
    "hugepages-2Mi",
    "google.com/tpu",
    "ephemeral-storage",
)

_NODE_RANK = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
_HINTS: dict[str, tuple[Any, ...]] = {
    "operator": ("In", "NotIn", "Exists", "Equal", "DoesNotExist", "Gt", ""),
    "effect": ("NoSchedule", "NoExecute", "PreferNoSchedule", ""),
    "topologyKey": ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"),
    "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
    "restartPolicy": ("Never", "OnFailure", "Always"),
    "imagePullPolicy": ("Always", "IfNotPresent", ""),
    "protocol": ("TCP", "UDP", ""),
    "dnsPolicy": ("ClusterFirst", "None"),
    "fieldPath": ("metadata.name", "spec.nodeName", _NODE_RANK),
    "mountPath": MOUNT_PATHS,
    "image": IMAGES,
    "key": ("key", "token", "example.com/pool", "config.yaml"),
    "name": NAMES,
    "resource": ("limits.cpu", "requests.memory"),
    "action": ("FailJobSet", "RestartJobSet", "FailJob", "Ignore", "Count"),
    "restartStrategy": ("Recreate", "BlockingRecreate"),
    "startupPolicyOrder": ("AnyOrder", "InOrder"),
    "completionMode": ("Indexed", "NonIndexed"),
    "medium": ("Memory", ""),
    "ip": ("127.0.0.1", "10.1.2.3", "::1"),
    "sizeLimit": QUANTITIES,
    "subdomain": ("net", "head-less", ""),
    "status": ("Ready", "Complete", "True"),
    "schedulerName": ("volcano", "default-scheduler", ""),
    "uid": ("u-1", "u-2", "u-3"),
    "accessModes": ("ReadWriteOnce", "ReadWriteMany"),
}
_INTEGER_HINTS: dict[str, tuple[int, ...]] = {
    # Counts become host lists of that length: a large one would cost all memory.
    "parallelism": (0, 1, 2, 4, -1),
    "completions": (0, 1, 2, 4, 7),
    "replicas": (0, 1, 1, 1, 2, 3),
    "containerPort": (29500, 29500, 8080, 22, 2222, 9000),
}
_ONE_OF = {
    "core.v1.VolumeProjection", "core.v1.EnvVarSource", "core.v1.EnvFromSource",
    "core.v1.LifecycleHandler",
    "core.v1.Volume",
}  # fmt: skip
_COMMON_VOLUMES = (
    "emptyDir", "emptyDir", "configMap", "secret", "persistentVolumeClaim", "hostPath", "projected",
    "ephemeral", "downwardAPI", "csi", "nfs",
)  # fmt: skip
_DEEPEST = 7


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a Go struct, taken apart once."""

    name: str
    kind: str
    """`string`, `list`, `map`, `struct`, `quantity`…"""
    inner: str
    """What a list or map holds, or the struct's name."""
    is_required: bool
    key: str
    """The field that tells the elements of a list apart when patches are merged; empty for none."""


@cache
def fields_of(version: str, struct: str) -> tuple[Field, ...]:
    """The fields of `struct` in that version."""
    own = VERSIONS[version]
    table = own[struct] if struct in own else STRUCTS[struct]
    return tuple(_field(name, text) for name, text in table.items())


def _field(name: str, text: str) -> Field:
    kind, *flags = text.split()
    outer, _, inner = kind.partition(":")
    merge = next((flag for flag in flags if flag.startswith("merge:")), "")
    return Field(name, outer, inner, not {"e", "z"} & set(flags), merge.partition(":")[2])


class Die(Random):
    """A seeded source of Kubernetes values for one version of the API."""

    def __init__(self, seed: int, version: str) -> None:
        super().__init__(seed)
        self.version = version
        self.critical_priority = False
        """With Volcano any other priority class is refused, since the oracle's cluster has none."""

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self.random() * len(options))]

    def some(self, options: Sequence[T], most: int) -> list[T]:
        """Up to `most` different ones."""
        return self.sample(options, min(len(options), int(self.random() * (most + 1))))

    def size(self, most: int = 3) -> int:
        """How long a list is: short mostly, now and then empty, which is not the same as absent."""
        return 0 if self.chance(0.05) else min(most, 1 + int(self.expovariate(1.0)))

    def word(self) -> str:
        return self.pick(WORDS)

    def name(self) -> str:
        return self.pick(NAMES)

    def labels(self, most: int = 3) -> dict[str, str]:
        return {self.pick(LABEL_KEYS): self.word() for _ in range(self.size(most))}

    def quantity(self) -> str | int | float:
        if self.chance(0.2):
            return self.pick(NUMBER_QUANTITIES)
        if self.chance(0.15):
            suffix = self.pick(("", "m", "Mi", "Gi", "k", "M", "G", "Ki"))
            return f"{self.randrange(100000)}{self.pick(('', '.5', '.125', '.0'))}{suffix}"
        return self.pick(QUANTITIES)

    def amounts(self) -> dict[str, Any]:
        """A resource list; at most one key with `gpu` in it, as among several Go takes any."""
        amounts: dict[str, Any] = {}
        if self.chance(0.65):
            amounts["cpu"] = self.quantity()
        if self.chance(0.5):
            amounts["memory"] = self.quantity()
        if self.chance(0.4):
            amounts[self.pick(GPU_KEYS)] = self.pick(GPU_COUNTS)
        if self.chance(0.12):
            amounts[self.pick(DEVICES)] = self.quantity()
        return amounts

    def resources(self) -> Json:
        resources: Json = {}
        if self.chance(0.7):
            resources["limits"] = self.amounts()
        if self.chance(0.6):
            resources["requests"] = self.amounts()
        if self.chance(0.03):
            resources["claims"] = self.items("core.v1.ResourceClaim", "name", 4)
        return resources

    def env(self, most: int = 5, names: Sequence[str] = ENV_NAMES) -> list[Json]:
        chosen = self.sample(names, min(len(names), self.size(most)))
        if chosen and self.chance(0.015):
            chosen.append(chosen[0])
        return [self.variable(name) for name in chosen]

    def variable(self, name: str) -> Json:
        variable: Json = {"name": name} if self.chance(0.997) else {}
        draw = self.random()
        if draw < 0.64 or draw > 0.97:
            variable["value"] = self.word()
        if draw > 0.68:
            variable["valueFrom"] = self.struct("core.v1.EnvVarSource", 5)
        return variable

    def mounts(self, most: int = 4) -> list[Json]:
        paths = self.sample(MOUNT_PATHS, self.size(most))
        if paths and self.chance(0.02):
            paths.append(paths[0])
        mounts = []
        for path in paths:
            mount = self.struct("core.v1.VolumeMount", 4)
            mounts.append(mount | {"name": self.name(), "mountPath": path})
            if self.chance(0.003):
                del mounts[-1][self.pick(("name", "mountPath"))]
        return mounts

    def volumes(self, most: int = 5) -> list[Json]:
        names = self.sample(NAMES, self.size(most))
        if names and self.chance(0.015):
            names.append(names[0])
        return [self.struct("core.v1.Volume", 4) | {"name": name} for name in names]

    def struct(self, struct: str, depth: int = 3) -> Json:
        """A value of any struct; fewer optional fields the deeper it lies."""
        special = _SPECIAL.get(struct)
        if special is not None:
            return special(self)
        fields = fields_of(self.version, struct)
        if struct in _ONE_OF and depth <= _DEEPEST:
            return self._one_of(struct, fields, depth)
        optional = sum(not f.is_required for f in fields)
        share = min(0.6, max(0.8, 3.4 - 0.4 * depth) / max(optional, 1))
        return {
            f.name: self.value(f, depth)
            for f in fields
            if self.random() < (0.92 if f.is_required else share)
        }

    def _one_of(self, struct: str, fields: Sequence[Field], depth: int) -> Json:
        sources = [f for f in fields if f.kind == "struct"]
        chosen = {self.pick(sources).name}
        if struct == "core.v1.Volume" and self.chance(0.85):
            chosen = {self.pick(_COMMON_VOLUMES)}
        if self.chance(0.06):
            chosen = {f.name for f in self.some(sources, 2)}
        return {
            f.name: self.value(f, depth)
            for f in fields
            if f.name in chosen
            or (f.kind != "struct" and self.chance(0.9 if f.is_required else 0.3))
        }

    def value(self, field: Field, depth: int) -> Any:
        if field.kind == "list":
            kind, _, inner = field.inner.partition(":")
            if kind != "struct":
                return [self.scalar(kind, field.name) for _ in range(self.size())]
            if depth >= _DEEPEST:
                return []
            return self.items(inner, field.key, depth + 1)
        if field.kind == "map":
            return self.amounts() if field.inner == "quantity" else self.labels()
        if field.kind == "struct":
            return self.struct(field.inner, depth + 1)
        return self.scalar(field.kind, field.name)

    def items(self, inner: str, key: str, depth: int) -> list[Json]:
        """A list of structs; those with a key differ in it, as the API server sees to mostly."""
        drawn = [self.struct(inner, depth) for _ in range(self.size())]
        if not key or self.chance(0.02):
            return drawn
        kinds = {f.name: f.kind for f in fields_of(self.version, inner)}
        unique: dict[str, Json] = {}
        for item in drawn:
            if key not in item:
                item[key] = self.scalar(kinds[key], key)
            unique.setdefault(str(item[key]), item)
        return list(unique.values())

    def scalar(self, kind: str, name: str) -> Any:
        if kind == "string":
            if name == "priorityClassName":
                return self._priority_class()
            return self.pick(_HINTS.get(name, WORDS)) if self.chance(0.95) else self.word()
        if kind == "bool":
            return self.random() < 0.5
        if kind == "quantity":
            return self.quantity()
        if kind == "intOrString":
            return self.pick((0, 1, 80, 8080, "http", "80", "50%", ""))
        if kind == "time":
            return self.pick(TIMES)
        if name in _INTEGER_HINTS:
            return self.pick(_INTEGER_HINTS[name])
        if self.chance(0.02):
            return 2**31 - 1 if kind == "int32" else 2**53 + 1
        return self.pick(INTEGERS)

    def _priority_class(self) -> str:
        if self.critical_priority and self.chance(0.8):
            return self.pick(("system-cluster-critical", "system-node-critical"))
        return self.pick(("high", "system-node-critical", "low", ""))

    def metadata(self) -> Json:
        """Labels and annotations mostly; the other fields an object's metadata may have, rarely."""
        metadata: Json = {}
        if self.chance(0.6):
            metadata["labels"] = self.labels()
        if self.chance(0.45):
            metadata["annotations"] = self.labels()
        if self.chance(0.12):
            metadata["finalizers"] = self.sample(FINALIZERS, self.size(4))
        if self.chance(0.06):
            metadata["ownerReferences"] = self.items("meta.v1.OwnerReference", "uid", 4)
        if self.chance(0.04):
            metadata["creationTimestamp"] = None  # what kubectl and client libraries write
        if self.chance(0.06):
            for field in self.some(fields_of(self.version, "meta.v1.ObjectMeta"), 3):
                metadata.setdefault(field.name, self.value(field, 5))
        return metadata

    def extras(self, struct: str, most: int, without: frozenset[str], depth: int = 3) -> Json:
        """Some further fields of a large struct, all equally likely."""
        fields = [f for f in fields_of(self.version, struct) if f.name not in without]
        return {f.name: self.value(f, depth) for f in self.some(fields, most)}


_SPECIAL: dict[str, Callable[[Die], Json]] = {
    "core.v1.ResourceRequirements": Die.resources,
    "meta.v1.ObjectMeta": Die.metadata,
    "core.v1.EnvVar": lambda die: die.variable(die.pick(ENV_NAMES)),
}
