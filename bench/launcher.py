"""How long the launcher keeps a script waiting: beside bare python, and beside torchrun (2 nodes)."""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cluster.frameworks import RUNNING_PYTHON, NoSuchPython, environment

from bench.measure import comparison, interleaved

ROUNDS = 25
TORCH_ROUNDS = 15
_LAUNCH = Path(__file__).parents[1] / "runtimes" / "system" / "launch.py"
FORMS = {
    # How a pod starts it, and how the local engine may: without `site`, which it does not need.
    "python launch.py": [sys.executable, str(_LAUNCH)],
    "python -I -S launch.py": [sys.executable, "-I", "-S", str(_LAUNCH)],
}


def run() -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        yield from _trivial(Path(folder) / "trivial.py")
        yield _torch(Path(folder) / "imports.py")


def _trivial(script: Path) -> Iterator[dict[str, Any]]:
    script.write_text("pass\n")
    bare = [sys.executable, str(script)]
    for name, launch in FORMS.items():
        ours = [*launch, "--", str(script)]
        _wall_ms([(ours, {})])
        mine, theirs = interleaved(
            lambda: _wall_ms([(ours, {})]),  # noqa: B023
            lambda: _wall_ms([(bare, {})]),
            ROUNDS,
        )
        more = statistics.median(mine) - statistics.median(theirs)
        yield {
            "id": f"launcher trivial, {name}",
            "unit": "ms",
            "goal": "<= 60 more than bare python",
            "peer_command": "python trivial.py",
            "more": round(more, 1),
            **comparison(mine, theirs),
        }


def _torch(script: Path) -> dict[str, Any]:
    described = {"id": "launcher import torch, 2 nodes", "unit": "ms", "goal": "<= 0.60"}
    try:
        folder = environment("torch", RUNNING_PYTHON)
    except NoSuchPython as missing:
        return {**described, "ours": None, "peer": None, "why": str(missing)}
    script.write_text("import torch.distributed\n")
    python = str(folder / "bin" / "python")
    ours = [python, str(_LAUNCH), "--", str(script)]
    peer = [str(folder / "bin" / "torchrun"), str(script)]
    _wall_ms(two_nodes(peer))
    mine, theirs = interleaved(
        lambda: _wall_ms(two_nodes(ours)), lambda: _wall_ms(two_nodes(peer)), TORCH_ROUNDS
    )
    return {**described, "peer_command": "torchrun on both nodes", **comparison(mine, theirs)}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def two_nodes(command: list[str]) -> list[tuple[list[str], dict[str, str]]]:
    common = {
        "PET_NNODES": "2",
        "PET_NPROC_PER_NODE": "1",
        "PET_MASTER_ADDR": "127.0.0.1",
        "PET_MASTER_PORT": str(free_port()),
    }
    return [(command, {**common, "PET_NODE_RANK": str(node)}) for node in range(2)]


def _wall_ms(nodes: Sequence[tuple[list[str], dict[str, str]]]) -> float:
    """From the start of the first to the end of the last, at the same time on all nodes."""
    begin = time.perf_counter()
    started = [
        subprocess.Popen(
            command,
            env={**os.environ, **more},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for command, more in nodes
    ]
    codes = [process.wait() for process in started]
    if any(codes):
        raise RuntimeError(f"{' '.join(nodes[0][0])} ended with {codes}")
    return (time.perf_counter() - begin) * 1000
