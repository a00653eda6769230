"""`astrago apply -f FILE`: a job file, or a manifest that says the same, becomes a job."""

from __future__ import annotations

import argparse

from astrago_trainer.cli.doors import add_options, add_output, open_door
from astrago_trainer.cli.exits import EPILOG

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from typing import Any

    from astrago_trainer.core.convert import Converted

    Json = dict[str, Any]

_EPILOG = """\
  astrago apply -f job.yaml            begin it
  astrago apply -f job.yaml --follow   and follow it to its end
  astrago preview -f job.yaml          see first what it will become

"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG + EPILOG
    parser.add_argument(
        "-f",
        "--file",
        required=True,
        action="append",
        metavar="FILE",
        help="job file, TrainJob, or PyTorchJob, TFJob, MPIJob of v1; YAML or JSON; - is standard input; "
        "a second -f names the file with its ConfigMap",
    )
    parser.add_argument("--follow", action="store_true", help="show its output, to its end")
    add_output(parser)
    add_options(parser)
    parser.set_defaults(usage_error=parser.error)


def execute(options: argparse.Namespace) -> int:
    from contextlib import closing

    from astrago_trainer.cli.job_file import missing_config_maps, mounted_config_maps, read_job_file
    from astrago_trainer.cli.starting import start
    from astrago_trainer.core.errors import InvalidRequest

    body = _whole(read_job_file(*options.file))
    mounted = mounted_config_maps(body)
    # A file may say where it belongs; what was typed says it better.
    options.namespace = options.namespace or body.get("namespace")
    with closing(open_door(options)) as door:
        # On a cluster they may exist; a machine has no others than those that jobs bring along.
        if mounted and door.whoami()["engine"] == "local":
            raise InvalidRequest(missing_config_maps(mounted, options.file, severity="error"))
        spec = {**body, "namespace": door.namespace}
        return start(
            door, lambda: door.submit(spec), is_detached=not options.follow, output=options.output
        )


def _whole(found: Converted) -> Json:
    """The body, unless something of a manifest is not in it; what the job can do without is told."""
    import sys

    from astrago_trainer.cli.terminal import Terminal, problem_lines
    from astrago_trainer.core.errors import InvalidRequest

    if any(each.severity == "error" for each in found.lost):
        raise InvalidRequest(found.lost)
    lines = problem_lines(found.lost, Terminal(sys.stderr))
    sys.stderr.writelines(f"{line}\n" for line in lines)
    return found.job
