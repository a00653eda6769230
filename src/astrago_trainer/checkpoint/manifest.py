"""What is in a checkpoint's folder, and whether it is what was saved.

    step-000000123/
      rank-00000-5e1f03b2.pt    the part of one rank; the second number is the run that wrote it
      rank-00000.json           its record: "my part is on the disk"; gone once the manifest is there
      manifest.json             all records as one; only a folder with a manifest is a checkpoint

A manifest is made of the records alone, so that two ranks that make it at once make the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .durable import sha256_of
from .errors import Damaged
from .formats import SUFFIXES

MANIFEST = "manifest.json"
SET_ASIDE = "manifest.damaged.json"
"""The manifest of a checkpoint that one rank found damaged when the others could not see it."""

_VERSION = 1
_STEP = re.compile(r"step-(\d{9,})")
_PART = re.compile(r"rank-\d{5,}-[0-9a-f]{8}\.[a-z]+")
_OF_RANK = re.compile(r"(?:rank|tmp)-(\d{5,})(?:-([0-9a-f]{8}))?[-.].+")


@dataclass(frozen=True)
class Part:
    """One rank's file."""

    rank: int
    file: str
    format: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """A complete checkpoint, or, as a rank's record, the share of one rank in it."""

    step: int
    attempt: str
    world_size: int
    is_replicated: bool
    """All ranks hold the same state, and rank 0 has written it for all."""
    resumed_from: str
    """ASTRAGO_RESUME_FROM of the run that saved it, else empty."""
    came_from: int | None
    """The step that `latest` gave to this run, -1 if it gave none; None if it was not asked."""
    metadata: dict[str, Any]
    parts: tuple[Part, ...]

    @property
    def writers(self) -> int:
        return 1 if self.is_replicated else self.world_size

    def encode(self) -> bytes:
        body = {"version": _VERSION, **asdict(self)}
        return (
            json.dumps({**body, "digest": _digest(body)}, indent=1, sort_keys=True) + "\n"
        ).encode()


def decode(content: bytes) -> Manifest:
    """Read a manifest or a record; Damaged says what is wrong with it."""
    try:
        body = json.loads(content)
        if body.pop("digest") != _digest(body):
            raise Damaged("its digest is not that of its content")
        if body.pop("version") != _VERSION:
            raise Damaged(f"its version is not {_VERSION}: another release has written it")
        parts = tuple(Part(**part) for part in body.pop("parts"))
        manifest = Manifest(parts=parts, **body)
        # It may come from elsewhere: nothing outside its folder may be named in it.
        if not parts or not all(_is_sound(part) for part in parts) or manifest.step < 0:
            raise Damaged("it names what cannot be")
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise Damaged(f"it cannot be read: {error!r}") from error
    return manifest


def _is_sound(part: Part) -> bool:
    return bool(_PART.fullmatch(part.file)) and part.format in SUFFIXES and part.size >= 0


def read(folder: Path) -> Manifest:
    """The manifest of a checkpoint; Damaged where it is missing or not whole."""
    try:
        manifest = decode((folder / MANIFEST).read_bytes())
    except FileNotFoundError as error:
        raise Damaged(_why_incomplete(folder)) from error
    except OSError as error:
        raise Damaged(f"{MANIFEST}: {error.strerror or error}") from error
    except Damaged as error:
        raise Damaged(f"{MANIFEST}: {error}") from error
    ranks = [part.rank for part in manifest.parts]
    is_whole = len(ranks) == manifest.writers and ranks == list(range(len(ranks)))
    if not is_whole or step_of(folder) not in (None, manifest.step):
        raise Damaged(f"{MANIFEST}: it is not that of this checkpoint")
    return manifest


def _why_incomplete(folder: Path) -> str:
    if SET_ASIDE in (path.name for path in folder.glob("*.json")):
        return "a rank found its part damaged"
    return "it was never completed"


def check(folder: Path, manifest: Manifest, hashed: Collection[int] = ()) -> None:
    """Compare all sizes, and the hashes of the ranks in `hashed`; Damaged names the first file that differs."""
    for part in manifest.parts:
        try:
            found = (folder / part.file).stat().st_size
        except OSError as error:
            raise Damaged(f"{part.file}: {error.strerror or error}") from error
        if found != part.size:
            raise Damaged(f"{part.file} has {found:,} bytes instead of {part.size:,}")
    for part in manifest.parts:
        if part.rank in hashed:
            _check_hash(folder / part.file, part)


def _check_hash(path: Path, part: Part) -> None:
    try:
        found = sha256_of(path)
    except OSError as error:
        raise Damaged(f"{part.file}: {error.strerror or error}") from error
    if found != part.sha256:
        raise Damaged(f"{part.file} has changed: its SHA-256 is {found}, not {part.sha256}")


# --- names


def step_folder(directory: Path, step: int) -> Path:
    return directory / f"step-{step:09d}"


def step_of(folder: Path) -> int | None:
    found = _STEP.fullmatch(folder.name)
    return int(found[1]) if found else None


def step_folders(directory: Path) -> list[tuple[int, Path]]:
    """Newest first, complete or not; none where the directory does not exist yet."""
    try:
        folders = list(directory.iterdir())
    except FileNotFoundError:
        return []
    steps = ((step_of(folder), folder) for folder in folders)
    return sorted(((step, folder) for step, folder in steps if step is not None), reverse=True)


def part_name(rank: int, run: str, kind: str) -> str:
    return f"rank-{rank:05d}-{run}.{SUFFIXES[kind]}"


def record_name(rank: int) -> str:
    return f"rank-{rank:05d}.json"


def temporary_name(rank: int, run: str, name: str) -> str:
    return f"tmp-{rank:05d}-{run}-{name}"


def owner_of(name: str) -> tuple[int, str] | None:
    """Rank and run (empty for a record) that wrote a file; None for a manifest and for what is not ours."""
    found = _OF_RANK.fullmatch(name)
    return (int(found[1]), found[2] or "") if found else None


def _digest(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
