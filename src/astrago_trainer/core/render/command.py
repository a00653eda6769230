"""What the training container runs: the platform's set-up, then the user's command, unchanged.

Only the user's own command is shell text. Everything else of a user's reaches bash as an argument
or a variable, so nothing in it can be read as shell. Kubernetes expands `$(NAME)` and `$$` in
commands, arguments and values; `literal` writes a text so that it comes out of that as it was.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from astrago_trainer.core.platform import SYSTEM_PATH, Platform, SystemScripts
from astrago_trainer.core.render.reporting import status_variables
from astrago_trainer.core.render.requirements import USE_PACKAGES
from astrago_trainer.core.spec import JobSpec
from astrago_trainer.core.spec.rules import GIT_PATH, SCRIPTS_PATH

WORKING_DIR = "ASTRAGO_WORKING_DIR"
CHECKPOINT_DIR = "ASTRAGO_CHECKPOINT_DIR"
MAKE_CHECKPOINTS = f'mkdir -p -- "${CHECKPOINT_DIR}" || exit 1'
"""The folder is there when the user's code begins; the path is a variable, so nothing in it is shell."""
ENTER_FOLDER = f'cd -- "${WORKING_DIR}" || exit 1'

_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")
_CONSTANT = re.compile(r"[A-Z_][A-Z0-9_]*")
_LAUNCHER = re.compile(
    r"(?<![\w.-])torchrun(?![\w.-])|\btorch\.distributed\.(?:run|launch)\b"
    r"|(?<![\w./-])accelerate\s+launch\b|(?<![\w./-])deepspeed\s"
)


@dataclass(frozen=True, slots=True)
class Command:
    """The container's command line, still as people wrote it: `literal` has not been applied."""

    script: str
    """Given to `bash -c`."""
    arguments: tuple[str, ...]
    """What the script sees as `"$@"`."""
    starts_processes: bool
    """Whether torchrun, a relative of it or our launcher starts the node's processes (X7)."""
    source: str
    """The field of the request that decides what runs."""


def build_command(
    spec: JobSpec, platform: Platform, *, runtime: str, scripts: SystemScripts | None
) -> Command:
    """Set-up, a blank line, then what the user runs (M19, M45)."""
    launcher = _launcher(spec, scripts)
    text, arguments, source = _what_to_run(spec, platform, launcher)
    setup = [prelude(platform, runtime, scripts)]
    if spec.requirements:
        setup.append(USE_PACKAGES)
    if spec.checkpoints is not None:
        setup.append(MAKE_CHECKPOINTS)
    if working_dir(spec) is not None:
        setup.append(ENTER_FOLDER)
    before = "\n".join(part for part in setup if part)
    return Command(
        script=f"{before}\n\n{text}" if before else text,
        arguments=arguments,
        starts_processes=bool(launcher or _LAUNCHER.search(" ".join((text, *spec.argv)))),
        source=source,
    )


def prelude(platform: Platform, runtime: str, scripts: SystemScripts | None) -> str:
    """What is sourced before the user's command."""
    if scripts is not None:
        return f"source {SYSTEM_PATH}/{scripts.sourced}"
    return platform.preludes.get(runtime, "").strip("\n")


def working_dir(spec: JobSpec) -> str | None:
    """Where the command runs; None leaves it to the image. Code from git runs where it lies."""
    if spec.working_dir is None and spec.code is not None and spec.code.git is not None:
        return GIT_PATH
    return spec.working_dir


def literal(text: str, names: Collection[str]) -> str:
    """`text` written so that Kubernetes hands it on unchanged, in a pod with variables `names`.

    Only what would be replaced is doubled, so that most commands look in the TrainJob as they did
    in the form: `$$`, and `$(NAME)` where NAME is a variable or looks like one of a service.
    """

    def double(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return "$$$$"
        is_variable = name in names or _CONSTANT.fullmatch(name) is not None
        return f"${match[0]}" if is_variable else match[0]

    return _REFERENCE.sub(double, text)


def _launcher(spec: JobSpec, scripts: SystemScripts | None) -> str:
    """Ours, for a posted script that is to run as so many processes on each node.

    A request that does not say how many runs as plain python does, in the very form of M19.
    """
    is_ours = spec.command is None and not spec.argv and spec.code is not None
    if scripts is None or not scripts.launcher or not is_ours or spec.processes_per_node is None:
        return ""
    return f"{SYSTEM_PATH}/{scripts.launcher} -- "


def _what_to_run(
    spec: JobSpec, platform: Platform, launcher: str
) -> tuple[str, tuple[str, ...], str]:
    if spec.command is not None:
        return spec.command, (), "command"
    if spec.argv:
        return 'exec -- "$@"', spec.argv, "argv"
    if spec.code is None:
        return "", (), ""
    folder = GIT_PATH if spec.code.git is not None else SCRIPTS_PATH
    text = f"{_interpreter(spec, platform)} {launcher}{folder}/{spec.code.entrypoint}"
    return (f'{text} "$@"' if spec.args else text), spec.args, "code.entrypoint"


def _interpreter(spec: JobSpec, platform: Platform) -> str:
    """mpirun is told the user's variables, by names that hold letters, digits and '_' only."""
    words = platform.interpreters[spec.framework]
    names = [env.name for env in spec.env]
    if platform.progress_server:
        names += status_variables(
            platform.progress_server, "", "", ca_file=platform.progress_ca_file
        )
    if spec.framework != "horovod" or not names:
        return words
    launcher, _, program = words.rpartition(" ")
    return " ".join((launcher, *(f"-x {name}" for name in names), program))
