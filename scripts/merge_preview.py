#!/usr/bin/env python3
"""Shows what a TrainJob and its runtime become: `merge_preview.py --runtime FILE --trainjob FILE`.

The same as `astrago preview --runtime FILE --trainjob FILE`, for those who know it by this name.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from astrago_trainer.cli.main import main as astrago


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
    pair = ["--runtime", options.runtime, "--trainjob", options.trainjob]
    return astrago(["preview", *pair, "--output", options.output])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
