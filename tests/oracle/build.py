"""Builds the oracle programs once per change of their sources, and talks to them.

A binary that lies under its final name is whole: it is built and tried under another name and moved
at the end, so an interrupted build leaves nothing that could be taken for a good one. A file lock
lets one of several test workers build.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cluster.cache import cache_folder, locked

VERSIONS = {"2.1": "2.1.0", "2.2": "2.2.1", "2.3": "2.3.0"}
"""The names of the versions as the merge takes them, and the release each oracle is built from."""

_SOURCES = Path(__file__).parent / "go"
_COMMON = ("oracle.go", "schema.go")
_PER_VERSION = ("new.go", "go.mod", "go.sum")


class OracleError(RuntimeError):
    """The oracle could not be built, or it died: nothing was compared."""


def oracle_binary(version: str) -> Path | None:
    """The oracle of `version`, built if it is not there yet; None where Go is needed and missing.

    Safe to call from several processes at once. Raises OracleError when the build itself fails.
    """
    sources = [_SOURCES / name for name in _COMMON] + [_SOURCES / version / n for n in _PER_VERSION]
    folder = cache_folder() / "oracle" / f"{version}-{_digest(sources)}"
    binary = folder / "oracle"
    if binary.exists():
        return binary
    go = shutil.which("go")
    if go is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock"):
        if not binary.exists():
            _build(go, sources, binary)
    return binary


def skip_reason(version: str) -> str:
    """What to tell the reader where `oracle_binary` answers None."""
    go_mod = (_SOURCES / version / "go.mod").read_text(encoding="utf-8")
    needed = next(line.split()[1] for line in go_mod.splitlines() if line.startswith("go "))
    return (
        f"the comparison with the controller of Trainer {VERSIONS[version]} was skipped: there is "
        f"no `go` on PATH and no oracle in {cache_folder()}; install Go {needed} or newer "
        f"(https://go.dev/dl) and run it again"
    )


def _digest(sources: Iterable[Path]) -> str:
    """One digest over names and contents: a line moved to another file counts as a change."""
    digest = hashlib.sha256()
    for path in sources:
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _build(go: str, sources: Sequence[Path], binary: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="build-", dir=binary.parent) as name:
        folder = Path(name)
        for path in sources:
            shutil.copy(path, folder / path.name)
        environment = os.environ | {
            "CGO_ENABLED": "0",
            "GOFLAGS": "-mod=readonly -buildvcs=false",
            "GOWORK": "off",
        }
        command = [go, "build", "-trimpath", "-o", "oracle", "."]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise OracleError(f"{' '.join(command)} failed in a copy of {_SOURCES}:\n{done.stderr}")
        if not once(folder / "oracle", "schema", []):
            raise OracleError(f"the oracle built from {_SOURCES} says nothing")
        (folder / "oracle").rename(binary)


def once(binary: Path, mode: str, lines: Sequence[str]) -> list[str]:
    """Runs the oracle in `mode` (`schema`, `quantities`) on `lines`; the lines of its answer."""
    done = subprocess.run(
        [str(binary), mode],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode != 0:
        raise OracleError(f"{binary} {mode} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout.splitlines()


class Oracle:
    """One running oracle: pairs in, answers out, in the same order.

    Not for use from two threads at once. The answers to a line depend on that line alone.
    """

    def __init__(self, binary: Path) -> None:
        self._binary = binary
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        self._process = subprocess.Popen(
            [str(binary)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def ask(self, pairs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The controller's answers to `pairs`; raises OracleError when the program dies on one."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        lines = [json.dumps(pair, ensure_ascii=False) for pair in pairs]
        # A thread of its own writes: the oracle answers while it reads, and with both pipes full
        # each would wait for the other.
        writer = threading.Thread(target=self._write, args=(lines,), daemon=True)
        writer.start()
        answers: list[dict[str, Any]] = []
        for _ in lines:
            line = self._process.stdout.readline()
            if not line:
                writer.join()
                raise OracleError(self._last_words(lines, len(answers)))
            answers.append(json.loads(line))
        writer.join()
        return answers

    def close(self) -> None:
        """Ends the program; closing twice is fine."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # it died before; `ask` has said so
                    pipe.close()
        self._process.wait()
        self._stderr.close()

    def _write(self, lines: Sequence[str]) -> None:
        assert self._process.stdin is not None
        # Where the program is gone, the reading side sees the end of the answers and reports it.
        with suppress(BrokenPipeError, ValueError):
            for line in lines:
                self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def _last_words(self, lines: Sequence[str], answered: int) -> str:
        status = self._process.wait()
        self._stderr.seek(0)
        words = self._stderr.read().decode("utf-8", "replace")[:4000]
        return (
            f"{self._binary} ended with {status} after {answered} of {len(lines)} answers; "
            f"it died on this line or a later one: {lines[answered][:2000]}\n{words}"
        )
