#!/usr/bin/env python3
"""Shows what a TrainJob and its runtime become: `merge_preview.py --runtime FILE --trainjob FILE`.

The same as `astrago preview --runtime FILE --trainjob FILE`, for those who know it by this name. Any Python 3 can start
it: where the package is not installed, it continues in the environment of the checkout, and makes it if it is missing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv"


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description="Preview the merge of a TrainJob into its runtime."
    )
    parser.add_argument("--runtime", metavar="FILE", required=True)
    parser.add_argument("--trainjob", metavar="FILE", required=True)
    parser.add_argument(
        "-o", "--output", default="table", choices=("table", "wide", "yaml", "json")
    )
    options = parser.parse_args(argv)
    if find_spec("astrago_trainer") is None:
        return continue_in_environment(argv)
    from astrago_trainer.cli.main import main as astrago

    pair = ["--runtime", options.runtime, "--trainjob", options.trainjob]
    return astrago(["preview", *pair, "--output", options.output])


def continue_in_environment(argv: Sequence[str]) -> int:
    """Replaces this process; returns only when there is no environment to continue in."""
    if Path(sys.prefix) == ENVIRONMENT:
        return fail(f"{ENVIRONMENT} is not complete; remove it, and run: make setup")
    if not (ENVIRONMENT / ".ready").exists():
        say(f"making the environment {ENVIRONMENT}, one time (the first step of make setup)")
        try:
            command = ["make", "--silent", "-C", str(ROOT), ".venv/.ready"]
            done = subprocess.run(command, stdout=sys.stderr, check=False)
        except FileNotFoundError:
            return fail("make is not installed, and the environment needs it")
        if done.returncode:
            return fail("the environment could not be made; see above, then run: make setup")
    python = str(ENVIRONMENT / "bin" / "python")
    os.execv(python, [python, str(Path(__file__).resolve()), *argv])


def fail(text: str) -> int:
    say(text)
    return 1


def say(text: str) -> None:
    sys.stderr.write(f"merge_preview.py: {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
