"""A real PostgreSQL of Debian's package, on a socket in a temporary folder, for as long as the tests run.

It refuses to run as root, so root starts it as another user. Where the package is missing, root installs it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.machine import apt_install

USERS = ("postgres", "nobody")
QUICK = "-c fsync=off -c full_page_writes=off -c max_connections=40 -c shared_buffers=16MB"
"""Tests of what survives a loss of power are not for this one."""


class Missing(Exception):  # noqa: N818 - no error: a reason to skip
    """No PostgreSQL here, and why."""


@contextmanager
def running_postgres() -> Iterator[str]:
    """The URL of its database `astrago`; raises Missing."""
    programs = _programs()
    folder = Path(
        tempfile.mkdtemp(prefix="astrago-pg-", dir="/tmp")
    )  # a socket's path has 107 characters
    data = folder / "data"
    user = _unprivileged_user()
    if user is not None:
        shutil.chown(folder, user)
    try:
        _run(
            user,
            [programs / "initdb", "-D", data, "-U", "astrago", "-A", "trust", "-E", "UTF8", "-N"],
        )
        server = [programs / "pg_ctl", "-D", data, "-w", "-s", "-l", folder / "log"]
        _run(user, [*server, "start", "-o", f"-k {folder} -c listen_addresses='' {QUICK}"])
        try:
            _run(user, [programs / "createdb", "-h", folder, "-U", "astrago", "astrago"])
            yield f"postgresql://astrago@/astrago?host={folder}"
        finally:
            _run(user, [*server, "stop", "-m", "immediate"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    found = _find_programs()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        apt_install(["postgresql"])
        found = _find_programs()
    if found is None:
        raise Missing("PostgreSQL is missing: apt-get install postgresql")
    return found


def _find_programs() -> Path | None:
    folders = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda each: int(each.parent.name)
    )
    found = [each for each in folders if (each / "initdb").exists()]
    if found:
        return found[-1]
    initdb = shutil.which("initdb")
    return None if initdb is None else Path(initdb).parent


def _unprivileged_user() -> str | None:
    if os.geteuid() != 0:
        return None
    known = {each.pw_name for each in pwd.getpwall()}
    return next(user for user in USERS if user in known)


def _run(user: str | None, command: list[object]) -> None:
    words = [str(word) for word in command]
    if user is not None:
        words = ["setpriv", f"--reuid={user}", f"--regid={_group(user)}", "--clear-groups", *words]
    done = subprocess.run(words, capture_output=True, text=True, cwd="/tmp")
    if done.returncode != 0:
        raise Missing(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()[-500:]}")


def _group(user: str) -> int:
    return pwd.getpwnam(user).pw_gid
