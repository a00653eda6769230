"""The images of pods, under the very names that the catalogue, the samples and the upstream runtimes ask for.

They are not the official ones, which no registry is asked for, but stand in for them: a Debian with Python, bash, git,
OpenMPI and sshd, and a busybox. torch and TensorFlow are not packed: the environments of this project are mounted into
every container below /frameworks, and a file in the image says which of them its Python uses.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from cluster.cache import cache_folder, locked
from cluster.errors import ClusterError
from cluster.images import Image, Layer, folder_layer, link_or_copy, program_image

PAUSE = "astrago/pause:1"
TORCH = (
    "pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime",
    "pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime",  # torch-distributed of Trainer 2.1
    "pytorch/pytorch:2.10.0-cuda12.8-cudnn9-runtime",  # of 2.2
    "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime",  # of 2.3
    "public.ecr.aws/deep-learning-containers/pytorch-training:2.8.0-gpu-py312-cu129-ubuntu22.04-ec2-v1.0",
    "horovod/horovod:0.28.1",
)
TENSORFLOW = ("tensorflow/tensorflow:2.15.0-gpu",)
GIT = ("alpine/git:v2.36.2",)
ALPINE = ("alpine:3.10",)
BUSYBOX = ("busybox", "busybox:1.36.1")

_SUITE = "bookworm"
_PACKAGES = (
    "python3,python3-distutils,git,ca-certificates,openssh-server,openmpi-bin,procps,iproute2"
)
_NEEDLESS = (
    "var/cache/apt",
    "var/lib/apt/lists",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
)
_MADE_AS = "1"  # raise it when the making of the Debian root changes
_PAUSE_PROGRAM = r"""
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void quit(int s) { exit(0); }
static void reap(int s) { while (waitpid(-1, 0, WNOHANG) > 0); }
int main(void) { signal(SIGINT, quit); signal(SIGTERM, quit); signal(SIGCHLD, reap); for (;;) pause(); }
"""
_TORCHRUN = '#!/bin/sh\nexec python3 -m torch.distributed.run "$@"\n'


def pod_images() -> list[Image]:
    debian = debian_layer()
    busybox = folder_layer(f"busybox {_busybox().stat().st_size}", _fill_busybox)
    torch, tensorflow = (_framework(name) for name in ("torch", "tensorflow"))
    return [
        *(Image(name, (debian, torch)) for name in TORCH),
        *(Image(name, (debian, tensorflow)) for name in TENSORFLOW),
        *(Image(name, (debian,), entry=("git",)) for name in GIT),
        *(Image(name, (debian, _alpine())) for name in ALPINE),
        *(Image(name, (busybox,)) for name in BUSYBOX),
    ]


def pause_image() -> Image:
    """The process that holds a pod's namespaces."""
    program = cache_folder() / "cluster" / "bin" / "pause-1" / "pause"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        unfinished = program.with_suffix(".unfinished")
        compiler = ["gcc", "-static", "-O2", "-w", "-x", "c", "-o", str(unfinished), "-"]
        subprocess.run(compiler, input=_PAUSE_PROGRAM.encode(), check=True)
        unfinished.rename(program)
    return program_image(PAUSE, program, "/pause")


def _framework(name: str) -> Layer:
    def fill(root: Path) -> None:
        packages = root / "usr/local/lib/python3.11/dist-packages"
        packages.mkdir(parents=True)
        (packages / "framework.pth").write_text(f"/frameworks/{name}\n", encoding="utf-8")
        if name == "torch":
            torchrun = root / "usr/local/bin/torchrun"
            torchrun.parent.mkdir(parents=True)
            torchrun.write_text(_TORCHRUN, encoding="utf-8")
            torchrun.chmod(0o755)

    return folder_layer(f"framework {name} 1", fill)


def _alpine() -> Layer:
    """With an `nslookup` that succeeds when one of the search domains knows the name, as that image's does.

    training-operator's workers wait with it for their master; busybox's fails when any of the domains does not.
    """

    def fill(root: Path) -> None:
        program = root / "usr/local/bin/nslookup"
        program.parent.mkdir(parents=True)
        program.write_text('#!/bin/sh\nexec getent hosts "$1"\n', encoding="utf-8")
        program.chmod(0o755)

    return folder_layer("alpine 1", fill)


def debian_layer() -> Layer:
    """Debian's own installer makes the root, once per list of packages; the archive of it is kept."""
    kept = cache_folder() / "cluster" / "roots" / f"{_SUITE}-{_MADE_AS}-{_PACKAGES}.tar"
    with locked(cache_folder() / "cluster" / "roots.lock"):
        if not kept.exists():
            _make_debian(kept)
    return Layer(kept.stem, lambda target: link_or_copy(kept, target))


def _make_debian(kept: Path) -> None:
    print(f"installing a Debian {_SUITE} for the images of pods", flush=True)
    root = kept.with_suffix(".root")
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    try:
        command = ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", _SUITE, str(root)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise ClusterError(
                f"debootstrap failed: {done.stdout.strip()[-1000:]} {done.stderr.strip()[-500:]}",
                "Look whether Debian's mirror can be reached, then start again.",
            )
        (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
        for needless in _NEEDLESS:
            shutil.rmtree(root / needless, ignore_errors=True)
        unfinished = kept.with_suffix(".unfinished")
        # With times and owners: Python would compile its library again at every start without the former.
        subprocess.run(
            ["tar", "--numeric-owner", "-C", str(root), "-cf", str(unfinished), "."], check=True
        )
        unfinished.rename(kept)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _busybox() -> Path:
    found = shutil.which("busybox")
    if found is None or b"/ld-linux" in Path(found).read_bytes()[:4096]:
        raise ClusterError(
            f"a busybox without libraries of its own is expected, found {found}.",
            "Install Debian's package busybox-static.",
        )
    return Path(found)


def _fill_busybox(root: Path) -> None:
    (root / "bin").mkdir()
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    (root / "root").mkdir()
    (root / "etc").mkdir()
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n", encoding="utf-8")
    shutil.copy(_busybox(), root / "bin/busybox")
    applets = subprocess.run([_busybox(), "--list"], capture_output=True, text=True, check=True)
    for applet in applets.stdout.split():
        if applet != "busybox":
            (root / "bin" / applet).symlink_to("busybox")
