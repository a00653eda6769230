"""What people say to what the API wants: keyword arguments and files to the body of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from astrago_trainer.core.errors import Problem, Unreadable

Json = dict[str, Any]

MOST_SCRIPT = 1 << 20
"""A ConfigMap holds no more; the server says precisely how much fits."""


def request(spec: Mapping[str, Any] | None, fields: Mapping[str, Any]) -> Json:
    """A job file's content, with `fields` in place of its own; see `JobSpec` for the fields."""
    dumped = getattr(spec, "model_dump", None)
    base = dumped(mode="json", exclude_defaults=True) if dumped is not None else dict(spec or {})
    return {**base, **{name: value for name, value in fields.items() if value is not None}}


def script_request(file: str | Path, arguments: Sequence[str], fields: Mapping[str, Any]) -> Json:
    """A request that runs one local file; raises Unreadable when it cannot be read."""
    path = Path(file)
    entrypoint = path.name
    made: Json = {"code": {"inline": read_script(path), "entrypoint": entrypoint}}
    if arguments:
        made["args"] = list(arguments)
    return {"framework": "pytorch", **made, **request(None, fields)}


def read_script(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_SCRIPT:
            size = f"{path.stat().st_size / MOST_SCRIPT:.1f} MiB"
            raise _unreadable(
                path, f"has {size}; a script has 1 MiB at most.", "Put data on a volume."
            )
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise _unreadable(path, f"cannot be read: {error.strerror}.", "") from error
    except UnicodeDecodeError as error:
        raise _unreadable(
            path, f"must be UTF-8 text; byte {error.start} is none.", "Save it as UTF-8."
        ) from error


def _unreadable(path: Path, message: str, remedy: str) -> Unreadable:
    return Unreadable([Problem(str(path), "unreadable", message, remedy)])
