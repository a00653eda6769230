"""How values and places are named in messages: short, and with nothing a terminal obeys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from astrago_trainer.core.errors import Problem, Unreadable
from astrago_trainer.manifests.scalars import HugeNumber
from astrago_trainer.manifests.writing import quoted, scalar


def unreadable(path: str, code: str, message: str, remedy: str) -> Unreadable:
    """One problem that ends the reading."""
    return Unreadable([Problem(path, code, message, remedy)])


def too_deep(path: str, limit: int) -> Unreadable:
    return unreadable(
        path,
        "too-deep",
        f"must be nested at most {limit} deep; found more.",
        "No manifest needs that depth: check how the file was made.",
    )


def path_part(key: str) -> str:
    """`.name`, or `["nvidia.com/gpu"]` where a dot would mislead."""
    return f".{key}" if re.fullmatch(r"[\w/-]+", key) else f"[{quoted(shortened(key))}]"


def shown_value(value: Any) -> str:
    """`the text "x"`, `the number 3`, `a list`."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return f"the text {shown_text(value)}"
    if value is None:
        return "nothing"
    if isinstance(value, HugeNumber):
        return f"the number {shortened(value.digits, 30)}"
    return f"the {'boolean' if isinstance(value, bool) else 'number'} {scalar(value)}"


def shown_text(text: str, limit: int = 60) -> str:
    return quoted(shortened(text, limit))


def shortened(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def kind_of(document: Mapping[str, Any]) -> str:
    kind = document.get("kind")
    return shortened(kind) if isinstance(kind, str) else "a document without kind"


def name_of(document: Mapping[str, Any]) -> str:
    """`TrainJob demo`."""
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return f"{kind_of(document)} {shortened(name) if isinstance(name, str) else 'without a name'}"
