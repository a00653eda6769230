"""`python -m bench [name …]`: all benchmarks, or those named."""

from __future__ import annotations

import json
import platform
import sys

from bench import (
    api,
    board,
    checkpoint,
    cli,
    kubernetes,
    launcher,
    local,
    logs,
    merge,
    progress,
    store,
)

BENCHMARKS = {
    "merge": merge.run,
    "cli": cli.run,
    "logs": logs.run,
    "checkpoint": checkpoint.run,
    "launcher": launcher.run,
    "local": local.run,
    "progress": progress.run,
    "store": store.run,
    "board": board.run,
    "api": api.run,
    "kubernetes": kubernetes.run,
}


def main(names: list[str]) -> int:
    unknown = sorted(set(names) - set(BENCHMARKS))
    if unknown:
        print(
            f"bench: no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}",
            file=sys.stderr,
        )
        return 2
    machine = {"python": platform.python_version(), "machine": platform.machine()}
    for name in names or BENCHMARKS:
        for line in BENCHMARKS[name]():
            print(json.dumps({**line, **machine}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
