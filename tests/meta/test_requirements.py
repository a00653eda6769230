"""Which requirements of the mission are shown by a test, and which wait for a part that is not built yet.

Each requirement is in exactly one of the two: cited by `@pytest.mark.req`, or listed here with what it waits for. So
nothing is forgotten, and nothing stays on the list after it was met.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
ALL = {f"M{number}" for number in range(1, 143)}

WAITING = {
    "the SDK and the converter": "M88",
    "restarts and checkpoints on an engine": "M116",
    "the guide": "M91 M98 M135",
    "jobs that others made, in our lists": "M139",
    "a GPU in the tests": "M142",
}
"""What it waits for -> the requirements."""

PARTLY = "M88 M91 M98 M116 M135"
"""Wait as well, but what the core has to do with them is shown already."""

BACKGROUND = {"M43", "M74", "M110"}
"""Say what the mission is or was, or are superseded (M43 by X2): nothing to test in them by themselves."""


def cited() -> set[str]:
    found = set()
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.req"):
                found |= {
                    str(argument.value)
                    for argument in node.args
                    if isinstance(argument, ast.Constant)
                }
    return found


def test_cited_requirements_exist():
    assert [name for name in cited() if not re.fullmatch(r"[MX]\d+", name)] == []
    assert {name for name in cited() if name.startswith("M")} <= ALL


def test_each_requirement_is_either_shown_or_waits_for_a_part():
    waiting = {name for names in WAITING.values() for name in names.split()}
    shown = {name for name in cited() if name.startswith("M")}

    assert sorted(shown & waiting) == sorted(PARTLY.split()), "met by now? take them off the list"
    assert sorted(shown & BACKGROUND) == []
    assert sorted(ALL - shown - waiting - BACKGROUND) == [], "neither shown nor waited for"
