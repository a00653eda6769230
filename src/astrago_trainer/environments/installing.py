"""Installs an environment with uv: once for all callers, with progress, and with one clear message when it fails.

The progress is what uv has written so far, read from the kernel, against the size in the table: uv itself reports none
to programs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from astrago_trainer.core.errors import AstragoError
from astrago_trainer.engines.base import REQUIREMENTS_FAILED
from astrago_trainer.environments.folders import Environment, cache_folder, locked, unmark
from astrago_trainer.environments.known import lock_text

REPORT_SECONDS = 0.5
_KEPT_OUTPUT = 16 * 1024
"""Of the end of uv's messages."""

Log = Callable[[str], None]


class InstallFailed(AstragoError):  # noqa: N818 - named for what the caller sees, as the house style has it
    """The environment is not there; the text says why and what helps."""

    def __init__(self, code: str, message: str, remedy: str) -> None:
        super().__init__(f"{message} {remedy}")
        self.code = code


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an install is."""

    title: str
    written: int = 0
    """Bytes."""
    percent: int | None = None
    """None where the size is not known beforehand."""
    is_other: bool = False
    """Whether another process installs, and this one waits for it."""

    def text(self, image: str = "") -> str:
        """For people; `image` is the one that the environment stands in for."""
        done = f"{self.percent} %" if self.percent is not None else f"{self.written / 1e6:.0f} MB"
        other = ", started by another job" if self.is_other else ""
        place = f" for {image}" if image else ""
        return f"installing {self.title}{place} (one time{other}), {done}"


def install(
    environment: Environment, on_progress: Callable[[Progress], None], log: Log = lambda _: None
) -> None:
    """Returns when the environment is ready; raises InstallFailed. Of several callers, one installs."""
    if environment.is_ready:
        return
    shared = environment.folder.with_suffix(".progress")

    def show_other() -> None:
        on_progress(_read_progress(shared, environment.title))

    try:
        with locked(environment.folder, show_other):
            shared.unlink(missing_ok=True)  # of an install that was killed; those who wait read it
            if not environment.is_ready:
                _Installer(environment, shared, on_progress, log).run()
    except OSError as error:
        raise failure(environment, str(error)) from error


def remove(folder: Path) -> None:
    """Free the space; an install that is under way is waited for."""
    with locked(folder, lambda: None):
        unmark(folder)
        shutil.rmtree(folder, ignore_errors=True)


class _Installer:
    def __init__(
        self,
        environment: Environment,
        shared: Path,
        on_progress: Callable[[Progress], None],
        log: Log,
    ) -> None:
        self._environment = environment
        self._shared = shared
        self._on_progress = on_progress
        self._log = log
        self._written = 0
        self._scratch = ""

    def run(self) -> None:
        environment = self._environment
        folder = str(environment.folder)
        shutil.rmtree(folder, ignore_errors=True)  # left behind by an install that was interrupted
        self._log(f"installing {environment.title} for Python {environment.python} into {folder}")
        is_running = environment.python == "{}.{}".format(*sys.version_info[:2])
        interpreter = sys.executable if is_running else environment.python
        try:
            self._uv("venv", "--python", interpreter, folder)
            with tempfile.TemporaryDirectory(prefix="astrago-install-") as scratch:
                self._scratch = scratch
                self._install_packages(folder, Path(scratch))
            environment.mark_ready(_size_of(environment.folder))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            self._shared.unlink(missing_ok=True)
        self._log(f"{environment.title} is ready")

    def _install_packages(self, folder: str, scratch: Path) -> None:
        # Compiled now: pods see the folder read-only, and would compile it at every start.
        options = ("--compile-bytecode", "--python", folder)
        for name in self._environment.known.locks:
            lock = scratch / f"{name}.lock"
            lock.write_text(lock_text(name), "utf-8")
            self._uv("pip", "install", *options, "--require-hashes", "-r", str(lock))
        if self._environment.requirements:
            wanted = scratch / "requirements.txt"
            wanted.write_text("\n".join(self._environment.requirements) + "\n", "utf-8")
            self._uv("pip", "install", *options, "-r", str(wanted))

    def _uv(self, *words: str) -> None:
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(  # noqa: S603 - our own program; requirements travel in a file
                [find_uv(), *words, "--no-progress", "--color", "never"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                before = self._written
                while process.poll() is None:
                    self._written = max(self._written, before + _written_by(process.pid))
                    self._report()
                    _wait(process, REPORT_SECONDS)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
            output.seek(max(0, output.seek(0, os.SEEK_END) - _KEPT_OUTPUT))
            said = output.read().decode("utf-8", "replace").strip()
        if self._scratch:  # a folder that only we have seen says nothing to a reader
            said = said.replace(f"{self._scratch}/", "")
        if said:
            self._log(said)
        if process.returncode:
            raise failure(self._environment, said)

    def _report(self) -> None:
        environment = self._environment
        size = environment.known.size if environment.known.locks else 0
        percent = min(99, self._written * 100 // size) if size else None
        progress = Progress(environment.title, self._written, percent)
        unfinished = self._shared.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(asdict(progress)), "utf-8")
        unfinished.replace(self._shared)
        self._on_progress(progress)


def _size_of(folder: Path) -> int:
    """Bytes of all files below it; a file with several names counts once."""
    found: dict[tuple[int, int], int] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            state = os.lstat(f"{place}/{name}")
            found[state.st_dev, state.st_ino] = state.st_size
    return sum(found.values())


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def _written_by(pid: int) -> int:
    """Bytes that a process has written; 0 where the kernel does not tell."""
    try:
        with open(f"/proc/{pid}/io", encoding="ascii") as file:  # noqa: PTH123
            found = re.search(r"^wchar: (\d+)$", file.read(), re.MULTILINE)
        return int(found[1]) if found else 0
    except OSError:
        return 0


def _read_progress(path: Path, title: str) -> Progress:
    try:
        found = json.loads(path.read_text("utf-8"))
        return Progress(title, int(found["written"]), found["percent"], is_other=True)
    except (OSError, ValueError, LookupError, TypeError):
        return Progress(title, is_other=True)


def find_uv() -> str:
    """The program of the package uv, which astrago depends on; else one on PATH."""
    try:
        from uv import find_uv_bin

        return str(find_uv_bin())
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
    if found is None:
        raise InstallFailed(
            "no-uv", "there is no program uv to install with.", "Install it: pip install uv."
        )
    return found


_OFFLINE = re.compile(
    r"error sending request|dns error|failed to lookup|Connection refused|Network is unreachable"
    r"|Could not connect|tcp connect|timed out|network connectivity is disabled",
    re.IGNORECASE,
)


def failure(environment: Environment, said: str) -> InstallFailed:
    """What uv or the system said, as one message: what was installed, why it failed, what helps."""
    title, folder = environment.title, environment.folder
    install_by_hand = f"astrago environments install {environment.known.name}"
    if "No space left on device" in said or "os error 28" in said:
        free = _free(folder)
        return InstallFailed(
            "no-space",
            f"{title} cannot be installed: the disk of {folder.parent} is full "
            f"({environment.known.size / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB are free).",
            "Free some space (astrago environments remove NAME), or set ASTRAGO_CACHE to a folder on another disk.",
        )
    if re.search(r"Permission denied|Read-only file system", said):
        return InstallFailed(
            "not-writable",
            f"{title} cannot be installed: {folder.parent} cannot be written.",
            "Make it writable, or set ASTRAGO_CACHE to another folder.",
        )
    if re.search(r"No interpreter found for Python|no interpreter found", said, re.IGNORECASE):
        return InstallFailed(
            "no-python",
            f"{title} needs Python {environment.python}, and there is none on this machine.",
            f"Install Python {environment.python}, or use an environment of your own: "
            f"astrago environments add '{(environment.known.images or ('*',))[0]}=/path/to/environment'.",
        )
    if _OFFLINE.search(said):
        return InstallFailed(
            "offline",
            f"{title} cannot be installed: the package index cannot be reached ({_reason(said)}).",
            f"Connect the machine and run: {install_by_hand}. Or use an environment that has the packages: "
            f"astrago environments add '{(environment.known.images or ('*',))[0]}=/path/to/environment'.",
        )
    if environment.requirements:
        return InstallFailed(
            "bad-requirements",
            f"{REQUIREMENTS_FAILED}: {_requirement_reason(environment, said)}.",
            "Correct the requirements and submit the job again.",
        )
    return InstallFailed(
        "install-failed",
        f"{title} cannot be installed: {_reason(said)}.",
        f"Try again: {install_by_hand}.",
    )


_UNREADABLE = re.compile(r"Couldn't\s+parse\s+requirement\s+in\s+`[^`]*`\s+at\s+position\s+(\d+)")


def _requirement_reason(environment: Environment, said: str) -> str:
    """uv names the file it was given and a position in it; people know the requirement by its text."""
    found = _UNREADABLE.search(said)
    if found is None:
        return _reason(said)
    text = "\n".join(environment.requirements)
    number = text[: int(found[1])].count("\n")
    broken = environment.requirements[number]
    which = f"requirement {number + 1}, {broken!r}, is no package with a version"
    lines = said.replace(found[0], which).splitlines()
    return _reason("\n".join(line for line in lines if line.strip() != broken))


def _reason(said: str) -> str:
    """uv's own explanation in one line: from its marks of an error to the end, without the drawing."""
    said = re.sub(r"^[\s^~]+$", "", said, flags=re.MULTILINE)  # marks below a quoted line
    lines = [re.sub(r"^[\s×╰─▶│├]+", "", line).strip() for line in said.splitlines()]
    start = next(
        (at for at, line in enumerate(said.splitlines()) if re.match(r"\s*(error:|×)", line)), 0
    )
    text = " ".join(line for line in lines[start:] if line and not line.startswith("hint:"))
    text = re.sub(r"\s*\bcause: ", ": ", text, count=1)
    return text.removeprefix("error: ").rstrip(".")[:500] or "uv said nothing"


def _free(folder: Path) -> int:
    for place in (folder, *folder.parents):
        if place.exists():
            return shutil.disk_usage(place).free
    return 0


def installer_env(environ: Mapping[str, str]) -> dict[str, str]:
    """What an install needs of the environment: settings of uv and of the network; nothing else is passed on."""
    names = (
        "HOME",
        "PATH",
        "TMPDIR",
        "LANG",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "NETRC",
    )
    prefixes = (
        "UV_",
        "SSL_",
        "PIP_",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "http_",
        "https_",
        "no_",
    )
    return {
        name: value for name, value in environ.items() if name in names or name.startswith(prefixes)
    } | {"ASTRAGO_CACHE": str(cache_folder())}


def command_of(environment: Environment) -> list[str]:
    """Installs it in a process of its own; see `__main__`."""
    words: Sequence[str] = (environment.known.name, *environment.requirements)
    return [sys.executable, "-m", "astrago_trainer.environments", *words]
