"""Small scripts as jobs, and the command as a program of its own, with and without a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .conftest import ASTRAGO, Result

PATIENCE = 120.0
"""Seconds; only a failing test takes them."""
SMALL = ("--cpus", "50m", "--memory", "64Mi")

HELLO = """
import os, sys
print("hello from", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], sys.argv[1:], os.environ.get("COLOUR"))
for step in range(1, 4):
    print(f"step {step} loss={1 / step:.3f}")
"""
WAITS = """
import time
print("begun", flush=True)
time.sleep(600)
"""
HOSTILE = "\\x1b]0;owned\\x07\\x1b[2J\\x1b[31mred\\x1b[0m\\u202e\\x9b1m tab\\there"
FAILS = f"""
print("{HOSTILE}", flush=True)
print("x" * 200, flush=True)
raise ValueError("a bad rate {HOSTILE}")
"""

CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
"""What a terminal would obey; a newline is ours."""
OWN_CODES = re.compile(r"\x1b\[(?:[0-9;]*m|2K)|\r")
"""What we send ourselves: colours, and the erasing of the living line."""


def script(folder: Path, text: str, name: str = "train.py") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def start(*argv: str | Path, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [ASTRAGO, *map(str, argv)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **env},
    )


def until_line(process: subprocess.Popen[str], text: str) -> None:
    """Reads its output up to the line with this text."""
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return
    raise AssertionError(f"it ended before it said {text!r}")


def on_terminal(*argv: str | Path) -> Result:
    """With a terminal of 80 columns for both streams; everything it was sent."""
    ours, its = pty.openpty()
    env = {**os.environ, "COLUMNS": "80", "TERM": "xterm"}
    process = subprocess.Popen(
        [ASTRAGO, *map(str, argv)], stdin=its, stdout=its, stderr=its, env=env
    )
    os.close(its)
    sent = bytearray()
    try:
        while data := os.read(ours, 65536):
            sent += data
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(ours)
    code = process.wait(PATIENCE)
    return Result(code, sent.decode(), "")


def shown_lines(sent: str) -> Sequence[str]:
    """What stood on the screen, line by line, also what was erased later."""
    parts = re.split(r"\r\n|\r\x1b\[2K", sent)
    return [OWN_CODES.sub("", part) for part in parts]
