"""Writes the table of Go types that the merge reads: `python -m tests.oracle.schema --write`.

The table comes from the controller's own types, so nobody types field names by hand and a new
version is one more run. What all versions share is written once; without `--write` the command only
says whether the committed file is current.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from tests.oracle.build import VERSIONS, once, oracle_binary, skip_reason

TARGET = Path(__file__).parents[2] / "src/astrago_trainer/core/merge/schema_data.py"

Structs = dict[str, dict[str, str]]

_ROOTS = ("trainer.v1alpha1.TrainJob", "trainer.v1alpha1.ClusterTrainingRuntime")
_LEFT_OUT = {  # written by the API server, never by a user, and never read by the merge
    "meta.v1.ObjectMeta": {"selfLink", "managedFields"},
    "trainer.v1alpha1.TrainJob": {"status"},
}

_HEAD = '''"""The fields of Kubernetes, JobSet and Trainer types as each Trainer version has them.

Made by `python -m tests.oracle.schema --write`; do not edit. A field is its kind, then flags: `p` a
pointer, `e` left out when empty, `z` left out when zero, `merge:<key>` a list that a strategic
merge patch merges by that key (`merge`: by value). Fields stand in the order of their declaration.
"""

from __future__ import annotations

'''


def structs_of(version: str) -> Structs:
    """The types of `version` in the compact form; raises LookupError where there is no oracle."""
    binary = oracle_binary(version)
    if binary is None:
        raise LookupError(skip_reason(version))
    return compact(json.loads("\n".join(once(binary, "schema", []))))


def compact(dump: dict[str, list[dict[str, Any]]]) -> Structs:
    """What the oracle dumps, shortened to one text per field, without what no input reaches."""
    shortened: Structs = {}
    waiting = list(_ROOTS)
    while waiting:
        name = waiting.pop()
        if name in shortened:
            continue
        skipped = _LEFT_OUT.get(name, set())
        fields = {e["name"]: _text(e) for e in dump[name] if e["name"] not in skipped}
        shortened[name] = fields
        for text in fields.values():
            inner = re.search(r"struct:(\S+)", text)
            if inner:
                waiting.append(inner[1])
    return dict(sorted(shortened.items()))


def _text(entry: dict[str, Any]) -> str:
    words = [entry["kind"]]
    if entry.get("pointer"):
        words.append("p")
    if entry.get("omit"):
        words.append(entry["omit"][0])
    if "merge" in entry.get("strategy", "").split(","):
        words.append(f"merge:{entry['key']}" if entry.get("key") else "merge")
    return " ".join(words)


def module(versions: dict[str, Structs]) -> str:
    """The text of the Python module for the types of all versions."""
    first, *others = versions.values()
    common = {
        name: fields
        for name, fields in first.items()
        if all(name in o and list(o[name].items()) == list(fields.items()) for o in others)
    }
    own = {v: {n: f for n, f in s.items() if n not in common} for v, s in versions.items()}
    lines = [_HEAD, "STRUCTS: dict[str, dict[str, str]] = {\n"]
    lines += _struct_lines(common, indent=4)
    lines += ["}\n", "\n", "VERSIONS: dict[str, dict[str, dict[str, str]]] = {\n"]
    for version, structs in own.items():
        lines += [f'    "{version}": {{\n', *_struct_lines(structs, indent=8), "    },\n"]
    lines.append("}\n")
    return "".join(lines)


def _struct_lines(structs: Structs, *, indent: int) -> list[str]:
    margin = " " * indent
    lines = []
    for name, fields in structs.items():
        if not fields:
            lines.append(f'{margin}"{name}": {{}},\n')
            continue
        lines.append(f'{margin}"{name}": {{\n')
        lines += [f'{margin}    "{field}": "{text}",\n' for field, text in fields.items()]
        lines.append(f"{margin}}},\n")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.schema", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {TARGET.name}")
    arguments = parser.parse_args()
    text = module({version: structs_of(version) for version in VERSIONS})
    if arguments.write:
        TARGET.write_text(text, encoding="utf-8")
        print(f"{TARGET}: {len(text.splitlines())} lines")
        return 0
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text:
        print(f"{TARGET} is what the oracles dump")
        return 0
    print(f"{TARGET} differs from what the oracles dump: run with --write", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
