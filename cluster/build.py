"""Builds the programs once, from pinned modules, and keeps them outside the checkout by the hash of their pins.

A program is built in a folder of its own and moved in place with a record of what it is, so neither an interrupted
build nor a file that was damaged later is ever taken for a good one.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from cluster.cache import cache_folder, locked
from cluster.errors import ClusterError
from cluster.pins import Program

MODULES = Path(__file__).parent / "go"


def binary(program: Program) -> Path:
    """The built program; builds it if it is not there, or not whole. Safe to call from several processes."""
    target = _folder(program) / program.name
    if _is_whole(target):
        return target
    with locked(cache_folder() / "cluster" / "build.lock", "another build"):
        if not _is_whole(target):
            _build(program, target)
    return target


def module_dir(module: str, path: str) -> Path:
    """Where Go keeps the sources of a dependency, which hold the official manifests."""
    found = _go(["list", "-m", "-f", "{{.Dir}}", path], module).strip()
    if not found:
        _go(["mod", "download", path], module)
        found = _go(["list", "-m", "-f", "{{.Dir}}", path], module).strip()
    return Path(found)


def check_go() -> None:
    """Raises ClusterError unless there is a Go that can build all modules, be it one that Go fetches itself."""
    needed = {_wanted_go(path): path.parent.name for path in MODULES.glob("*/go.mod")}
    newest = max(needed, key=_numbers)
    remedy = f"Install Go {newest} or newer (https://go.dev/dl) and put it first on PATH."
    go = shutil.which("go")
    if go is None:
        raise ClusterError("there is no `go` on PATH, and the cluster is built from Go.", remedy)
    # Asked in the module's folder: there an older Go that may fetch a newer one does so, and answers as that one.
    done = _run(go, ["version"], needed[newest])
    found = re.search(r"\bgo([0-9.]+)", done.stdout)
    if done.returncode or found is None or _numbers(found[1]) < _numbers(newest):
        told = (done.stdout if done.returncode == 0 else done.stderr).strip()[-500:]
        raise ClusterError(f"{go} cannot build for Go {newest}; it says: {told}", remedy)


def go_folders() -> dict[str, Path]:
    """Where Go keeps what it fetches and builds, by the variables that move it elsewhere."""
    names = ("GOCACHE", "GOMODCACHE")
    paths = _go(["env", *names], next(MODULES.iterdir()).name).splitlines()
    return {name: Path(path) for name, path in zip(names, paths, strict=True)}


def _folder(program: Program) -> Path:
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum"):
        digest.update((MODULES / program.module / name).read_bytes())
    digest.update(f"{program.package} {program.flags}".encode())
    return cache_folder() / "cluster" / "bin" / f"{program.name}-{digest.hexdigest()[:16]}"


def _build(program: Program, target: Path) -> None:
    """In a folder of its own, which Go works in as well: whatever cuts the build short, the rests are in one place."""
    again = ", since what is kept of it is not whole" if target.exists() else ""
    print(f"building {program.name} ({program.package}){again}", flush=True)
    for rest in target.parent.parent.glob("*/unfinished-*"):
        shutil.rmtree(rest, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix="unfinished-", dir=target.parent, ignore_cleanup_errors=True
    ) as folder:
        unfinished = Path(folder) / program.name
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
            GOTMPDIR=folder,
        )
        _record(unfinished, target)
        unfinished.rename(target)


def _record(built: Path, target: Path) -> None:
    """Beside the target, and the program on the disk: after a power cut it is whole, or it is built again."""
    with built.open("rb") as file:
        os.fsync(file.fileno())
    found = built.stat()
    facts = f"{found.st_size} {found.st_mtime_ns} {_digest(built)}\n"
    _record_of(target).write_text(facts, encoding="utf-8")


def _is_whole(target: Path) -> bool:
    """Whether it is what was built: unchanged size and time tell that; in a copy of the cache the checksum does."""
    try:
        size, changed, digest = _record_of(target).read_text(encoding="utf-8").split()
        found = target.stat()
        return size == str(found.st_size) and (
            changed == str(found.st_mtime_ns) or digest == _digest(target)
        )
    except (OSError, ValueError):
        return False


def _record_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.record")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _wanted_go(go_mod: Path) -> str:
    text = go_mod.read_text(encoding="utf-8")
    return next(line.split()[1] for line in text.splitlines() if line.startswith("go "))


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.strip(".").split(".")]


def _go(arguments: list[str], module: str, **settings: str) -> str:
    go = shutil.which("go")
    if go is None:
        raise ClusterError("there is no `go` on PATH.", "Install Go and put it on PATH.")
    done = _run(go, arguments, module, **settings)
    if done.returncode:
        raise ClusterError(
            f"go {' '.join(arguments[:2])} failed in cluster/go/{module}:\n{done.stderr.strip()[-2000:]}",
            "Try again: what was built so far is kept. If it fails again, the module proxy may be out of reach.",
        )
    return done.stdout


def _run(
    go: str, arguments: list[str], module: str, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Under settings of its own: flags or a workspace of the user's would build something else."""
    environment = {
        **os.environ,
        "GOFLAGS": "-mod=readonly -buildvcs=false",
        "GOWORK": "off",
        "CGO_ENABLED": "0",
        **settings,
    }
    return subprocess.run(
        [go, *arguments], cwd=MODULES / module, env=environment, capture_output=True, text=True
    )
