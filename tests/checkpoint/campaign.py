"""The long version of the crash tests with real torch: `python -m tests.checkpoint.campaign --kills 200`.

A small model is trained by one process, and by two over gloo, and killed so many times during its saves. Every time it
must go on from a verified checkpoint, losing at most the save under way, and in the end its state must be equal, bit
for bit, to that of a run that nobody disturbed. One JSON line each; the exit status is 1 when something was wrong.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

from cluster.frameworks import RUNNING_PYTHON, environment

ROOT = Path(__file__).parents[2]


def run_campaign(
    folder: Path, *, ranks: int, kills: int, seed: int
) -> subprocess.CompletedProcess[str]:
    """Kill a training by torch so many times in an empty folder; what it printed is one JSON line."""
    return subprocess.run(
        [
            environment("torch", RUNNING_PYTHON) / "bin" / "python",
            *("-m", "tests.checkpoint.torch_kills"),
            *map(str, (folder, ranks, kills, seed)),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "CUDA_VISIBLE_DEVICES": ""},
        stdout=subprocess.PIPE,
        text=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200, help="for each number of ranks (200)")
    parser.add_argument(
        "--ranks", type=int, nargs="+", default=[1, 2], help="numbers of ranks (1 2)"
    )
    parser.add_argument(
        "--seed", type=int, default=secrets.randbelow(10**6), help="repeats a campaign's choices"
    )
    options = parser.parse_args()
    has_failed = False
    for ranks in options.ranks:
        with tempfile.TemporaryDirectory() as folder:
            done = run_campaign(Path(folder), ranks=ranks, kills=options.kills, seed=options.seed)
        print(done.stdout, end="", flush=True)
        if done.returncode != 0:
            has_failed = True
            print(
                f"campaign: {ranks} ranks failed; --seed {options.seed} chooses the same kills",
                file=sys.stderr,
            )
    return 1 if has_failed else 0


if __name__ == "__main__":
    sys.exit(main())
