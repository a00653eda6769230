"""`astrago run FILE.py`: a script becomes a job, and is followed to its end."""

from __future__ import annotations

import argparse

from astrago_trainer.cli.doors import add_options, add_output, open_door
from astrago_trainer.cli.exits import EPILOG

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from astrago_trainer.core.errors import Problem

TAKES_ARGUMENTS = True
"""What stands behind -- is the script's."""

_EPILOG = """\
  astrago run train.py                          one node, here
  astrago run train.py --nodes 2 -- --epochs 3  and arguments for the script
  astrago run train.py --files '*.py'           with the modules beside it
  astrago run project --entry main.py           a whole folder, 1 MiB at most
  astrago run train.py --gpus 1 --max-restarts 2 --detach
  astrago run train.py --volume data=my-claim:/data:ro --env SEED=1

Ctrl-C leaves the job running and says how to come back.

"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG + EPILOG
    parser.usage = "astrago run FILE.py|FOLDER [option ...] [-- argument ...]"
    parser.add_argument("file", metavar="FILE.py", help="the script, or a folder with it")
    parser.add_argument("--entry", metavar="FILE", help="the script of a folder (train.py)")
    parser.add_argument(
        "--files",
        action="append",
        default=[],
        metavar="PATTERN",
        help="files beside the script that it needs, as '*.py'; of a folder: these alone",
    )
    job = parser.add_argument_group("job")
    job.add_argument("--name", help="default: made of your name and the time")
    job.add_argument("--nodes", type=count, metavar="N", help="nodes that train together (1)")
    job.add_argument("--gpus", type=count, metavar="N", help="GPUs of each node (0)")
    job.add_argument("--cpus", metavar="N", help="CPU cores of each node, as 4 or 500m")
    job.add_argument("--memory", metavar="SIZE", help="memory of each node, as 16Gi")
    job.add_argument("--processes-per-node", metavar="N", help="a number, auto, cpu or gpu (1)")
    job.add_argument(
        "--framework",
        choices=("pytorch", "tensorflow", "horovod"),
        help="default: what the script imports, else pytorch",
    )
    job.add_argument("--image", help="container image; the runtime's when left out")
    job.add_argument("--runtime", help="training runtime; the framework's when left out")
    job.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="K=V",
        help="a variable; K alone: its value here",
    )
    job.add_argument(
        "--volume",
        action="append",
        default=[],
        metavar="NAME=CLAIM:/PATH[:ro]",
        help="a claim and where the script sees it",
    )
    job.add_argument(
        "-r", "--requirements", metavar="FILE", help="packages to install first, one a line"
    )
    job.add_argument(
        "--checkpoints", metavar="PATH", help="folder for checkpoints; on a cluster, on a volume"
    )
    job.add_argument("--max-restarts", type=count, metavar="N", help="starts after a failure")
    parser.add_argument(
        "-d", "--detach", action="store_true", help="do not follow it; its name is printed"
    )
    add_output(parser)
    add_options(parser)
    parser.set_defaults(usage_error=parser.error)


def execute(options: argparse.Namespace) -> int:
    from contextlib import closing

    from astrago_trainer.cli.starting import start
    from astrago_trainer.client.requests import script_request
    from astrago_trainer.core.errors import InvalidRequest

    body = script_request(
        options.file,
        options.arguments,
        _fields(options),
        entry=options.entry,
        files=options.files,
    )
    with closing(open_door(options)) as door:
        try:
            return start(
                door, lambda: door.submit(body), is_detached=options.detach, output=options.output
            )
        except InvalidRequest as error:
            if options.requirements is None:
                raise
            raise InvalidRequest(
                _in_file(each, options.requirements) for each in error.problems
            ) from None


def _in_file(problem: Problem, file: str) -> Problem:
    """A requirement is known to the service by its number; a person knows the file and its line."""
    import re
    from dataclasses import replace
    from pathlib import Path

    from astrago_trainer.core.spec.text import requirement_lines

    found = re.fullmatch(r"requirements\[(\d+)\]", problem.path)
    if found is None:
        return problem
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    numbers = [number for number, line in enumerate(lines, 1) if requirement_lines(line)]
    return replace(problem, path=f"{file}, line {numbers[int(found[1])]}")


def _fields(options: argparse.Namespace) -> dict[str, object]:
    from pathlib import Path

    from astrago_trainer.client.requests import read_script

    resources = {
        "cpu": options.cpus,
        "memory": options.memory,
        "gpus": options.gpus,
    }
    processes = options.processes_per_node
    return {
        "name": options.name,
        "nodes": options.nodes,
        "framework": options.framework,
        "image": options.image,
        "runtime": options.runtime,
        "processes_per_node": int(processes) if processes and processes.isdecimal() else processes,
        "resources": {name: value for name, value in resources.items() if value is not None}
        or None,
        "env": [_env(each, options) for each in options.env] or None,
        "volumes": [_volume(each, options) for each in options.volume] or None,
        "checkpoints": options.checkpoints,
        "max_restarts": options.max_restarts,
        "requirements": read_script(Path(options.requirements)) if options.requirements else None,
    }


def _env(text: str, options: argparse.Namespace) -> dict[str, str]:
    import os

    name, equals, value = text.partition("=")
    if not equals:
        if name not in os.environ:
            options.usage_error(f"--env {name}: must be NAME=VALUE; {name} is not set here either")
        value = os.environ[name]
    return {"name": name, "value": value}


def _volume(text: str, options: argparse.Namespace) -> dict[str, object]:
    name, _, rest = text.partition("=")
    claim, _, path = rest.partition(":")
    path, _, mode = path.partition(":")
    if not (name and claim and path.startswith("/")) or mode not in ("", "ro", "rw"):
        options.usage_error(f"--volume {text}: must be NAME=CLAIM:/PATH or NAME=CLAIM:/PATH:ro")
    made: dict[str, object] = {"name": name, "claim": claim, "mount_path": path}
    return {**made, "read_only": True} if mode == "ro" else made


def count(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 9:
        raise argparse.ArgumentTypeError(f"must be a whole number, not {text!r}")
    return int(text)
