"""`astrago convert -f FILE`: a manifest of others as a job file, and what of it is not in there."""

from __future__ import annotations

import argparse

_EPILOG = """\
  astrago convert -f pytorchjob.yaml > job.yaml    look at it, then:
  astrago apply -f job.yaml

A TrainJob, or a PyTorchJob, TFJob or MPIJob of the Training Operator v1. What
cannot be carried over is said on standard error; the exit code is 1 when the
job would then do something else than was meant.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument(
        "-f",
        "--file",
        required=True,
        action="append",
        metavar="FILE",
        help="manifest; - is standard input; a second -f names the file with its ConfigMap",
    )
    parser.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml")


def execute(options: argparse.Namespace) -> int:
    import sys

    from astrago_trainer.cli.job_file import missing_config_maps, mounted_config_maps, read_job_file
    from astrago_trainer.cli.show import show_value
    from astrago_trainer.cli.terminal import Terminal, problem_lines

    found = read_job_file(*options.file)
    missing = missing_config_maps(mounted_config_maps(found.job), options.file)
    show_value(found.job, options.output)
    sys.stdout.flush()
    lines = problem_lines((*found.lost, *missing), Terminal(sys.stderr))
    sys.stderr.writelines(f"{line}\n" for line in lines)
    return int(any(each.severity == "error" for each in found.lost))
