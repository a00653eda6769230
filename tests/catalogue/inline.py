"""Keeps the copies of the catalogue's scripts equal to the files they come from.

Every script is delivered alone, so a piece that several need is in each of them, between the lines
`# --- <piece>` and `# --- end of <piece>`. In a YAML file, a block `- | # system/<script>` holds that
script; after a prelude a blank line and the user's own command follow, which stay as they are.
`python tests/catalogue/inline.py` writes all copies anew, the tests only compare.
"""

import re
from pathlib import Path

RUNTIMES = Path(__file__).parents[2] / "src" / "astrago_trainer" / "runtimes"
SYSTEM = RUNTIMES / "system"

_PIECE = re.compile(r"^# --- (\w+\.sh)\n.*?^# --- end of \1\n", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(
    r"^(?P<indent> *)- \| # system/(?P<script>\w+\.sh)\n(?P<body>(?:(?P=indent)  .*\n|\n)*)",
    re.MULTILINE,
)


def filled(text: str) -> str:
    """Give the text of a script or a YAML file with every copy in it written anew."""
    return _BLOCK.sub(_filled_block, _PIECE.sub(_filled_piece, text))


def _filled_piece(piece: re.Match[str]) -> str:
    text = (SYSTEM / piece[1]).read_text()
    return f"# --- {piece[1]}\n{text}# --- end of {piece[1]}\n"


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
    # Scripts first: the YAML files take them whole.
    for path in [*sorted(SYSTEM.glob("*.sh")), *sorted(RUNTIMES.glob("*/*.yaml"))]:
        path.write_text(filled(path.read_text()))
