"""`astrago version`: ours, Python's, and the Trainer releases we speak to."""

from __future__ import annotations

import argparse
import sys

from astrago_trainer import __version__


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", choices=("table", "json", "yaml"), default="table", help="default: table"
    )


def execute(options: argparse.Namespace) -> int:
    from astrago_trainer.core.platform import TRAINER_VERSIONS

    facts = {
        "astrago": __version__,
        "python": sys.version.split()[0],
        "trainer": list(TRAINER_VERSIONS),
    }
    if options.output == "json":
        import json

        print(json.dumps(facts))
    elif options.output == "yaml":
        from astrago_trainer.manifests import dump_yaml

        print(dump_yaml(facts), end="")
    else:
        print(f"astrago {__version__}")
        print(f"Python {facts['python']}, Kubeflow Trainer {', '.join(TRAINER_VERSIONS)}")
    return 0
