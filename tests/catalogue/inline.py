"""Keeps the scripts inside the YAML files of the catalogue equal to the files they come from.

A block `- | # system/<name>.sh` holds that file. After a prelude a blank line and the user's own
command follow; they stay. `python tests/catalogue/inline.py` writes the blocks anew, the tests only
compare.
"""

import re
from pathlib import Path

RUNTIMES = Path(__file__).parents[2] / "src" / "astrago_trainer" / "runtimes"
SYSTEM = RUNTIMES / "system"

_BLOCK = re.compile(
    r"^(?P<indent> *)- \| # system/(?P<script>\w+\.sh)\n(?P<body>(?:(?P=indent)  .*\n|\n)*)",
    re.MULTILINE,
)


def filled(text: str) -> str:
    """Give the YAML text with every marked block written anew."""
    return _BLOCK.sub(_filled_block, text)


def _filled_block(block: re.Match[str]) -> str:
    indent, script = block["indent"], block["script"]
    lines = (SYSTEM / script).read_text().splitlines()
    if script.startswith("prelude_"):
        lines += ["", *_user_command(block["body"], indent)]
    body = "".join(f"{indent}  {line}\n" if line else "\n" for line in lines)
    return f"{indent}- | # system/{script}\n{body}"


def _user_command(body: str, indent: str) -> list[str]:
    """Give what follows the last blank line: no command of the samples has one inside."""
    return [
        line.removeprefix(indent + "  ") for line in body.split("\n\n")[-1].splitlines() if line
    ]


if __name__ == "__main__":
    for path in sorted(RUNTIMES.glob("*/*.yaml")):
        path.write_text(filled(path.read_text()))
