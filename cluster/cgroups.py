"""The control group of the cluster's pods. It has a name of its own, so that other kubelets' groups are never ours."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_BASE = Path("/sys/fs/cgroup")


def make_cgroup(name: str, base: Path = _BASE) -> None:
    """In every hierarchy; the kubelet wants its root to exist."""
    if (base / "cgroup.controllers").exists():
        _pass_on_controllers(base)
    for hierarchy in _hierarchies(base):
        (hierarchy / name).mkdir(exist_ok=True)


def remove_cgroup(name: str, base: Path = _BASE) -> None:
    """With all groups in it, deepest first; its processes are gone. Removing what is not there is fine."""
    for hierarchy in _hierarchies(base):
        group = hierarchy / name
        for folder in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
            folder.rmdir()
        if group.exists():
            group.rmdir()


def _hierarchies(base: Path) -> list[Path]:
    """One in version 2; one per controller in version 1, where those joined in one have several names."""
    if (base / "cgroup.controllers").exists():
        return [base]
    return [path for path in base.glob("*") if path.is_dir()]


def _pass_on_controllers(base: Path) -> None:
    """In version 2 a group has the controllers that its parent passes on; the kubelet wants these."""
    for controller in ("cpu", "cpuset", "memory", "hugetlb", "pids"):
        with suppress(OSError):  # not in this kernel; the kubelet asks only for those that are
            (base / "cgroup.subtree_control").write_text(f"+{controller}", encoding="utf-8")
