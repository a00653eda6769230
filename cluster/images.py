"""Packs files into images under their official names and hands them to containerd; no registry is asked.

containerd keeps its images in the state folder. Each carries the key of its content as a label, so that a later start
brings only what is new.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from cluster.errors import ClusterError
from cluster.holder import Holder

_LABEL = "astrago.io/content"
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Layer:
    """Files of an image: a key that names the content, and how to put them into a folder or a ready archive."""

    key: str
    archive: Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Image:
    name: str
    layers: tuple[Layer, ...]
    entry: tuple[str, ...] = ()
    user: str = ""

    @property
    def key(self) -> str:
        told = json.dumps([self.name, [layer.key for layer in self.layers], self.entry, self.user])
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    @property
    def full_name(self) -> str:
        """As the kubelet asks for it: `busybox` is `docker.io/library/busybox:latest`."""
        first, slash, rest = self.name.partition("/")
        name = self.name if ":" in (rest or first) else f"{self.name}:latest"
        if not slash:
            return f"docker.io/library/{name}"
        return name if "." in first else f"docker.io/{name}"


def folder_layer(key: str, fill: Callable[[Path], None]) -> Layer:
    """A layer from a folder that `fill` writes; owners and times are left out of it."""

    def archive(target: Path) -> None:
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            fill(Path(folder))
            Path(folder).chmod(0o755)
            with tarfile.open(target, "w") as tar:
                tar.add(folder, arcname=".", filter=_anonymous)

    return Layer(key, archive)


def program_image(name: str, program: Path, entry: str, *, user: str = "65532:65532") -> Image:
    """An image that holds one static program and a /tmp. The program's folder is named after its content."""

    def fill(root: Path) -> None:
        (root / "tmp").mkdir()
        (root / "tmp").chmod(0o1777)
        target = root / entry.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(program.read_bytes())
        target.chmod(0o755)

    return Image(name, (folder_layer(program.parent.name, fill),), (entry,), user)


def bring(holder: Holder, images: Iterable[Image]) -> None:
    """Makes sure that containerd has these images with this content."""
    present = _ctr(holder, "ls")
    missing = [
        image
        for image in images
        if not any(
            line.startswith(f"{image.full_name} ") and f"{_LABEL}={image.key}" in line
            for line in present.splitlines()
        )
    ]
    if not missing:
        return
    with tempfile.TemporaryDirectory(dir=holder.layout.root) as folder:
        archive = Path(folder) / "images.tar"
        _pack(missing, archive)
        _ctr(holder, "import", "--digests=false", str(archive))
    for image in missing:
        _ctr(holder, "label", image.full_name, f"{_LABEL}={image.key}")


def _ctr(holder: Holder, *arguments: str) -> str:
    done = holder.inside(
        "ctr", "-a", str(holder.layout.socket), "-n", "k8s.io", "images", *arguments
    )
    if done.returncode:
        raise ClusterError(
            f"containerd: `images {arguments[0]}` failed: {done.stderr.strip()[-1000:]}",
            "If it happens again, `make clean-cluster ALL=1` removes what containerd has kept.",
        )
    return done.stdout


def _pack(images: list[Image], archive: Path) -> None:
    """One archive for all of them; a layer that several share is in it once."""
    layers = {layer.key: layer for image in images for layer in image.layers}
    digests = {}
    manifest = []
    with tarfile.open(archive, "w") as tar:
        for key, layer in layers.items():
            path = archive.with_name(f"{hashlib.sha256(key.encode()).hexdigest()}.layer")
            layer.archive(path)
            with path.open("rb") as file:
                digests[key] = hashlib.file_digest(file, "sha256").hexdigest()
            tar.add(path, arcname=f"{digests[key]}.tar")
            path.unlink()
        for image in images:
            config = _config(image, [digests[layer.key] for layer in image.layers])
            name = f"{hashlib.sha256(config).hexdigest()}.json"
            _add(tar, name, config)
            manifest.append(
                {
                    "Config": name,
                    "RepoTags": [image.full_name],
                    "Layers": [f"{digests[layer.key]}.tar" for layer in image.layers],
                }
            )
        _add(tar, "manifest.json", json.dumps(manifest).encode())


def _config(image: Image, digests: list[str]) -> bytes:
    settings = {
        "Env": [_PATH],
        "Entrypoint": list(image.entry) or None,
        "Cmd": None if image.entry else ["sh"],
        "WorkingDir": "/",
        "User": image.user,
        "Labels": {_LABEL: image.key},  # two names are two images, though their files are the same
    }
    return json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": settings,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
        }
    ).encode()


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uname = info.gname = ""
    info.uid = info.gid = 0
    info.mtime = 0
    return info


def link_or_copy(source: Path, target: Path) -> None:
    """A kept archive as a layer's file."""
    try:
        os.link(source, target)
    except OSError:  # another disk
        subprocess.run(["cp", str(source), str(target)], check=True)
