"""JobSet and Kubeflow Trainer from their official manifests, with images packed from the programs built here."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

from cluster.build import binary, module_dir
from cluster.errors import ClusterError
from cluster.holder import Holder
from cluster.images import bring, program_image
from cluster.pins import CONTROL_PLANE, LEGACY, Profile, operators

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
    manifests = holder.layout.run / "manifests"
    _copy(module_dir(jobset.module, jobset.package) / "config", manifests / "jobset")
    _copy(
        module_dir(trainer.module, "github.com/kubeflow/trainer/v2") / "manifests",
        manifests / "trainer",
    )
    _use_own_jobset(manifests / "trainer" / "third-party" / "jobset" / "kustomization.yaml")
    manager = kubectl("kustomize", str(manifests / "trainer" / "overlays" / "manager"))
    # Under the names that the manifests ask for; those of 2.2.1 give JobSet the Trainer's own version.
    images = set(re.findall(r"^ +(?:- )?image: (\S+)$", manager, re.MULTILINE))
    bring(
        holder,
        [
            program_image(name, binary(jobset if "jobset" in name else trainer), "/manager")
            for name in images
        ],
    )
    kubectl("apply", "--server-side", "-f", "-", stdin=manager)
    kubectl("-n", "kubeflow-system", "rollout", "status", "deploy", ROLLOUT)
    _install_runtimes(kubectl, manifests / "trainer" / "overlays" / "runtimes")


def install_legacy(holder: Holder) -> None:
    """training-operator for the jobs of v1, beside the Trainer."""
    kubectl = Kubectl(holder.layout.kubeconfig)
    bring(
        holder, [program_image("kubeflow/training-operator:v1-04f9f13", binary(LEGACY), "/manager")]
    )
    manifests = holder.layout.run / "manifests" / "training-operator"
    shutil.rmtree(manifests, ignore_errors=True)
    _copy(
        module_dir(LEGACY.module, "github.com/kubeflow/training-operator") / "manifests", manifests
    )
    standalone = kubectl("kustomize", str(manifests / "overlays" / "standalone"))
    kubectl("apply", "--server-side", "-f", "-", stdin=standalone)
    kubectl("-n", "kubeflow", "rollout", "status", "deploy", ROLLOUT)


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


def _use_own_jobset(kustomization: Path) -> None:
    """It names a release page; the module of JobSet has the same files."""
    text = kustomization.read_text(encoding="utf-8")
    remote = re.compile(r"^  - https://.*/manifests\.yaml$", re.MULTILINE)
    own = remote.sub("  - ../../../jobset/default", text)
    kustomization.write_text(own, encoding="utf-8")
