"""The runtimes that jobs can name: those of the catalogue, or those that the engine has installed.

On a cluster the installed one is the truth, whatever the catalogue says: an administrator may have changed one of ours,
removed it, or added others.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from astrago_trainer import catalogue
from astrago_trainer.catalogue import RuntimeEntry
from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.engines.base import Engine, HasRuntimes

Manifest = Mapping[str, Any]

_SERVER_DEFAULTS = {
    "groupName": "default",
    "restartStrategy": "Recreate",
    "numProcPerNode": "auto",
}
"""What the API server writes into a runtime where nothing is written."""

_NOT_OURS = "Installed on this cluster by its administrators."


class Runtimes:
    """By name, of one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._shipped = cache(catalogue.load_runtime)
        self._chosen: dict[str, tuple[Manifest, Manifest]] = {}

    def __call__(self, name: str) -> Manifest:
        """The same object until it changes; raises InvalidRequest for one that is not there."""
        installed = self._installed()
        if installed is None:
            return self._shipped(name)
        found = installed.get(
            name
        )  # read once: this may be a thread, and the cluster changes meanwhile
        if found is None:
            known = sorted(list(installed))  # noqa: C414 - the copy cannot be interrupted, sorting can
            raise InvalidRequest([catalogue.unknown_runtime(name, known, "on this cluster")])
        return self._choose(name, found)

    def entries(self) -> list[RuntimeEntry]:
        """All of them, by name."""
        installed = self._installed()
        return [
            self.entry(name)
            for name in (catalogue.names() if installed is None else sorted(installed))
        ]

    def entry(self, name: str) -> RuntimeEntry:
        """One of them; raises InvalidRequest."""
        manifest = self(name)
        is_shipped = name in catalogue.names()
        if is_shipped and manifest is self._shipped(name):
            return catalogue.get_runtime(name)
        about = catalogue.get_runtime(name).about if is_shipped else ""
        return catalogue.entry_of(manifest, about or _NOT_OURS)

    def _installed(self) -> Mapping[str, Manifest] | None:
        return self._engine.runtimes() if isinstance(self._engine, HasRuntimes) else None

    def _choose(self, name: str, found: Manifest) -> Manifest:
        """The shipped one where the cluster has just that: then plans are the same bytes on every engine."""
        known = self._chosen.get(name)
        if known is None or known[0] is not found:
            shipped = self._shipped(name) if name in catalogue.names() else None
            is_shipped = shipped is not None and _written(shipped["spec"]) == _written(
                found["spec"]
            )
            known = self._chosen[name] = (found, shipped if shipped and is_shipped else found)
        return known[1]


def _written(value: Any) -> Any:
    """What somebody wrote, without the defaults and without what is empty."""
    if isinstance(value, Mapping):
        return {
            key: inner
            for key, each in value.items()
            if _SERVER_DEFAULTS.get(key) != each and (inner := _written(each)) not in ({}, None)
        }
    if isinstance(value, list):
        return [_written(each) for each in value]
    return value
