"""The servers that look after jobs of this database, each with a number that grows as long as it lives."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select, update

from astrago_trainer.store.tables import servers
from astrago_trainer.store.transaction import Transaction


class Server(NamedTuple):
    id: str
    host: str
    """The machine since its start, and its view of processes: pids of another one say nothing."""
    pid: int
    started: int
    """Of the process, as the kernel counts it: a pid alone comes again."""
    beat: int = 0


def insert_servers(tx: Transaction, rows: Sequence[Server]) -> list[None]:
    tx.connection.execute(insert(servers), [row._asdict() for row in rows])
    return [None] * len(rows)


def beat_servers(tx: Transaction, ids: Sequence[str]) -> list[bool]:
    """Whether each is still known; one that was taken for dead is not."""
    return [
        tx.connection.execute(
            update(servers).where(servers.c.id == each).values(beat=servers.c.beat + 1)
        ).rowcount
        == 1
        for each in ids
    ]


def remove_servers(tx: Transaction, ids: Sequence[str]) -> list[None]:
    """Their jobs are free for others."""
    tx.connection.execute(delete(servers).where(servers.c.id.in_(ids)))
    return [None] * len(ids)


def load_servers(connection: Connection) -> list[Server]:
    columns = [servers.c[name] for name in Server._fields]
    return [Server._make(row) for row in connection.execute(select(*columns))]


def is_gone(server: Server, host: str) -> bool:
    """Whether it was a process of this host that has ended; of another host nothing is known."""
    return server.host == host and server.started != 0 and start_of(server.pid) != server.started


def this_host() -> str:
    """This machine since its start, and this view of its processes; elsewhere pids mean nothing."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return f"{os.uname().nodename}/{secrets.token_hex(8)}"


def start_of(pid: int) -> int | None:
    """When a process started, in ticks since the machine did; None when it is gone, or only its exit code is left."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else int(fields[19])
