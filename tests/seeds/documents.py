"""The five documents that asked for the product, where they lie beside the checkout: their fenced blocks.

The documents themselves are not part of the project. What is stored of a block is its fingerprint: that of the commands
in it, of the data that it writes down as YAML or JSON, or of its text. Comments, blank lines and runs of spaces are not
part of a fingerprint.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT.parent / "shared" / "seeds"
"""Of the documents; a checkout without them uses the stored fingerprints."""

_HERE_DOCUMENT = re.compile(r"<<(\w+)")
_REQUEST = re.compile(r"(?:GET|POST|DELETE) \S+\s*\n(?={)")


def documents_are_here() -> bool:
    return FOLDER.is_dir()


def blocks(document: str) -> list[str]:
    """The text in each pair of fences, in order."""
    (path,) = FOLDER.glob(f"{document}-*.md")
    found: list[str] = []
    lines: list[str] | None = None
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if not line.startswith("```"):
            if lines is not None:
                lines.append(line)
        elif lines is None:
            lines = []
        else:
            found.append("\n".join(lines) + "\n")
            lines = None
    return found


def commands(text: str) -> list[str]:
    """The commands of a shell block, each in one line; a here-document or a quoted text is part of its command."""
    found: list[str] = []
    held = ""
    lines = iter(text.splitlines())
    for line in lines:
        if not held and (not line.strip() or line.lstrip().startswith("#")):
            continue
        held += line
        if held.endswith("\\"):
            held = held[:-1] + " "
            continue
        if end := _HERE_DOCUMENT.search(held):
            for each in lines:
                held += f"\n{each}"
                if each == end[1]:
                    break
            found.append(held)
            held = ""
            continue
        if _is_open(held):
            held += "\n"
            continue
        found.append(re.sub(r"\s+# .*$", "", held))
        held = ""
    assert not held, f"a command that does not end: {held}"
    return [tidy(each) for each in found]


def tidy(text: str) -> str:
    return " ".join(text.split())


def fingerprint(kind: str, content: Any) -> str:
    """Of a block of this kind: `shell` of a list of commands, `data` of plain data, `text` of a text."""
    if kind == "shell":
        plain = "\n".join(map(tidy, content))
    elif kind == "data":
        plain = json.dumps(_bare(content), sort_keys=True, ensure_ascii=False)
    else:
        plain = tidy(content)
    return hashlib.sha256(plain.encode()).hexdigest()[:16]


def content(kind: str, text: str) -> Any:
    """What is fingerprinted of a block as it stands in the document."""
    if kind == "shell":
        return commands(text)
    return data_of(text) if kind == "data" else text


def data_of(text: str) -> Any:
    """Of YAML, of JSON with remarks, of a request with a JSON body, or of YAML in a here-document."""
    if end := _HERE_DOCUMENT.search(text.splitlines()[0]):
        typed = f"cat {end[0]}\n" + text.split("\n", 1)[1]
        done = subprocess.run(["bash", "-c", typed], capture_output=True, text=True, check=True)
        return yaml.safe_load(done.stdout)
    text = _REQUEST.sub("", text)
    if text.lstrip().startswith("{"):
        return json.loads(re.sub(r"\s//.*$", "", text, flags=re.MULTILINE))
    return yaml.safe_load(text)


def _bare(value: Any) -> Any:
    """Texts without their comment lines, blank lines and runs of spaces."""
    if isinstance(value, dict):
        return {key: _bare(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_bare(each) for each in value]
    if isinstance(value, str):
        lines = (line for line in value.splitlines() if not line.lstrip().startswith("#"))
        return tidy("\n".join(lines))
    return value


def _is_open(text: str) -> bool:
    """Whether a quotation goes on in the next line."""
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return True
    return False
