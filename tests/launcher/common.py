"""What the tests of the launcher share: it is always run as a program, as a pod would."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from catalogue.inline import SYSTEM
from catalogue.shells import DEADLINE_SECONDS, plain_env, run

LAUNCH = SYSTEM / "launch.py"

# Ready, then SIGTERM, then the exit code that is the first argument.
WAITING = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
os.write(1, b"ready\\n")
signal.sigwait({signal.SIGTERM})
os.write(1, b"stopping\\n")
sys.exit(int(sys.argv[1]))
"""


def command(*words: object, python: str = sys.executable) -> list[str]:
    return [python, str(LAUNCH), *map(str, words)]


def launch(*words: object, **variables: str) -> subprocess.CompletedProcess[str]:
    return run(command(*words), plain_env(**variables))


@contextmanager
def piped(words: list[str], **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process with a pipe for each standard stream; nothing of it is left behind."""
    process = subprocess.Popen(
        words,
        env=plain_env(**variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    timer = threading.Timer(DEADLINE_SECONDS, process.kill)  # which takes its workers along
    timer.start()
    try:
        with process:
            yield process
    finally:
        timer.cancel()
        process.kill()


def program(folder: Path, text: str, name: str = "train.py") -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


def message(path: Path) -> tuple[dict[str, Any], str]:
    """The termination message: what its first line says to machines, and the rest to people."""
    first, _, rest = path.read_text().partition("\n")
    return json.loads(first), rest


def only_child(pid: int) -> int:
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


def is_running(pid: int) -> bool:
    """Whether the process does anything still; one that waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for_death(pid: int) -> None:
    assert is_dead_within(pid, 30), f"{pid} is still alive"


def is_dead_within(pid: int, seconds: float) -> bool:
    """Answers as soon as the process is dead, reaped or not; it need not be ours."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], seconds)[0])
    finally:
        os.close(fd)
