"""What a conversion gives, and the manifest that remembers what was read of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from astrago_trainer.core.errors import Problem, Severity
from astrago_trainer.core.spec.paths import join_path

Json = dict[str, Any]
Path = tuple[str | int, ...]

CODE = "CannotBeCarried"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_OF_THE_CLUSTER = (
    ("status",),
    ("metadata", "uid"),
    ("metadata", "creationTimestamp"),
    ("metadata", "generation"),
    ("metadata", "managedFields"),
    ("metadata", "ownerReferences"),
    ("metadata", "resourceVersion"),
    ("metadata", "selfLink"),
    ("metadata", "annotations", LAST_APPLIED),
)
"""What a cluster adds to an object that was read back from it: nobody has asked for it."""


@dataclass(frozen=True, slots=True)
class Converted:
    """A job file, and what of the manifest is not in it."""

    job: Json
    lost: tuple[Problem, ...]
    """An error where the job would do something else than was meant, a warning where it merely lacks something."""


class Manifest:
    """Read field by field; `left` are the leaves that nobody has read."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        self._value = value
        self._read: set[Path] = set()
        for path in _OF_THE_CLUSTER:
            self.take(*path)

    def take(self, *path: str | int) -> Any:
        """The value at `path` with all below it, ticked off; None where there is none."""
        self._read.add(path)
        return self.see(*path)

    def see(self, *path: str | int) -> Any:
        """The same without ticking it off."""
        found: Any = self._value
        for step in path:
            if isinstance(found, Mapping):
                found = found.get(step)
            elif isinstance(found, list) and isinstance(step, int) and step < len(found):
                found = found[step]
            else:
                return None
        return found

    def entries(self, *path: str | int) -> list[tuple[int, Mapping[str, Any]]]:
        """The objects of a list, with their places; what is of another shape stays unread."""
        found = self.see(*path)
        items = enumerate(found) if isinstance(found, list) else ()
        return [(index, each) for index, each in items if isinstance(each, Mapping)]

    def mapping(self, *path: str | int) -> Mapping[str, Any]:
        """The object there, or an empty one."""
        found = self.see(*path)
        return found if isinstance(found, Mapping) else {}

    def left(self) -> list[Problem]:
        """One problem for each part of which nothing was read, and that says something."""
        return [
            lost(path, "there is nothing like it in a job")
            for path in self._unread((), self._value)
        ]

    def _unread(self, path: Path, value: Any) -> Iterator[Path]:
        if path in self._read or value in (None, {}, []):
            return
        is_touched = any(each[: len(path)] == path for each in self._read)
        if is_touched and isinstance(value, Mapping):
            for key, inner in value.items():
                yield from self._unread((*path, str(key)), inner)
        elif is_touched and isinstance(value, list):
            for index, inner in enumerate(value):
                yield from self._unread((*path, index), inner)
        else:
            yield path


def lost(path: Path, why: str, remedy: str = "", severity: Severity = "error") -> Problem:
    return Problem(join_path(path), CODE, f"{why}.", remedy, severity)
