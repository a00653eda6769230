"""Packs folders into images under their official names; no registry is asked."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
import tempfile
from pathlib import Path

from cluster.holder import Holder

_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PAUSE = r"""
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void quit(int s) { exit(0); }
static void reap(int s) { while (waitpid(-1, 0, WNOHANG) > 0); }
int main(void) { signal(SIGINT, quit); signal(SIGTERM, quit); signal(SIGCHLD, reap); for (;;) pause(); }
"""


def import_program(
    holder: Holder, name: str, program: Path, entry: str, *, user: str = "65532:65532"
) -> None:
    """An image that holds one static program and a /tmp."""
    with tempfile.TemporaryDirectory(dir=holder.layout.root) as folder:
        root = Path(folder) / "root"
        (root / "tmp").mkdir(parents=True)
        (root / "tmp").chmod(0o1777)
        target = root / entry.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(program.read_bytes())
        target.chmod(0o755)
        import_folder(holder, name, root, [entry], user=user)


def import_pause(holder: Holder) -> None:
    """The process that holds a pod's namespaces."""
    with tempfile.TemporaryDirectory(dir=holder.layout.root) as folder:
        program = Path(folder) / "pause"
        subprocess.run(
            ["gcc", "-static", "-O2", "-w", "-x", "c", "-o", str(program), "-"],
            input=_PAUSE.encode(),
            check=True,
        )
        import_program(holder, "astrago/pause:1", program, "/pause")


def import_folder(
    holder: Holder, name: str, root: Path, entry: list[str], *, user: str = ""
) -> None:
    """A folder as an image of one layer; the same content gives the same image."""
    archive = holder.layout.root / f"image-{hashlib.sha256(name.encode()).hexdigest()[:12]}.tar"
    try:
        _pack(root, name, archive, entry, user)
        done = holder.inside(
            "ctr", "-a", str(holder.layout.socket), "-n", "k8s.io", "images", "import", str(archive)
        )
        if done.returncode:
            raise RuntimeError(f"containerd does not take the image {name}: {done.stderr}")
    finally:
        archive.unlink(missing_ok=True)


def _pack(root: Path, name: str, archive: Path, entry: list[str], user: str) -> None:
    layer = archive.with_suffix(".layer")
    with tarfile.open(layer, "w") as tar:
        tar.add(root, arcname=".", filter=_anonymous)
    with layer.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {
                "Env": [_PATH],
                "Entrypoint": entry or None,
                "WorkingDir": "/",
                "User": user,
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
    ).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": config_name, "RepoTags": [_full_name(name)], "Layers": ["layer.tar"]}]
    with tarfile.open(archive, "w") as tar:
        for member, content in (
            (config_name, config),
            ("manifest.json", json.dumps(manifest).encode()),
        ):
            info = tarfile.TarInfo(member)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        tar.add(layer, arcname="layer.tar")
    layer.unlink()


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uname = info.gname = ""
    info.uid = info.gid = 0
    info.mtime = 0
    return info


def _full_name(name: str) -> str:
    """As the kubelet asks for it: `busybox:1` is `docker.io/library/busybox:1`."""
    first, slash, _ = name.partition("/")
    if not slash:
        return f"docker.io/library/{name}"
    return name if "." in first or ":" in first else f"docker.io/{name}"
