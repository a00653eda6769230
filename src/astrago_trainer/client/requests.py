"""What people say to what the API wants: keyword arguments and files to the body of a request."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from astrago_trainer.core.errors import Problem, Unreadable

Json = dict[str, Any]

MOST_SCRIPT = 1 << 20
"""A ConfigMap holds no more; the server says precisely how much fits."""
MOST_FILES = 500
_IMPORT = re.compile(
    r"^[ \t]*(?:import|from)[ \t]+(torch|tensorflow|keras|horovod)\b", re.MULTILINE
)


def request(spec: Mapping[str, Any] | None, fields: Mapping[str, Any]) -> Json:
    """A job file's content, with `fields` in place of its own; see `JobSpec` for the fields."""
    dumped = getattr(spec, "model_dump", None)
    base = dumped(mode="json", exclude_defaults=True) if dumped is not None else dict(spec or {})
    return {**base, **{name: value for name, value in fields.items() if value is not None}}


def script_request(
    file: str | Path,
    arguments: Sequence[str],
    fields: Mapping[str, Any],
    *,
    entry: str | None = None,
    files: Sequence[str] = (),
) -> Json:
    """A request that runs one local file, or `entry` of a folder; raises Unreadable for what cannot be read.

    A folder goes with all its text files, a script with those beside it that the patterns of `files` name.
    """
    path = Path(file)
    if path.is_dir():
        code = folder_code(path, entry or "train.py", files or ("**/*",))
    elif files:
        code = folder_code(path.parent, path.name, (path.name, *files))
    else:
        code = {"inline": read_script(path), "entrypoint": path.name}
    made: Json = {"code": code}
    if arguments:
        made["args"] = list(arguments)
    return {"framework": framework_of(code), **made, **request(None, fields)}


def framework_of(code: Json) -> str:
    """The framework whose packages the code imports; pytorch where it imports none of them."""
    text = "\n".join(code["files"].values()) if "files" in code else code["inline"]
    found = set(_IMPORT.findall(text))
    if "horovod" in found:
        return "horovod"
    return "tensorflow" if found & {"tensorflow", "keras"} and "torch" not in found else "pytorch"


def folder_code(folder: Path, entry: str, patterns: Sequence[str]) -> Json:
    """The files of a folder that fit a pattern, as code; hidden ones and Python's caches stay where they are."""
    found = sorted(
        {path for pattern in patterns for path in folder.glob(pattern) if _is_code(path, folder)}
    )
    if folder / entry not in found:
        names = ", ".join(str(each.relative_to(folder)) for each in found[:10]) or "none"
        raise _unreadable(
            folder,
            f"has no file {entry} among those that are sent: {names}.",
            "Name it: --entry FILE.",
        )
    size = sum(path.stat().st_size for path in found)
    if size > MOST_SCRIPT or len(found) > MOST_FILES:
        raise _unreadable(
            folder,
            f"{len(found)} files of {size / MOST_SCRIPT:.1f} MiB are too much: {MOST_FILES} files of 1 MiB at most "
            "travel with a job.",
            "Name fewer with --files PATTERN, or put code into git and data on a volume.",
        )
    texts = {path.relative_to(folder).as_posix(): read_script(path) for path in found}
    return {"files": texts, "entrypoint": entry}


def _is_code(path: Path, folder: Path) -> bool:
    parts = path.relative_to(folder).parts
    is_hidden = any(part.startswith(".") or part == "__pycache__" for part in parts)
    return path.is_file() and not is_hidden and path.suffix not in (".pyc", ".so")


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
