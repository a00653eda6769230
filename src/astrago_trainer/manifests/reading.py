"""The door for files: size, encoding and grammar, before anything is built.

YAML is read from parser events, not through PyYAML's constructors: there is nothing a tag could
call, and no recursion that a deep file could exhaust. JSON goes through the fast decoder and only
when that has a doubt, token by token, to say what is wrong and on which line.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from astrago_trainer.core.errors import Problem, Unreadable
from astrago_trainer.manifests.scalars import INT64, HugeNumber, resolve
from astrago_trainer.manifests.tree import MAX_DEPTH, MAX_NODES, MAX_PROBLEMS, Tree
from astrago_trainer.manifests.words import (
    kind_of,
    name_of,
    shown_text,
    shown_value,
    too_deep,
    unreadable,
)

MAX_BYTES = 2 * 1024 * 1024
"""One input. A ConfigMap holds 1 MiB and etcd takes 1.5 MiB: nothing larger could be a job."""

_NAME_A_FILE = "Name a readable file, or - for standard input."


def load_documents(path: str) -> list[dict[str, Any]]:
    """The documents of a file, or of standard input for `-`; raises Unreadable."""
    source = "<stdin>" if path == "-" else path
    try:
        text, size = _read(path)
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}."
        raise unreadable(source, "unreadable-file", message, _NAME_A_FILE) from error
    except ValueError as error:  # NUL in the path
        message = f"cannot be read: {error}."
        raise unreadable(source, "unreadable-file", message, _NAME_A_FILE) from error
    if len(text) > MAX_BYTES:
        raise _too_large(source, size, MAX_BYTES)
    return parse_documents(text, source)


def parse_documents(text: bytes, source: str) -> list[dict[str, Any]]:
    """The mappings in `text`, without empty documents; raises Unreadable with all problems.

    JSON is known by its first character or by `source` ending in `.json`. What begins like JSON
    and is none gets a second chance as YAML, whose flow style looks alike.
    """
    if len(text) > MAX_BYTES:
        raise _too_large(source, len(text), MAX_BYTES)
    decoded = _decode(text, source)
    if source.endswith(".json"):
        documents = _parse_json(decoded, source)
    elif decoded.lstrip()[:1] in ("{", "["):
        try:
            documents = _parse_json(decoded, source)
        except _NotJson as not_json:
            try:
                documents = _parse_yaml(decoded, source)
            except Unreadable:
                raise not_json from None
    else:
        documents = _parse_yaml(decoded, source)
    return _mappings(documents, source)


def parse_json(text: bytes, source: str, *, max_bytes: int = MAX_BYTES) -> Any:
    """One JSON value under the same rules, for whoever reads a stream; raises Unreadable."""
    if len(text) > max_bytes:
        raise _too_large(source, len(text), max_bytes)
    documents = _parse_json(_decode(text, source), source)
    if len(documents) != 1:
        message = f"expected one JSON value, found {len(documents)}."
        raise unreadable(source, "not-json", message, "Write one value.")
    return documents[0]


def items_of(documents: Sequence[Any]) -> list[Any]:
    """A `List`, as `kubectl get -o yaml` prints it, stands for its items."""
    found: list[Any] = []
    for each in documents:
        items = each.get("items")
        if each.get("kind") == "List" and isinstance(items, list):
            found.extend(item for item in items if isinstance(item, dict))
        else:
            found.append(each)
    return found


def one_of_kind(
    documents: Sequence[Mapping[str, Any]], kinds: Sequence[str], what: str, *, source: str = ""
) -> Mapping[str, Any]:
    """The only document of one of these kinds; raises Unreadable that says what is there."""
    found = [each for each in documents if each.get("kind") in kinds]
    if len(found) == 1:
        return found[0]
    wanted = " or ".join(kinds)
    if found:
        names = ", ".join(name_of(each) for each in found)
        message = f"expected one {what} (kind {wanted}), found {len(found)}: {names}."
        raise unreadable(source, "several-documents", message, "Put each into its own file.")
    seen = ", ".join(name_of(each) for each in documents) or "no document"
    message = f"expected a {what} (kind {wanted}), found {seen}."
    raise unreadable(source, "wrong-kind", message, _kind_remedy(documents, kinds))


def _kind_remedy(documents: Sequence[Mapping[str, Any]], kinds: Sequence[str]) -> str:
    from difflib import get_close_matches

    for each in documents:
        if close := get_close_matches(kind_of(each), kinds, 1):
            return f"Did you mean kind: {close[0]}?"
    return f"Name a file with kind: {kinds[0]}."


def _read(path: str) -> tuple[bytes, int]:
    """At most one byte more than is allowed, and the size where the file knows it."""
    if path == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1), 0
    with Path(path).open("rb") as file:
        text = file.read(MAX_BYTES + 1)
        is_too_large = len(text) > MAX_BYTES and file.seekable()
        return text, file.seek(0, 2) if is_too_large else 0


def _too_large(source: str, size: int, limit: int) -> Unreadable:
    found = f"{size:,} bytes" if size else "more"
    return unreadable(
        source,
        "too-large",
        f"must have at most {limit:,} bytes; found {found}.",
        "Keep code and data out of it: mount a volume, or fetch the code with git.",
    )


def _decode(text: bytes, source: str) -> str:
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        found = " ".join(f"{byte:02x}" for byte in text[error.start : error.start + 4])
        raise unreadable(
            f"{source}:{line}",
            "not-utf-8",
            f"must be UTF-8; found the bytes {found} at offset {error.start}.",
            "Save the file as UTF-8.",
        ) from None
    if (at := decoded.find("\0")) >= 0:
        raise unreadable(
            _at(decoded, at, source),
            "nul-character",
            f"must not hold the NUL character; found one at character {at}.",
            "Remove it; binary and UTF-16 files look like this too.",
        )
    return decoded


def _at(text: str, position: int, source: str) -> str:
    return f"{source}:{text.count(chr(10), 0, position) + 1}"


def _mappings(documents: list[Any], source: str) -> list[dict[str, Any]]:
    found = [each for each in documents if each is not None]
    wrong = [
        Problem(
            path=source if len(found) == 1 else f"{source} (document {number})",
            code="not-a-mapping",
            message=f"expected a mapping of fields, found {shown_value(each)}.",
            remedy="Begin with fields, as in `kind: TrainJob` or `framework: pytorch`.",
        )
        for number, each in enumerate(found, 1)
        if not isinstance(each, dict)
    ]
    if wrong:
        raise Unreadable(wrong[:MAX_PROBLEMS])
    if not found:
        raise unreadable(source, "no-document", "holds no document.", "Is it the file you mean?")
    return found


# JSON


class _NotJson(Unreadable):
    """Breaks JSON's grammar, so it may still be YAML."""


