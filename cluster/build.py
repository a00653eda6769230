"""Builds the programs once, from pinned modules, and keeps them outside the checkout by the hash of their pins."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from cluster.cache import cache_folder, locked
from cluster.errors import ClusterError
from cluster.pins import Program

MODULES = Path(__file__).parent / "go"


def binary(program: Program) -> Path:
    """The built program; builds it if it is not there. Safe to call from several processes."""
    target = _folder(program) / program.name
    if target.exists():
        return target
    with locked(cache_folder() / "cluster" / "build.lock"):
        if not target.exists():
            _build(program, target)
    return target


def module_dir(module: str, path: str) -> Path:
    """Where Go keeps the sources of a dependency, which hold the official manifests."""
    found = _go(["list", "-m", "-f", "{{.Dir}}", path], module).strip()
    if not found:
        _go(["mod", "download", path], module)
        found = _go(["list", "-m", "-f", "{{.Dir}}", path], module).strip()
    return Path(found)


def _folder(program: Program) -> Path:
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum"):
        digest.update((MODULES / program.module / name).read_bytes())
    digest.update(f"{program.package} {program.flags}".encode())
    return cache_folder() / "cluster" / "bin" / f"{program.name}-{digest.hexdigest()[:16]}"


def _build(program: Program, target: Path) -> None:
    """Under another name first, so that an interrupted build is never taken for a good one."""
    print(f"building {program.name} ({program.package})", flush=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".unfinished")
    _go(
        [
            "build",
            "-trimpath",
            "-ldflags",
            f"-s -w {program.flags}",
            "-o",
            str(unfinished),
            program.package,
        ],
        program.module,
    )
    unfinished.rename(target)


def _go(arguments: list[str], module: str) -> str:
    go = shutil.which("go")
    if go is None:
        raise ClusterError(
            "Go is not installed, and the cluster is built from Go modules.",
            "Install Go 1.26 or newer and put it on PATH.",
        )
    environment = {**os.environ, "GOFLAGS": "-mod=readonly -buildvcs=false", "CGO_ENABLED": "0"}
    done = subprocess.run(
        [go, *arguments], cwd=MODULES / module, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise ClusterError(
            f"go {' '.join(arguments[:2])} failed in cluster/go/{module}:\n{done.stderr.strip()[-2000:]}",
            "Try again: what was built so far is kept. If it fails again, the module proxy may be out of reach.",
        )
    return done.stdout
