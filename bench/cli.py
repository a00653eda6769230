"""CPU time of the command line, beside kubectl's (performance goal H)."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.measure import comparison, cpu_ms, interleaved

ROUNDS = 25
_ASTRAGO = str(Path(sys.executable).with_name("astrago"))
_SAMPLE = Path(__file__).parents[1] / "runtimes" / "pytorch"
COMMANDS = {
    "--help": ([_ASTRAGO, "--help"], 100),
    "preview": (
        [
            _ASTRAGO,
            "preview",
            "--runtime",
            str(_SAMPLE / "runtime.yaml"),
            "--trainjob",
            str(_SAMPLE / "trainjob.yaml"),
        ],
        250,
    ),
}


def run() -> Iterator[dict[str, Any]]:
    kubectl = shutil.which("kubectl")
    for name, (command, most) in COMMANDS.items():
        described = {"id": f"cli {name}", "unit": "ms CPU", "goal": f"<= {most}"}
        cpu_ms(command)  # bytecode and page cache are warm for both
        if kubectl is None:
            mine = sorted(cpu_ms(command) for _ in range(ROUNDS))
            yield {
                **described,
                "ours": round(mine[ROUNDS // 2], 1),
                "peer": None,
                "why": "kubectl is missing",
            }
            continue
        peer = [kubectl, "version", "--client"]
        cpu_ms(peer)
        mine, theirs = interleaved(lambda: cpu_ms(command), lambda: cpu_ms(peer), ROUNDS)  # noqa: B023
        yield {**described, "peer_command": "kubectl version --client", **comparison(mine, theirs)}
