"""JobSet and Kubeflow Trainer from their official manifests, with images packed from the programs built here."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

from cluster.build import binary, module_dir
from cluster.errors import ClusterError
from cluster.holder import Holder
from cluster.images import import_program
from cluster.pins import CONTROL_PLANE, Profile, operators

ROLLOUT = "--timeout=240s"


class Kubectl:
    """The cluster's own kubectl."""

    def __init__(self, kubeconfig: Path) -> None:
        program = next(each for each in CONTROL_PLANE if each.name == "kubectl")
        self._command = [str(binary(program)), f"--kubeconfig={kubeconfig}"]

    def __call__(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        done = subprocess.run(
            [*self._command, *arguments], input=stdin, capture_output=True, text=True
        )
        if done.returncode and check:
            raise ClusterError(
                f"kubectl {' '.join(arguments)} failed: {done.stderr.strip()[-1500:]}",
                "See the logs.",
            )
        return done.stdout if not done.returncode else ""


def install(holder: Holder, profile: Profile) -> None:
    """Applies both operators and the upstream runtimes, and waits until they are there."""
    kubectl = Kubectl(holder.layout.kubeconfig)
    jobset, trainer = operators(profile)
    images = (
        (jobset, f"us-central1-docker.pkg.dev/k8s-staging-images/jobset/jobset:v{profile.jobset}"),
        (trainer, f"ghcr.io/kubeflow/trainer/trainer-controller-manager:v{profile.trainer}"),
    )
    for program, name in images:
        import_program(holder, name, binary(program), "/manager")
    manifests = holder.layout.run / "manifests"
    _copy(module_dir(profile.jobset_module, "sigs.k8s.io/jobset") / "config", manifests / "jobset")
    _copy(
        module_dir(profile.trainer_module, "github.com/kubeflow/trainer/v2") / "manifests",
        manifests / "trainer",
    )
    _without_remote_jobset(manifests / "trainer" / "overlays" / "manager" / "kustomization.yaml")
    for folder in ("jobset/default", "trainer/overlays/manager"):
        kubectl(
            "apply", "--server-side", "-f", "-", stdin=kubectl("kustomize", str(manifests / folder))
        )
    for namespace in ("jobset-system", "kubeflow-system"):
        kubectl("-n", namespace, "rollout", "status", "deploy", ROLLOUT)
    _install_runtimes(kubectl, manifests / "trainer" / "overlays" / "runtimes")


def _install_runtimes(kubectl: Kubectl, folder: Path) -> None:
    """The webhook answers a little later than its pod is ready, and without it no runtime is taken."""
    runtimes = kubectl("kustomize", str(folder))
    end = time.monotonic() + 120
    while not kubectl("apply", "--server-side", "-f", "-", stdin=runtimes, check=False):
        if time.monotonic() > end:
            kubectl("apply", "--server-side", "-f", "-", stdin=runtimes)
        time.sleep(0.5)


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target)
    for path in [target, *target.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)  # the module cache is read-only


def _without_remote_jobset(kustomization: Path) -> None:
    """It names a release page; the module has the same files."""
    lines = kustomization.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if "third-party/jobset" not in line]
    kustomization.write_text("\n".join(kept) + "\n", encoding="utf-8")
