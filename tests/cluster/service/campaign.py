"""The crash sweeps in full: a service is killed at every point of a submit and of a deletion, in several rounds.

`python -m tests.cluster.service.campaign --rounds 10`, with a cluster up. Rounds are shared out to processes with a
namespace each, because a sweep mostly waits. Prints one JSON line for each share and one for all; ends with 1 when
something was lost, doubled or left over.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

from cluster.layout import Layout
from cluster.operators import Kubectl

from astrago_trainer import catalogue

ROOT = Path(__file__).parents[3]
ACTIONS = ("submit", "delete")
SHARE = 2
"""Rounds of one process: in the first the client repeats its request, in the second it does not."""


def shares(rounds: int) -> Iterator[tuple[str, int]]:
    for done in range(0, rounds, SHARE):
        for action in ACTIONS:
            yield action, min(SHARE, rounds - done)


def sweep(kubectl: Kubectl, release: str, action: str, rounds: int) -> dict[str, Any]:
    """One share, in a namespace of its own."""
    namespace = f"sweep-{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", namespace)
    began = time.monotonic()
    words = (namespace, release, "cluster", action, str(rounds))
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.cluster.service.sweep", *words],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
    finally:
        kubectl("delete", "namespace", namespace, "--wait=false")
    found = json.loads(done.stdout) if done.returncode == 0 else {"problem": done.stderr}
    told = {
        "action": action,
        "rounds": rounds,
        "seconds": round(time.monotonic() - began, 1),
        **found,
    }
    print(json.dumps(told), flush=True)
    return told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="of every point (10)")
    parser.add_argument("--at-once", type=int, default=4, help="processes (4)")
    options = parser.parse_args()
    layout = Layout.default()
    if not layout.kubeconfig.exists():
        print("no cluster here: make cluster", file=sys.stderr)
        return 1
    kubectl = Kubectl(layout.kubeconfig)
    release = (layout.run / "profile").read_text(encoding="utf-8")
    for name in catalogue.names():
        kubectl("apply", "--server-side", "-f", "-", stdin=catalogue.runtime_text(name))
    planned = list(shares(options.rounds))
    with ThreadPoolExecutor(options.at_once) as pool:
        found = list(pool.map(sweep, repeat(kubectl), repeat(release), *zip(*planned, strict=True)))
    bad = [each for each in found if "problem" in each]
    kills = sum(each.get("kills", 0) for each in found)
    print(
        json.dumps({"release": release, "rounds": options.rounds, "kills": kills, "bad": len(bad)})
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