class _Doubtful(Exception):  # noqa: N818 - a signal between two readers, never seen outside
    """The fast reader met something that may have to be refused."""


def _parse_json(text: str, source: str) -> list[Any]:
    _check_depth(text, source)
    try:
        documents = list(_json_values(text))
    except json.JSONDecodeError as error:
        raise _json_syntax(error, text, source) from None
    except _Doubtful:
        return _careful_json(text, source)
    # Surrogates and NUL can only come from escapes, and each value but the first has a comma or a
    # bracket before it.
    if _SUSPECT_ESCAPE.search(text) or text.count(",") + text.count("[") > MAX_NODES:
        return _careful_json(text, source)
    return documents


def _json_values(text: str) -> Iterator[Any]:
    at = _skip_space(text, 0)
    while True:
        value, at = _decoder.raw_decode(text, at)
        yield value
        at = _skip_space(text, at)
        if at == len(text):
            return


def _skip_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise _Doubtful
    return mapping


def _json_int(text: str) -> int:
    if len(text) > 20 or (number := int(text)) not in INT64:
        raise _Doubtful
    return number


def _json_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _Doubtful
    return number


def _json_constant(_: str) -> NoReturn:
    raise _Doubtful


_decoder = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_int=_json_int,
    parse_float=_json_float,
    parse_constant=_json_constant,
)
_SPACE = re.compile(r"[ \t\n\r]*")
_SUSPECT_ESCAPE = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def _check_depth(text: str, source: str) -> None:
    """Before anything that recurses sees it; right for every text up to its first syntax error."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    # Without escaped quotes, every second part lies between two strings.
    parts = text.replace("\\\\", "").replace('\\"', "").split('"')[::2]
    depth = 0
    for bracket in "".join(parts).encode().translate(None, _NO_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > MAX_DEPTH:
            raise too_deep(_deep_place(text, source), MAX_DEPTH)


def _deep_place(text: str, source: str) -> str:
    depth = 0
    for token in _TOKEN.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if depth > MAX_DEPTH:
            return _at(text, token.start(), source)
    return source


def _careful_json(text: str, source: str) -> list[Any]:
    """Token by token, for text of which the grammar is known to be right."""
    tree = Tree(source)
    line, at = 1, 0
    for token in _TOKEN.finditer(text):
        line += text.count("\n", at, token.start())
        at, word = token.start(), token[0]
        if word in "[{":
            tree.open({} if word == "{" else [], line)
        elif word in "]}":
            tree.close()
        elif word not in ",:":
            tree.add(_json_scalar(word), line)
    return tree.documents()


_CONSTANTS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def _json_scalar(word: str) -> Any:
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    if len(word) > 20 and word.lstrip("-").isdigit():
        return HugeNumber(word)
    return json.loads(word)


def _json_syntax(error: json.JSONDecodeError, text: str, source: str) -> Unreadable:
    found = text[error.pos : error.pos + 40].split("\n")[0]
    shown = shown_text(found, 20) if found else "the end"
    reason = f"{error.msg[:1].lower()}{error.msg[1:]} at column {error.colno}"
    return _NotJson(
        [
            Problem(
                path=f"{source}:{error.lineno}",
                code="not-json",
                message=f"is not JSON: {reason}; found {shown}.",
                remedy="Look there for a quote, bracket or comma that is missing or too many.",
            )
        ]
    )


# YAML


def _parse_yaml(text: str, source: str) -> list[Any]:
    import yaml  # here, because it takes 15 ms to import and JSON needs none of it

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    tree = Tree(source)
    try:
        for event in yaml.parse(text, Loader=loader):
            kind, line = type(event), event.start_mark.line + 1
            if kind is yaml.ScalarEvent:
                plain = event.value if event.implicit[0] and event.tag is None else None
                value = event.value if plain is None else resolve(plain)
                tree.add(value, line, plain=plain, anchor=event.anchor, tag=event.tag)
            elif kind is yaml.MappingStartEvent:
                tree.open({}, line, anchor=event.anchor, tag=event.tag)
            elif kind is yaml.SequenceStartEvent:
                tree.open([], line, anchor=event.anchor, tag=event.tag)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                tree.close()
            elif kind is yaml.AliasEvent:
                tree.alias(event.anchor, line)
            elif kind is yaml.DocumentStartEvent:
                tree.start_document()
    except yaml.YAMLError as error:
        raise Unreadable(
            [*tree.problems[:MAX_PROBLEMS], _yaml_syntax(error, text, source)]
        ) from None
    return tree.documents()


def _yaml_syntax(error: Exception, text: str, source: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return _forbidden_character(text, source)
    problem = str(getattr(error, "problem", "") or "broken")
    context = str(getattr(error, "context", "") or "")
    lines = text.split("\n", mark.line + 1)
    near = lines[mark.line] if mark.line < len(lines) else ""
    reason = f"{context}, {problem}" if context else problem
    found = shown_text(near.strip(), 40) if near.strip() else "the end"
    return Problem(
        path=f"{source}:{mark.line + 1}",
        code="not-yaml",
        message=f"is not YAML: {reason} at column {mark.column + 1}; found {found}.",
        remedy=_yaml_remedy(problem, near),
    )


_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _forbidden_character(text: str, source: str) -> Problem:
    """Searched for anew: the two loaders count positions in different units."""
    match = _FORBIDDEN.search(text)
    code, at = (ord(match[0]), match.start()) if match else (0xFEFF, 0)
    spelled = f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}"
    return Problem(
        path=_at(text, at, source),
        code="not-yaml",
        message=f"is not YAML: the character U+{code:04X} is not allowed.",
        remedy=f'Remove it, or write it as "{spelled}" between double quotes.',
    )


def _yaml_remedy(problem: str, near: str) -> str:
    if "\t" in near[: len(near) - len(near.lstrip())]:
        return "Indent with spaces; YAML does not allow tabs there."
    if "escape code" in problem:
        return "Write the character itself; YAML knows no surrogates."
    if "mapping values" in problem:
        return "Quote a value that holds ': ', or check the indentation."
    if "cannot start any token" in problem:
        return "Quote a value that begins with a special character."
    return "Check the indentation, quotes and brackets up to that line."
