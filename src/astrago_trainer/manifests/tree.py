"""Documents built value by value: what they weigh, and what must not be in them.

YAML events and JSON tokens both end up here, so both are refused for the same reasons. Depth and
size are known before anything recurses over the result, and an alias is paid for at its full size.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from astrago_trainer.core.errors import Problem, Unreadable
from astrago_trainer.manifests.scalars import INT64, HugeNumber
from astrago_trainer.manifests.words import (
    path_part,
    shortened,
    shown_text,
    shown_value,
    too_deep,
    unreadable,
)

MAX_DEPTH = 64
"""Of nested mappings and lists; a pod inside a runtime is about 15 deep."""
MAX_NODES = 200_000
"""Of all values once aliases are replaced: ten bytes for each in the largest input."""
MAX_CHARACTERS = 8 * 1024 * 1024
"""Of all texts once aliases are replaced: four times the largest input."""
MAX_PROBLEMS = 20
"""Shown for one input; a file with more of them has one cause."""
_ENOUGH_PROBLEMS = 1000
"""Nobody needs to know whether there are more: reading ends."""

_SURROGATE = re.compile("[\ud800-\udfff]")


class _Mark:
    """What stands in for a key or value that has no name of its own."""


_NO_KEY, _REFUSED, _MERGE, _UNKNOWN = _Mark(), _Mark(), _Mark(), _Mark()


class _Size(NamedTuple):
    """What a value weighs once aliases are replaced."""

    nodes: int
    characters: int
    height: int


class _Frame:
    """A mapping or list that is still open."""

    __slots__ = (
        "anchor",
        "characters",
        "height",
        "is_key",
        "key",
        "lines",
        "merges",
        "nodes",
        "value",
    )

    def __init__(self, value: Any, anchor: str | None, *, is_key: bool) -> None:
        self.value: Any = value
        self.anchor = anchor
        self.is_key = is_key
        self.nodes = 0
        self.characters = 0
        self.height = 1
        self.key: Any = _NO_KEY
        self.lines: dict[str, int] = {}
        self.merges: list[dict[str, Any]] = []

    def awaits_key(self) -> bool:
        return self.key is _NO_KEY and isinstance(self.value, dict)


class Tree:
    """The documents of one input, and every problem with its place."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.problems: list[Problem] = []
        self._roots: list[Any] = []
        self._frames: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, _Size] | None] = {}
        self._nodes = 0
        self._characters = 0

    def documents(self) -> list[Any]:
        """What was built; raises Unreadable when anything was wrong with it."""
        if not self.problems:
            return self._roots
        more = len(self.problems) - MAX_PROBLEMS
        rest = [Problem(self.source, "more-problems", f"and at least {more} more problems.")]
        raise Unreadable(self.problems[:MAX_PROBLEMS] + (rest if more > 0 else []))

    def start_document(self) -> None:
        self._anchors.clear()

    def add(
        self,
        value: Any,
        line: int,
        *,
        plain: str | None = None,
        anchor: str | None = None,
        tag: str | None = None,
    ) -> None:
        """A scalar; `plain` is its text where it had no quotes."""
        self._count(1, len(value) if isinstance(value, str) else 0, line)
        if tag is not None:
            self._refuse_tag(tag, shown_text(str(value), 40), line)
        if anchor is not None:
            self._anchors[anchor] = (
                value,
                _Size(1, len(value) if isinstance(value, str) else 0, 0),
            )
        if self._frames and self._frames[-1].awaits_key():
            self._take_key(self._frames[-1], value, line, plain)
            return
        if (problem := _value_problem(value)) is not None:
            self.problems.append(Problem(self._where(line), *problem))
        self._put(value, line)

    def open(
        self, value: Any, line: int, *, anchor: str | None = None, tag: str | None = None
    ) -> None:
        """A mapping or list begins."""
        if len(self._frames) >= MAX_DEPTH:
            raise too_deep(self._where(line), MAX_DEPTH)
        if tag is not None:
            self._refuse_tag(tag, shown_value(value), line)
        if anchor is not None:
            self._anchors[anchor] = None  # not complete: an alias to it would be endless
        is_key = bool(self._frames) and self._frames[-1].awaits_key()
        if is_key:
            self._refuse_key(value, line, None)
            self._frames[-1].key = _REFUSED
        frame = _Frame(value, anchor, is_key=is_key)
        frame.nodes, frame.characters = self._nodes, self._characters
        self._frames.append(frame)
        self._count(1, 0, line)

    def close(self) -> None:
        """It ends."""
        frame = self._frames.pop()
        if frame.merges:
            merged: dict[str, Any] = {}
            for each in reversed(frame.merges):  # the first that is named wins
                merged.update(each)
            frame.value = {**merged, **frame.value}  # and what is written here beats them all
        if frame.anchor is not None:
            size = _Size(
                self._nodes - frame.nodes, self._characters - frame.characters, frame.height
            )
            self._anchors[frame.anchor] = (frame.value, size)
        if self._frames:
            self._frames[-1].height = max(self._frames[-1].height, frame.height + 1)
        if not frame.is_key:
            self._put(frame.value, 0)

    def alias(self, name: str, line: int) -> None:
        """The value of an anchor once more, as a copy of its own."""
        target = self._anchors.get(name, _UNKNOWN)
        if target is None or isinstance(target, _Mark):
            reason = "it would contain itself" if target is None else "no such anchor is before it"
            self.problems.append(
                Problem(
                    path=self._where(line),
                    code="bad-alias",
                    message=f"the alias {shown_text(f'*{name}')} cannot be used: {reason}.",
                    remedy="Write the value out.",
                )
            )
            target = ("", _Size(1, 0, 0))
        value, size = target
        if len(self._frames) + size.height > MAX_DEPTH:
            raise too_deep(self._where(line), MAX_DEPTH)
        self._count(size.nodes, size.characters, line)
        frame = self._frames[-1] if self._frames else None
        if frame is not None and frame.awaits_key():
            self._take_key(frame, value, line, None)
            return
        if frame is not None:
            frame.height = max(frame.height, size.height + 1)
        self._put(_copied(value), line)

    def _put(self, value: Any, line: int) -> None:
        if not self._frames:
            self._roots.append(value)
            return
        frame = self._frames[-1]
        if isinstance(frame.value, list):
            frame.value.append(value)
            return
        key, frame.key = frame.key, _NO_KEY
        if key is _MERGE:
            self._merge(frame, value, line)
        elif key is not _REFUSED:
            frame.value[key] = value

    def _take_key(self, frame: _Frame, key: Any, line: int, plain: str | None) -> None:
        frame.key = _REFUSED
        if plain == "<<":
            frame.key = _MERGE
        elif not isinstance(key, str):
            self._refuse_key(key, line, plain)
        elif key in frame.lines:
            lines = f"on line {frame.lines[key]} and on line {line}"
            self.problems.append(
                Problem(
                    path=self._where(line, key),
                    code="duplicate-key",
                    message=f"the key {shown_text(key)} is there twice: {lines}.",
                    remedy="Keep one of them.",
                )
            )
        elif (problem := _value_problem(key)) is not None:
            self.problems.append(Problem(self._where(line), *problem))
        else:
            frame.lines[key] = line
            frame.key = key

    def _refuse_key(self, key: Any, line: int, plain: str | None) -> None:
        written = f"{shortened(plain)}, which is " if plain else ""
        self.problems.append(
            Problem(
                path=self._where(line),
                code="key-not-text",
                message=f"keys must be text; found {written}{shown_value(key)}.",
                remedy="Put the key between quotes." if written else "Use plain text as the key.",
            )
        )

    def _merge(self, frame: _Frame, value: Any, line: int) -> None:
        parts = value if isinstance(value, list) else [value]
        if all(isinstance(each, dict) for each in parts):
            frame.merges.extend(parts)
            return
        self.problems.append(
            Problem(
                path=self._where(line, "<<"),
                code="bad-merge",
                message=f"the merge key << takes mappings; found {shown_value(value)}.",
                remedy="Refer to the anchor of a mapping: `<<: *name`.",
            )
        )

    def _refuse_tag(self, tag: str, value: str, line: int) -> None:
        shown = shown_text(tag.replace("tag:yaml.org,2002:", "!!"))
        self.problems.append(
            Problem(
                path=self._where(line),
                code="tag",
                message=f"YAML tags are refused; found {shown} on {value}.",
                remedy="Remove the tag; put quotes around a value that is meant as text.",
            )
        )

    def _count(self, nodes: int, characters: int, line: int) -> None:
        self._nodes += nodes
        self._characters += characters
        if len(self.problems) >= _ENOUGH_PROBLEMS:
            self.documents()
        if self._nodes > MAX_NODES:
            limit, found, unit = MAX_NODES, self._nodes, "values"
        elif self._characters > MAX_CHARACTERS:
            limit, found, unit = MAX_CHARACTERS, self._characters, "characters"
        else:
            return
        raise unreadable(
            self._where(line),
            "too-many-values",
            f"must have at most {limit:,} {unit} once aliases are replaced by what they mean; "
            f"found {found:,} up to here.",
            "Use fewer aliases, or split the file.",
        )

    def _where(self, line: int, key: str | None = None) -> str:
        path = ""
        for frame in self._frames:
            if isinstance(frame.value, list):
                path += f"[{len(frame.value)}]"
            elif isinstance(frame.key, str):
                path += path_part(frame.key)
        if key is not None:
            path += path_part(key)
        return f"{self.source}:{line} {path.removeprefix('.')}".rstrip()


