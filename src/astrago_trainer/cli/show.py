"""The four forms of every answer: table and wide for people, json and yaml for programs."""

from __future__ import annotations

import json
import sys
from typing import Any

from astrago_trainer.cli.terminal import Terminal

WIDE = 10_000


def is_for_programs(output: str) -> bool:
    return output in ("json", "yaml")


def terminal_for(output: str) -> Terminal:
    """Standard output; `wide` knows no edge."""
    terminal = Terminal(sys.stdout)
    if output == "wide":
        terminal.width = WIDE
    return terminal


def show_value(value: Any, output: str) -> None:
    """As JSON or YAML, without anything a terminal would obey."""
    if output == "yaml":
        from astrago_trainer.manifests import dump_yaml

        sys.stdout.write(dump_yaml(value))
        return
    from astrago_trainer.manifests.writing import UNPRINTABLE

    text = json.dumps(value, ensure_ascii=False, indent=2)
    escaped = UNPRINTABLE.sub(
        lambda each: each[0] if each[0] == "\n" else json.dumps(each[0])[1:-1], text
    )
    sys.stdout.write(f"{escaped}\n")


def show_lines(lines: list[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
