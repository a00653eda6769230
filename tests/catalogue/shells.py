"""Runs the scripts of the catalogue in real shells, with an environment that holds nothing else."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# The init containers' images have busybox; dash is the strictest of the others.
POSIX_SHELLS = [shell for shell in ("bash", "dash", "busybox") if shutil.which(shell)]

DEADLINE_SECONDS = 60.0  # long enough for a busy machine; reached only when something hangs


def shell_command(shell: str) -> list[str]:
    return ["busybox", "sh"] if shell == "busybox" else [shell]


def plain_env(**values: str) -> dict[str, str]:
    # `python` is the interpreter of the tests, as it is the image's own in a container.
    return {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **values}


def run(
    arguments: list[str], env: Mapping[str, str], **options: Any
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        arguments,
        env=dict(env),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        **options,
    )


@contextmanager
def running(
    arguments: list[str], env: Mapping[str, str], *, deadline_seconds: float = DEADLINE_SECONDS
) -> Iterator[subprocess.Popen[str]]:
    """Start a process whose standard output is read line by line; nothing of it is left behind."""
    process = subprocess.Popen(
        arguments,
        env=dict(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    timer = threading.Timer(deadline_seconds, kill_session, [process.pid])
    timer.start()
    try:
        yield process
    finally:
        timer.cancel()
        kill_session(process.pid)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def read_until(process: subprocess.Popen[str], text: str) -> str:
    """Give the output up to and including the first line that holds the text."""
    assert process.stdout is not None
    output = ""
    for line in process.stdout:
        output += line
        if text in line:
            return output
    raise AssertionError(f"{text!r} never came; the output was {output!r}")


def kill_session(session: int) -> None:
    """Kill every process of a session: the scripts put what they start into other groups."""
    for entry in Path("/proc").iterdir():
        try:
            pid = int(entry.name)
            if os.getsid(pid) == session:
                os.kill(pid, signal.SIGKILL)
        except (ValueError, ProcessLookupError, PermissionError):
            continue
