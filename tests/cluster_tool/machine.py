"""A throw-away machine for the cluster tool: its own network, disk and processes, and few programs on its PATH.

The tool runs for real, in namespaces that end with it, so that no test touches this machine. What would take minutes or
change the machine is a stand-in: `go`, `apt-get` and the programs that are only looked for.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cluster.machine import DEBIAN_PACKAGES

ROOT = Path(__file__).parents[2]
PASSED = "all checks have passed"


def go(build: str = f"echo {PASSED} >&2; exit 1") -> str:
    """A stand-in that is new enough; without another `build` a tool that gets as far as building stops there."""
    return f"""\
case $1 in
version) echo go version go1.26.8 linux/amd64 ;;
env) echo "$ROOM/go-build"; echo "$ROOM/go-mod" ;;
*) {build} ;;
esac
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended, and what was on the machine then."""

    status: int
    output: str
    error: str
    files: list[str]
    links: list[str]
    processes: list[str]


@dataclass(slots=True)
class Machine:
    folder: Path
    disk: str = "100g"

    @property
    def room(self) -> Path:
        """Where its disk is mounted; from outside it is an empty folder."""
        return self.folder / "room"

    @property
    def programs(self) -> Path:
        return self.folder / "bin"

    @property
    def state(self) -> Path:
        return self.room / "state"

    def install(self, name: str, script: str = "exit 1") -> Path:
        program = self.programs / name
        program.unlink(missing_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return program

    def install_real(self, *names: str) -> None:
        for name in names:
            (self.programs / name).unlink(missing_ok=True)
            (self.programs / name).symlink_to(shutil.which(name) or "/nowhere")

    def up(self, before: str = "true", how: str = "") -> Outcome:
        """`how` is a program that starts the tool."""
        return self.run(f"{before}\n{how} cluster up")

    def run(self, script: str) -> Outcome:
        """Shell lines in which `cluster` is the tool and `machine_python` a Python that sees what the tool sees."""
        with self.start(script) as process:
            try:
                output, error = process.communicate(timeout=30)
            finally:
                process.kill()
        told = [(self.folder / name).read_text() for name in ("files", "links", "processes")]
        return Outcome(process.returncode, output, error, *(each.splitlines() for each in told))

    def start(self, script: str) -> subprocess.Popen[str]:
        environment = {
            "PATH": f"{self.folder}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.room),
            "ASTRAGO_CACHE": str(self.room / "cache"),
            "ASTRAGO_CLUSTER": str(self.state),
            "ROOM": str(self.room),
        }
        python = f"cd {ROOT}\nexec env PATH={self.programs} {sys.executable}"
        self._write("machine_python", f'{python} "$@"')
        self._write("cluster", f'{python} -m cluster "$@"')
        self._write("prepare", f"mount -t tmpfs -o size={self.disk} tmpfs $ROOM\n{_provided()}")
        self._write("script", script)
        self._write("tell", _TELL.format(folder=self.folder))
        # The script gets the interrupts of a terminal; the shell around it goes on and tells what is left.
        steps = "prepare && { trap : INT; script; status=$?; tell; exit $status; }"
        return subprocess.Popen(
            [*namespaces(), "sh", "-c", steps],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def _write(self, name: str, script: str) -> None:
        (self.folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.folder / name).chmod(0o755)


_TELL = """\
find $ROOM -mindepth 1 > {folder}/files
ip -brief link > {folder}/links
for each in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $each; echo; done > {folder}/processes 2> /dev/null
"""


def namespaces() -> list[str]:
    """Its process 1 is a child: with it everything on the machine ends."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    own = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return ["unshare", *user, *own]


def _provided() -> str:
    """Files of packages that this machine does not have, laid over what it has."""
    missing = [name for name in DEBIAN_PACKAGES if name[0] == "/" and not Path(name).exists()]
    if not missing:
        return ""
    over = "lowerdir=/usr/lib,upperdir=/mnt/up,workdir=/mnt/work"
    lines = (
        "mount -t tmpfs tmpfs /mnt && mkdir /mnt/up /mnt/work",
        f"mount -t overlay -o {over} overlay /usr/lib",
        *(f"mkdir -p {Path(name).parent} && touch {shlex.quote(name)}" for name in missing),
    )
    return "\n".join(lines)
