"""A model of a disk that loses at a power cut whatever was not forced to it, in any mixture.

What a save does is recorded once. Then the power is cut after each change: of a file that was not synced, a part of its
content stays; of the changes to a folder since it was synced, any of them stay. A file system does better than that
mostly, but promises no more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.checkpoint.faults import watching

Change = tuple[Any, ...]


@dataclass
class File:
    content: bytes = b""
    durable: bytes = b""

    def left(self, chance: Random) -> bytes:
        if self.content == self.durable:
            return self.durable
        return chance.choice(
            [self.durable, self.content, self.content[: chance.randrange(len(self.content))]]
        )


@dataclass
class Folder:
    entries: dict[str, File | Folder] = field(default_factory=dict)
    durable: dict[str, File | Folder] = field(default_factory=dict)
    pending: list[dict[str, File | Folder | None]] = field(default_factory=list)

    def change(self, **names: File | Folder | None) -> None:
        _apply(self.entries, names)
        self.pending.append(names)

    def sync(self) -> None:
        self.durable, self.pending = dict(self.entries), []

    def left(self, chance: Random) -> dict[str, File | Folder]:
        entries = dict(self.durable)
        for names in self.pending:
            if chance.random() < 0.5:
                _apply(entries, names)
        return entries


def _apply(entries: dict[str, File | Folder], names: dict[str, File | Folder | None]) -> None:
    for name, node in names.items():
        entries.pop(name, None)
        if node is not None:
            entries[name] = node


@contextmanager
def recording(base: Path) -> Iterator[list[Change]]:
    """The changes that are made below a folder, as they are made; a test may add its own marks."""
    changes: list[Change] = []
    opened: dict[int, str] = {}

    def relative(path: Any, dir_fd: int | None = None) -> str:
        joined = Path(opened[dir_fd], path) if dir_fd is not None else Path(path)
        return os.path.relpath(base / joined, base)

    def record(name: str, result: Any, *arguments: Any, **options: Any) -> None:
        if name == "open":
            path = relative(arguments[0], options.get("dir_fd"))
            opened[result] = path
            if arguments[1] & os.O_CREAT:
                changes.append(("create", path))
        elif name == "write":
            changes.append(("write", opened[arguments[0]], bytes(arguments[1])[:result]))
        elif name == "fsync":
            changes.append(("sync", opened[arguments[0]]))
        elif name in ("replace", "rename"):
            changes.append(("move", relative(arguments[0]), relative(arguments[1])))
        elif name == "mkdir":
            changes.append(("mkdir", relative(arguments[0])))
        else:
            changes.append(("remove", relative(arguments[0], options.get("dir_fd"))))

    with watching(after=record):
        yield changes


def after_cut(changes: list[Change], chance: Random, folder: Path) -> None:
    """Make in a folder what is left of it when the power is cut after these changes."""
    root = Folder()
    for kind, path, *more in changes:
        holder, name = _find(root, Path(path).parent), Path(path).name
        if kind == "create":
            holder.change(**{name: File()})
        elif kind == "mkdir":
            holder.change(**{name: Folder()})
        elif kind == "remove":
            holder.change(**{name: None})
        elif kind == "move":
            target = Path(more[0])
            assert target.parent == Path(path).parent, "a rename is atomic in one folder"
            holder.change(**{name: None, target.name: holder.entries[name]})
        elif kind == "write":
            holder.entries[name].content += more[0]
        elif kind == "sync":
            node = root if path == "." else holder.entries[name]
            if isinstance(node, Folder):
                node.sync()
            else:
                node.durable = node.content
    _make(root, chance, folder)


def _find(root: Folder, path: Path) -> Folder:
    node = root
    for name in path.parts:
        node = node.entries[name]
    return node


def _make(node: Folder, chance: Random, folder: Path) -> None:
    folder.mkdir()
    for name, entry in node.left(chance).items():
        if isinstance(entry, Folder):
            _make(entry, chance, folder / name)
        else:
            (folder / name).write_bytes(entry.left(chance))
