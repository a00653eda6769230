"""YAML for people and for `kubectl apply`: block style, keys as they come, no aliases.

Written by hand rather than with PyYAML, because every leaf must stand on a line of its own and be
known by its JSON pointer: the preview writes the origin of each behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from astrago_trainer.manifests.scalars import resolve


class Line(NamedTuple):
    """A line, and the JSON pointer of the leaf whose value begins on it, if one does."""

    text: str
    pointer: str | None


def dump_yaml(value: Any) -> str:
    """One document; texts of several lines become literal blocks."""
    return "".join(f"{line.text}\n" for line in yaml_lines(value))


def yaml_lines(value: Any, pointer: str = "") -> Iterator[Line]:
    """The lines of one document. `{}` and `[]` are leaves."""
    if isinstance(value, Mapping) and value:
        yield from _mapping_lines(value, pointer, first="", indent="")
    elif isinstance(value, list | tuple) and value:
        yield from _list_lines(value, pointer, indent="")
    else:
        yield from _leaf_lines("", value, pointer, indent="")


def _mapping_lines(
    value: Mapping[str, Any], pointer: str, *, first: str, indent: str
) -> Iterator[Line]:
    """`first` stands before the first key: the dash of a list's entry, or the indent."""
    start = first
    for key, each in value.items():
        below = f"{pointer}/{pointer_part(key)}"
        head = f"{start}{scalar(key)}:"
        if isinstance(each, Mapping) and each:
            yield Line(head, None)
            yield from _mapping_lines(each, below, first=f"{indent}  ", indent=f"{indent}  ")
        elif isinstance(each, list | tuple) and each:
            yield Line(head, None)
            yield from _list_lines(each, below, indent=indent)
        else:
            yield from _leaf_lines(f"{head} ", each, below, indent=indent)
        start = indent


def _list_lines(value: Sequence[Any], pointer: str, *, indent: str) -> Iterator[Line]:
    for number, each in enumerate(value):
        below = f"{pointer}/{number}"
        if isinstance(each, Mapping) and each:
            yield from _mapping_lines(each, below, first=f"{indent}- ", indent=f"{indent}  ")
        elif isinstance(each, list | tuple) and each:
            yield Line(f"{indent}-", None)
            yield from _list_lines(each, below, indent=f"{indent}  ")
        else:
            yield from _leaf_lines(f"{indent}- ", each, below, indent=indent)


def _leaf_lines(head: str, value: Any, pointer: str, *, indent: str) -> Iterator[Line]:
    block = literal_block(value) if isinstance(value, str) else None
    if block is None:
        yield Line(f"{head}{scalar(value)}", pointer)
        return
    header, lines = block
    yield Line(f"{head}{header}", pointer)
    for line in lines:
        yield Line(f"{indent}  {line}" if line else "", None)


def literal_block(text: str) -> tuple[str, list[str]] | None:
    """Header (`|`, `|-`, `|+`) and lines of a text that can be shown as it is, else None."""
    if "\n" not in text or UNPRINTABLE.search(text.replace("\n", "").replace("\t", "")):
        return None
    body = text.rstrip("\n")
    # Lines of spaces alone would be lost on the way through editors, and confuse some readers.
    if not body or any(line and not line.strip() for line in body.split("\n")):
        return None
    trailing = len(text) - len(body)
    start = "2" if body[0] in " \t\n" else ""  # else the reader takes it for indentation
    chomping = "-" if trailing == 0 else "" if trailing == 1 else "+"
    return f"|{start}{chomping}", body.split("\n") + [""] * max(trailing - 1, 0)


def scalar(value: Any, *, in_flow: bool = False) -> str:
    """A value on one line: plain where every YAML reader sees the same text, else quoted."""
    if isinstance(value, str):
        return value if _is_plain(value, in_flow=in_flow) else quoted(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        written = repr(value)
        # YAML 1.1 has no number without a point before the exponent.
        return written if "e" not in written or "." in written else written.replace("e", ".0e")
    if isinstance(value, Mapping):
        inner = (
            f"{scalar(key, in_flow=True)}: {scalar(each, in_flow=True)}"
            for key, each in value.items()
        )
        return "{" + ", ".join(inner) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(scalar(each, in_flow=True) for each in value) + "]"
    raise TypeError(f"no YAML for {type(value).__name__}")


UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\uffff\U000e0000-\U000e007f]"
)
"""Control characters, line separators, and marks that hide text or turn its direction: a terminal
or a reviewer would be shown something other than what is there."""

_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_PLAIN = re.compile(
    r"(?:[^\W\d]|[0-9/.]|--?[A-Za-z])"  # begins with no mark of YAML's
    r"(?:[^\s#:]|(?<=\S)#|:(?=\S)| (?=[^\s#]))*"  # holds neither ` #` nor `: `
)
_FLOW_MARKS = re.compile(r"[,\[\]{}]|:")
_NUMBER_LIKE = re.compile(r"[-+.]?[0-9][0-9a-fA-FxXoO_.:+\-TtZz ]*")
"""Numbers, times and dates of other YAML versions: quoted, so that no reader converts them."""


def quoted(text: str) -> str:
    """In double quotes, with the escapes of YAML."""
    return f'"{escape(text.translate(_QUOTE))}"'


_QUOTE = str.maketrans({'"': '\\"', "\\": "\\\\"})


def escape(text: str) -> str:
    """Without anything a terminal would obey: `\\x1b`, `\\n`, `\\u202e`."""
    return UNPRINTABLE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if character in _ESCAPES:
        return _ESCAPES[character]
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_plain(text: str, *, in_flow: bool) -> bool:
    if not text or len(text) > 1000 or _PLAIN.fullmatch(text) is None or UNPRINTABLE.search(text):
        return False
    if in_flow and _FLOW_MARKS.search(text):
        return False
    return isinstance(resolve(text), str) and _NUMBER_LIKE.fullmatch(text) is None


def pointer_part(key: str) -> str:
    """One step of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1") if "~" in key or "/" in key else key
