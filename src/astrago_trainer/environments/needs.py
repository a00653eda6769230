"""Whether a job needs packages beside the standard library, and which framework, read off its code and commands.

A script that needs none starts at once on any machine: nothing is installed for it. Pure.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_FRAMEWORKS = (
    ("horovod", re.compile(r"\b(?:horovod|mpirun)\b")),
    ("tensorflow", re.compile(r"\b(?:tensorflow|keras|TF_CONFIG)\b")),
    (
        "torch",
        re.compile(
            r"\b(?:torch|torchrun|torchvision|lightning|transformers|accelerate|deepspeed)\b"
        ),
    ),
)
_SYSTEM = "/shared/"
"""Where the platform's own scripts lie; they need the standard library alone."""
_PATH = re.compile(r"[\w./-]+")  # a run is read once: a command is a tenant's text of up to 128 KiB
_MODULE = re.compile(r"\bpython[\d.]*\s+(?:-\w+\s+)*-m\s+(\w+)")
_MOST_PARSED = 256 * 1024
"""Characters. A server reads the code of every job, and must not stop for a large one."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What the code of one job asks of its environment."""

    packages: bool = True
    """Whether it needs more than the standard library."""
    framework: str = ""
    """Name of the environment whose framework it mentions; empty where it mentions none."""


def needs_of(sources: Mapping[str, str], commands: Iterable[str], *, has_other_code: bool) -> Needs:
    """`sources`: file name -> text of all Python files. `has_other_code`: some code cannot be read here (git)."""
    shell = "\n".join(commands)
    everything = "\n".join((shell, *sources.values()))
    framework = next((name for name, words in _FRAMEWORKS if words.search(everything)), "")
    is_large = len(everything) > _MOST_PARSED
    if framework or has_other_code or is_large or _runs_unknown_code(shell, sources):
        return Needs(True, framework)
    local = {name.rpartition("/")[2].removesuffix(".py") for name in sources}
    local |= {name.partition("/")[0] for name in sources if "/" in name}
    known = local | sys.stdlib_module_names
    return Needs(any(imports(text) - known for text in sources.values()), "")


def imports(source: str) -> set[str]:
    """Top-level names of the modules that a script imports; none where it cannot be parsed."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module.partition(".")[0])
    return found - {"__future__"}


def _runs_unknown_code(shell: str, sources: Mapping[str, str]) -> bool:
    """A script or module that the job does not bring along: it lies on a volume or in the image."""
    names = {name.rpartition("/")[2] for name in sources}
    paths = (each for each in _PATH.findall(shell) if each.endswith(".py"))
    found = [each for each in paths if not each.startswith(_SYSTEM)]
    scripts = {each.rpartition("/")[2] for each in found}
    modules = set(_MODULE.findall(shell)) - sys.stdlib_module_names
    return bool(scripts - names or modules)
