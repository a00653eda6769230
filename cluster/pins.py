"""What runs in the cluster, in which version. The checksums are in the go.sum files beside each go.mod."""

from __future__ import annotations

from dataclasses import dataclass

KUBERNETES = "1.34.4"  # the newest minor that runs on cgroup v1 without a switch
ETCD = "3.6.5"
COREDNS = "1.12.4"
KWOK = "0.8.0"
TRAINING_OPERATOR = "1.8.1"


@dataclass(frozen=True, slots=True)
class Program:
    """A binary, the Go module folder it is built in, and its package."""

    name: str
    module: str
    package: str
    flags: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """A release of Kubeflow Trainer with the JobSet that belongs to it."""

    trainer: str
    jobset: str

    @property
    def trainer_module(self) -> str:
        return f"trainer-{self.trainer.rpartition('.')[0]}"

    @property
    def jobset_module(self) -> str:
        """Of its own: the two need different versions of the same libraries."""
        return f"jobset-{self.jobset.rpartition('.')[0]}"


PROFILES = {
    "2.1": Profile("2.1.0", "0.10.1"),
    "2.2": Profile("2.2.1", "0.11.1"),
    "2.3": Profile("2.3.0", "0.12.0"),
}

_VERSION = "k8s.io/component-base/version"
_STAMP = (
    f"-X {_VERSION}.gitVersion=v{KUBERNETES} -X {_VERSION}.gitMajor=1 "
    f"-X {_VERSION}.gitMinor={KUBERNETES.split('.')[1]}"
)
CONTROL_PLANE = (
    *(
        Program(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", _STAMP)
        for name in (
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "kubelet",
            "kube-proxy",
            "kubectl",
        )
    ),
    Program("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
    Program("coredns", "coredns", "github.com/coredns/coredns"),
    Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
)
LEGACY = Program(
    "training-operator",
    "training-operator",
    "github.com/kubeflow/training-operator/cmd/training-operator.v1",
)


def operators(profile: Profile) -> tuple[Program, Program]:
    """JobSet and the Trainer of a profile."""
    return (
        Program("jobset", profile.jobset_module, "sigs.k8s.io/jobset"),
        Program(
            "trainer",
            profile.trainer_module,
            "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager",
        ),
    )