def _value_problem(value: Any) -> tuple[str, str, str] | None:
    """Code, message and remedy for a scalar that nothing behind this door should see."""
    if isinstance(value, str):
        if "\0" in value:
            return (
                "nul-character",
                f"must not hold the NUL character; found {shown_value(value)}.",
                "Remove it: no argument, variable or file name can have one.",
            )
        if not value.isascii() and _SURROGATE.search(value):
            return (
                "lone-surrogate",
                f"must be whole Unicode characters; found half of one in {shown_value(value)}.",
                "Write the character itself.",
            )
    elif isinstance(value, HugeNumber) or (type(value) is int and value not in INT64):
        digits = value.digits if isinstance(value, HugeNumber) else str(value)
        return (
            "number-too-large",
            f"whole numbers must fit into 64 bits; found {shortened(digits, 30)}.",
            "Take a smaller number, or quote it if it is meant as text.",
        )
    elif isinstance(value, float) and not math.isfinite(value):
        shown = "not a number (NaN)" if math.isnan(value) else "infinity"
        return (
            "not-a-number",
            f"must be a finite number; found {shown}.",
            "Write a number, or quote it if it is meant as text.",
        )
    return None


def _copied(value: Any) -> Any:
    """So that no caller can change two places by writing to one."""
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value
