"""Keeps the copies of the catalogue's scripts equal to the files they come from.

Every script is delivered alone, so a piece that several need is in each of them, between the lines
`# --- <piece>` and `# --- end of <piece>`. In a YAML file, a block `| # <folder>/<file>` holds that
file: a script of the platform, the `train.py` of a sample, or a file below `samples/`.
`python tests/catalogue/inline.py` writes all copies anew, the tests only compare.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUNTIMES = ROOT / "src" / "astrago_trainer" / "runtimes"
SAMPLES = "samples/"
SYSTEM = RUNTIMES / "system"

_PIECE = re.compile(r"^# --- (\w+\.(?:sh|py))\n.*?^# --- end of \1\n", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(
    r"^(?P<indent> *)(?P<key>- |[\w.-]+: )\| # (?P<file>[\w-]+(?:/[\w-]+)+\.(?:sh|py|txt))\n"
    r"(?P<body>(?:(?P=indent)  .*\n|\n)*)",
    re.MULTILINE,
)


def filled(text: str) -> str:
    """Give the text of a script or a YAML file with every copy in it written anew."""
    return _BLOCK.sub(_filled_block, _PIECE.sub(_filled_piece, text))


def _filled_piece(piece: re.Match[str]) -> str:
    text = (SYSTEM / piece[1]).read_text()
    return f"# --- {piece[1]}\n{text}# --- end of {piece[1]}\n"


def _filled_block(block: re.Match[str]) -> str:
    indent, file = block["indent"], block["file"]
    place = ROOT if file.startswith(SAMPLES) else RUNTIMES
    lines = (place / file).read_text().splitlines()
    body = "".join(f"{indent}  {line}\n" if line else "\n" for line in lines)
    return f"{indent}{block['key']}| # {file}\n{body}"


if __name__ == "__main__":
    # Scripts first: the YAML files take them whole.
    manifests = [*sorted(RUNTIMES.glob("*/*.yaml")), *sorted(ROOT.glob("samples/*/*.yaml"))]
    for path in [*sorted(SYSTEM.glob("*.sh")), *manifests]:
        path.write_text(filled(path.read_text()))
