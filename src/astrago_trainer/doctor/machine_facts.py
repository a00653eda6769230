"""Reads what the local engine finds on this machine. Every question has an answer, trouble too; nothing is changed."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from astrago_trainer import __version__
from astrago_trainer.core.errors import AstragoError
from astrago_trainer.engines.local.fitting import read_oversize
from astrago_trainer.engines.local.limits import Limits
from astrago_trainer.engines.local.machine import this_machine
from astrago_trainer.environments.choosing import images_here
from astrago_trainer.environments.folders import environment_of
from astrago_trainer.environments.known import KNOWN
from astrago_trainer.logs.limits import RESERVE_BYTES
from astrago_trainer.server.disk import disk_state
from astrago_trainer.server.settings import read_settings

FRAMEWORKS = ("torch", "tensorflow")
_PROBE_SECONDS = 30
_LOOK = "import importlib.util as u; print(*(n for n in ('torch', 'tensorflow') if u.find_spec(n)))"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """An empty `…_trouble` means that there is none."""

    system: str
    version: str
    python: str
    executable: str
    settings_trouble: str
    users_are_trusted: bool
    """Whether jobs of several users run as the one user of the server."""
    environments_trouble: str
    frameworks: Mapping[str, tuple[str, ...]]
    """Folder of programs that an administrator named -> the frameworks that its Python has."""
    provided: Mapping[str, bool]
    """Title of each environment that is installed on demand -> whether it is there."""
    isolation_trouble: str
    groups_trouble: str
    cpus: float
    memory: int
    gpus: int
    has_driver: bool
    """Whether the kernel has NVIDIA's driver."""
    refuses_larger: bool
    """Whether jobs larger than the machine are refused."""
    open_files: int
    """As many as a process may have at most."""
    data: str
    data_trouble: str
    disk_free: int
    disk_alarm: str
    """A code of `server.disk`; empty: there is enough space."""
    database: str
    database_version: str
    """Empty: there is none yet."""
    newest_version: str
    database_trouble: str
    address: str
    port_trouble: str
    answering: str
    """What answers at the port: `astrago 0.1.0`, `something else`, or nothing."""


def read_machine(data: Path, database: str | None) -> MachineFacts:
    """As a server would find it that starts with this environment now."""
    host, port, settings_trouble, reserve = "127.0.0.1", 8000, "", RESERVE_BYTES
    users_are_trusted = False
    try:
        settings = read_settings(os.environ, data=data, database=database)
        host, port, reserve = settings.host, settings.port, settings.disk_reserve_bytes
        users_are_trusted = settings.engine == "local" and settings.has_auth
    except AstragoError as error:
        settings_trouble = str(error)
    refuses_larger = False
    try:
        refuses_larger = read_oversize(os.environ) == "refuse"
    except AstragoError as error:
        settings_trouble = settings_trouble or str(error)
    machine = this_machine()
    environments_trouble, frameworks = _environments()
    data_trouble, disk_free = _folder(data)
    where, version, newest, database_trouble = asyncio.run(_database(data, database))
    port_trouble = _port(host, port)
    return MachineFacts(
        system=sys.platform,
        version=__version__,
        python=sys.version.split()[0],
        executable=sys.executable,
        settings_trouble=settings_trouble,
        users_are_trusted=users_are_trusted,
        environments_trouble=environments_trouble,
        frameworks=frameworks,
        provided=_provided(),
        isolation_trouble=_isolation(),
        groups_trouble=Limits().trouble,
        cpus=machine["cpu"] / 1000,
        memory=machine["memory"],
        gpus=len(machine["gpus"]),
        has_driver=Path("/proc/driver/nvidia/version").exists(),
        refuses_larger=refuses_larger,
        open_files=_open_files(),
        data=str(data),
        data_trouble=data_trouble,
        disk_free=disk_free,
        disk_alarm=_alarm(data, reserve),
        database=where,
        database_version=version,
        newest_version=newest,
        database_trouble=database_trouble,
        address=f"{host}:{port}",
        port_trouble=port_trouble,
        answering=_answering(host, port) if port_trouble else "",
    )


def _environments() -> tuple[str, dict[str, tuple[str, ...]]]:
    try:
        images = images_here()
    except AstragoError as error:
        return str(error), {}
    places = dict.fromkeys(images.patterns.values())
    return "", {place: _frameworks(place) for place in places}


def _provided() -> dict[str, bool]:
    found = [environment_of(known.name) for known in KNOWN.values() if known.locks]
    return {each.title: each.is_ready for each in found}


def _frameworks(place: str) -> tuple[str, ...]:
    """Looked for and not imported: that would take seconds."""
    python = shutil.which("python3", path=place) or shutil.which("python", path=place)
    if python is None:
        return ()
    try:
        done = subprocess.run(  # noqa: S603 - the interpreter that jobs run with
            [python, "-c", _LOOK], capture_output=True, text=True, timeout=_PROBE_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(done.stdout.split()) if done.returncode == 0 else ()


def _isolation() -> str:
    command = [sys.executable, "-m", "astrago_trainer.doctor.isolation_probe"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_SECONDS)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    return done.stdout.strip() or f"the probe ended with {done.returncode}"


def _folder(data: Path) -> tuple[str, int]:
    """The folder itself, or the nearest one above in which it would be made."""
    place = data
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        return f"{place} is not a folder", 0
    try:
        free = shutil.disk_usage(place).free
    except OSError as error:
        return f"{place}: {error.strerror}", 0
    return ("" if os.access(place, os.W_OK | os.X_OK) else f"{place} cannot be written to"), free


def _alarm(data: Path, reserve: int) -> str:
    state = disk_state(data, reserve) if data.exists() else None
    return state.alarm or "" if state is not None else ""


async def _database(data: Path, database: str | None) -> tuple[str, str, str, str]:
    """Where it is, its schema, the one that is wanted, and what is wrong."""
    from astrago_trainer.store import database_url
    from astrago_trainer.store.drivers import SqliteDriver, make_driver
    from astrago_trainer.store.errors import translated
    from astrago_trainer.store.schema import SHIPPED, find_version

    try:
        driver = make_driver(database_url(data, database))
    except Exception as error:
        return str(database), "", SHIPPED.head, str(error)
    if isinstance(driver, SqliteDriver) and not driver.path.is_file():
        return driver.where, "", SHIPPED.head, ""
    try:
        found = await driver.read(lambda connection: find_version(connection, driver.where))
    except AstragoError as error:
        return driver.where, "", SHIPPED.head, str(error)
    except Exception as error:
        return driver.where, "", SHIPPED.head, str(translated(error, driver.where))
    finally:
        await driver.close()
    return driver.where, found or "", SHIPPED.head, ""


def _port(host: str, port: int) -> str:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host.strip("[]"), port))
        except OSError as error:
            return error.strerror or str(error)
        except OverflowError:
            return f"there is no port {port}"
    return ""


def _answering(host: str, port: int) -> str:
    import httpx

    shown = f"[{host}]" if ":" in host else host
    try:
        answer = httpx.get(f"http://{shown}:{port}/healthz", timeout=2, trust_env=False)
        body: Any = answer.json()
        return f"astrago {body['version']}" if body["status"] == "ok" else "something else"
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return "something else"


def _open_files() -> int:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return 2**31 if hard == resource.RLIM_INFINITY else hard
