"""The `astrago` command: finds the command's module, runs it, and turns failures into words.

Start-up counts: this module imports argparse and nothing of ours, so `--help` costs what Python
itself costs. Exit codes: 0 done, 1 the input or the plan has errors, 2 wrong usage; `exits` has those of jobs.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module

from astrago_trainer import __version__

TYPE_CHECKING = False  # type checkers know the name; importing typing would take 4 ms
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn, Protocol

    from _typeshed import SupportsWrite

    class Command(Protocol):
        """What a `cmd_<name>` module offers."""

        def configure(self, parser: argparse.ArgumentParser) -> None:
            """Add the options; must be cheap, `--help` calls it."""

        def execute(self, options: argparse.Namespace) -> int:
            """Do it and return the exit code."""


OK, FAILED, USAGE = 0, 1, 2
INTERRUPTED, PIPE_CLOSED = 130, 141
"""What a shell reports for a program that SIGINT or SIGPIPE ended."""

COMMANDS = {
    "up": "start the server: API, page and local engine",
    "run": "run a script as a job and follow it",
    "apply": "begin the job that a file describes",
    "convert": "turn a TrainJob or a job of v1 into a job file",
    "preview": "show what a job will become, and where each line comes from",
    "list": "list jobs, newest first",
    "status": "show how a job stands, and why",
    "logs": "show the output of all ranks, or follow it",
    "events": "show what happened to a job",
    "metrics": "show the loss and other numbers of a job",
    "explain": "say why a job is as it is, and what to do",
    "suspend": "stop a job; resume starts it again",
    "resume": "start a suspended job again",
    "restart": "run a job again from the beginning",
    "clone": "begin a new job like another one",
    "delete": "end jobs and remove them with their logs",
    "nodes": "list the machines, how full they are, and by whom",
    "environments": "list or install what stands in for images on this machine",
    "runtimes": "list the runtimes that come with the package, or show one",
    "login": "choose a server for all commands",
    "whoami": "show who you are, and where",
    "tenants": "say who may do what where",
    "users": "list, make, disable or delete users",
    "tokens": "list, make or revoke tokens",
    "db": "back up, restore or upgrade the database",
    "install": "print what a cluster needs, or apply it",
    "doctor": "say what is missing here or in the cluster, and what mends it",
    "version": "print versions",
}


def run() -> NoReturn:
    """The console entry point."""
    sys.exit(main(sys.argv[1:]))


def main(argv: Sequence[str]) -> int:
    """Run one command and return its exit code; never raises for what a user can cause."""
    _prepare_streams()
    try:
        try:
            code = _dispatch(argv)
        except SystemExit as end:  # argparse: help was shown, or the usage was wrong
            code = end.code if isinstance(end.code, int) else USAGE
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _discard_stdout()
        return PIPE_CLOSED
    except OSError as error:  # those of input files have become problems before they come here
        _discard_stdout()
        what = "the output cannot be written" if error.filename is None else error.filename
        print(f"astrago: {what}: {error.strerror}", file=sys.stderr)
        return FAILED
    except Exception as error:
        return _report(error)
    return code


def _prepare_streams() -> None:
    """A stream the caller has closed is empty; one that knows few characters gets their codes."""
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: PTH123, SIM115
        elif name != "stdin" and (reconfigure := getattr(stream, "reconfigure", None)) is not None:
            reconfigure(errors="backslashreplace")


def _dispatch(argv: Sequence[str]) -> int:
    name = next((word for word in argv if not word.startswith("-")), None)
    if name not in COMMANDS:
        parser = _parser(epilog=_overview())
        if name is not None:
            parser.error(f"there is no command {name!r}{_nearest(name)}")
        parser.parse_args(argv)
        parser.print_help()
        return OK
    command: Command = import_module(f"astrago_trainer.cli.cmd_{name}")
    parser = _parser()
    command.configure(_subparser(parser, name))
    if not getattr(command, "TAKES_ARGUMENTS", False):
        return command.execute(parser.parse_args(argv))
    # By hand: argparse takes options of a script for its own as soon as it has seen one of them.
    place = argv.index("--") if "--" in argv else len(argv)
    options = parser.parse_args(argv[:place])
    options.arguments = list(argv[place + 1 :])
    return command.execute(options)


class _Parser(argparse.ArgumentParser):
    """Argparse repeats what was typed; a terminal must not obey it."""

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        if not message.isprintable():
            message = "".join(
                each
                if each.isprintable() or each == "\n"
                else each.encode("unicode_escape").decode()
                for each in message
            )
        super()._print_message(message, file)


class Help(argparse.RawDescriptionHelpFormatter):
    """Argparse asks shutil for the width, which takes 6 ms to import."""

    def __init__(self, prog: str) -> None:
        columns = os.environ.get("COLUMNS", "")
        try:
            size = int(columns) if columns.isdecimal() else os.get_terminal_size().columns
        except OSError:
            size = 80
        super().__init__(prog, width=min(max(size, 40), 100) - 2)


def _parser(epilog: str = "") -> argparse.ArgumentParser:
    parser = _Parser(
        prog="astrago",
        usage="astrago [-h] [--version] COMMAND ...",
        description="Self-service distributed training on Kubeflow Trainer, or on this machine.",
        epilog=epilog,
        formatter_class=Help,
    )
    parser.add_argument("--version", action="version", version=f"astrago {__version__}")
    return parser


def _subparser(parser: argparse.ArgumentParser, name: str) -> argparse.ArgumentParser:
    """Of the command that was named: a parser for each of them would take as long as all the rest."""
    text = COMMANDS[name]
    group = parser.add_subparsers(prog="astrago", dest="command")
    return group.add_parser(name, description=f"{text[0].upper()}{text[1:]}.", formatter_class=Help)


def _overview() -> str:
    wide = max(map(len, COMMANDS))
    lines = (f"  {name:<{wide}}  {text}" for name, text in COMMANDS.items())
    return "\n".join(["commands:", *lines, "", "astrago COMMAND --help says more about a command."])


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, COMMANDS, 1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(COMMANDS)}"


def _discard_stdout() -> None:
    """So that the interpreter's last flush does not complain about the closed pipe once more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):  # a stdout without a file, as in tests
        pass
    finally:
        os.close(nowhere)


def _complain(text: str) -> None:
    from astrago_trainer.cli.terminal import Terminal
    from astrago_trainer.cli.words import folded

    lines = folded(f"astrago: {text}", Terminal(sys.stderr))
    sys.stderr.writelines(f"{line}\n" for line in lines)


def _report(error: Exception) -> int:
    from astrago_trainer.cli.exits import NOT_FOUND
    from astrago_trainer.cli.terminal import Terminal, clean, problem_lines
    from astrago_trainer.client.errors import NotFound
    from astrago_trainer.core.errors import AstragoError, InvalidRequest

    if isinstance(error, NotFound):
        _complain(clean(str(error)))
        return NOT_FOUND
    if isinstance(error, InvalidRequest):
        terminal = Terminal(sys.stderr)
        sys.stderr.writelines(f"{line}\n" for line in problem_lines(error.problems, terminal))
        return FAILED
    if isinstance(error, AstragoError):
        _complain(clean(str(error)))
        return FAILED
    if os.environ.get("ASTRAGO_DEBUG"):
        from traceback import print_exception

        print_exception(error)
        return FAILED
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    print(
        f"astrago: this is a bug in astrago {__version__}: {clean(what)[:300]}; please report it "
        "with the output of the same command under ASTRAGO_DEBUG=1.",
        file=sys.stderr,
    )
    return FAILED
