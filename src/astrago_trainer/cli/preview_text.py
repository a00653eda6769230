"""The preview for programs: JSON, and YAML that `kubectl` could take with the origins behind it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from astrago_trainer.cli.terminal import clean, padded, width
from astrago_trainer.manifests.writing import UNPRINTABLE, Line, yaml_lines

if TYPE_CHECKING:
    from astrago_trainer.core.preview import Preview

_COMMENT_COLUMN = 64
"""Comments line up here at most; behind longer lines they follow after two spaces."""


def preview_json(preview: Preview) -> str:
    """One object with everything."""
    document = {
        "version": preview.version,
        "problems": [asdict(problem) for problem in preview.problems],
        "objects": preview.objects,
        "provenance": preview.provenance,
    }
    # Unicode has control characters, too, which JSON does not mind and terminals do.
    text = json.dumps(document, ensure_ascii=False, indent=2)
    return UNPRINTABLE.sub(lambda each: each[0] if each[0] == "\n" else ascii_json(each[0]), text)


def ascii_json(text: str) -> str:
    """As JSON has it between quotes: `\\u009b`."""
    return json.dumps(text)[1:-1]


def annotated_yaml(preview: Preview) -> list[str]:
    """The objects as documents; behind each leaf a comment says who set it."""
    lines: list[str] = []
    for number, each in enumerate(preview.objects):
        lines += ["---"] if number else []
        lines += _with_origins(list(yaml_lines(each, f"/{number}")), preview.provenance)
    return lines


def origin_of(pointer: str, provenance: Mapping[str, str]) -> str:
    """Of a leaf; of the nearest part around it where the table has no line for the leaf itself."""
    while pointer:
        if (origin := provenance.get(pointer)) is not None:
            return origin
        pointer = pointer.rpartition("/")[0]
    return ""


def _with_origins(lines: list[Line], provenance: Mapping[str, str]) -> list[str]:
    sizes = [width(line.text) for line in lines if line.pointer is not None]
    column = max((size for size in sizes if size <= _COMMENT_COLUMN), default=0)
    written = []
    for line in lines:
        origin = origin_of(line.pointer, provenance) if line.pointer is not None else ""
        comment = f"  # {clean(origin)}" if origin else ""
        written.append(f"{padded(line.text, column)}{comment}" if comment else line.text)
    return written
