"""Calls of the command in this process, and as a program of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from astrago_trainer.cli.main import main

ASTRAGO = str(Path(sys.executable).with_name("astrago"))
REPOSITORY = Path(__file__).parents[2]


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return self.out + self.err


Astrago = Callable[..., Result]


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """80 columns and no wishes about colours, whatever the machine at hand has."""
    for name in ("NO_COLOR", "ASTRAGO_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def astrago(capsys: pytest.CaptureFixture[str]) -> Astrago:
    """The command in this process."""

    def call(*argv: str | Path) -> Result:
        code = main([str(word) for word in argv])
        out, err = capsys.readouterr()
        return Result(code, out, err)

    return call


@pytest.fixture
def astrago_program() -> Astrago:
    """The installed program."""

    def call(*argv: str | Path, stdin: bytes | None = None, **env: str) -> Result:
        done = subprocess.run(
            [ASTRAGO, *map(str, argv)],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            env={**os.environ, **env},
            timeout=60,
            check=False,
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    return call


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data folder for the embedded service; whatever still runs in it at the end is ended."""
    for name in ("ASTRAGO_SERVER", "ASTRAGO_TOKEN", "ASTRAGO_NAMESPACE", "ASTRAGO_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "data"
    monkeypatch.setenv("ASTRAGO_DATA", str(folder))
    monkeypatch.setenv("ASTRAGO_USER", "kim")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    yield folder
    if (folder / "astrago.db").exists():
        listed = subprocess.run(
            [ASTRAGO, "list", "-o", "json"], capture_output=True, check=True, timeout=60
        )
        names = [each["name"] for each in json.loads(listed.stdout)["items"]]
        if names:
            subprocess.run([ASTRAGO, "delete", *names], capture_output=True, check=True, timeout=60)
