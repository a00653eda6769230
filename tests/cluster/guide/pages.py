"""Reads the pages of `docs/guide` as what they are: commands to type, and what is then on the screen.

A page is followed from top to bottom by one bash, in the root of the checkout. Its fenced blocks:

    ```sh      commands; each must succeed
    ```text    what the commands before it print, on both outputs: all of it, line by line
    ```yaml    an excerpt of a file, for reading; ```python likewise

In a `text` block `…` stands for anything: alone on a line for any number of lines, else for the rest of a line or a
part of it. A word such as <age> stands for one value of that form (PLACEHOLDERS). Runs of spaces are alike, because the
width of a column depends on what is in it.

A comment that no reader sees, on the line above a block, changes what is done with it:

    <!-- not run: reason -->   sh: is not executed, and therefore shows no output; what it leads to is checked by
                               the next block that is run
    <!-- fails -->             sh: its last command must fail
    <!-- clean up -->          sh: is also executed, and may then fail, before the page is followed, and after a failure
    <!-- from: path -->        yaml, python: must be an excerpt of this file, line by line; every such block has one

Anything else in a fence or in such a comment is an error: a page cannot leave the path by a typing mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
GUIDE = ROOT / "docs" / "guide"

PLACEHOLDERS = {
    "age": r"(?:\d+[smhd])+",
    "suffix": r"[a-z0-9]{5}",
    "hash": r"[a-z0-9]{8,10}",
    "ip": r"\d+\.\d+\.\d+\.\d+",
    "number": r"\d+",
    "restarts": r"\d+(?: \([0-9smhd]+ ago\))?",
    "loss": r"\d+\.\d{4}",
    "accuracy": r"[01]\.\d{4}",
    "commit": r"[0-9a-f]{40}",
    "seconds": r"\d+(?:\.\d+)?",
    "node": r"[a-z0-9][-.a-z0-9]*",
}
"""Word in angle brackets -> its form. Others, such as kubectl's own <none>, stand for themselves."""

_FENCE = re.compile(r"^```(?P<kind>.*)$")
_MARK = re.compile(r"^<!-- *(?P<name>[^:]*?) *(?:: *(?P<value>.*?) *)?-->$")
_MARKS = {
    "sh": {"not run", "fails", "clean up"},
    "yaml": {"from"},
    "python": {"from"},
    "text": set(),
}
_WITH_VALUE = {"not run", "from"}
_PIECE = re.compile(r"(?P<gap>…)|<(?P<word>[a-z]+)>|(?P<space>[ \t]+)")


class GuideError(Exception):
    """A page that cannot be followed: all that is wrong with it."""


@dataclass(frozen=True, slots=True)
class Step:
    """Commands, and what they print if the page says so."""

    line: int
    commands: str
    expected: str | None = None
    not_run: str = ""
    """Why not; empty when it is run."""
    is_failing: bool = False
    is_clean_up: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    path: Path
    steps: tuple[Step, ...]

    @property
    def name(self) -> str:
        return self.path.name


@dataclass(frozen=True, slots=True)
class _Block:
    line: int
    kind: str
    text: str
    marks: dict[str, str]


def guide_pages() -> list[Path]:
    return sorted(GUIDE.glob("*.md"))


def read_page(path: Path, root: Path = ROOT) -> Page:
    """Raises GuideError with everything that is wrong."""
    blocks, problems = _blocks(path.read_text(encoding="utf-8"))
    steps: list[Step] = []
    previous = ""
    for block in blocks:
        problems += _problems(block, root)
        if block.kind == "sh":
            steps.append(_step(block))
        elif block.kind == "text":
            if previous != "sh":
                problems.append(
                    (block.line, "a text block must follow the sh block that prints it")
                )
            elif steps[-1].not_run:
                problems.append((block.line, "nothing prints this: the block before it is not run"))
            else:
                steps[-1] = _with_expected(steps[-1], block.text)
        previous = block.kind
    if not any(step.not_run == "" for step in steps):
        problems.append((1, "the page has no block that is run"))
    if problems:
        raise GuideError("\n".join(f"{path.name}:{line}: {text}" for line, text in problems))
    return Page(path, tuple(steps))


def difference(expected: str, actual: str) -> str:
    """Nothing if the output is the expected one, else the first line that was not found where it should be."""
    lines = expected.splitlines()
    if re.fullmatch("".join(map(_pattern, lines)), _tidy(actual)):
        return ""
    for count in range(1, len(lines) + 1):
        if not re.match("".join(map(_pattern, lines[:count])), _tidy(actual)):
            return f"not found, or not where it should be: {lines[count - 1]}"
    return "there is more than was expected"


def _pattern(line: str) -> str:
    if line.strip() == "…":
        return r"(?:.*\n)*?"
    parts, position = [], 0
    line = line.rstrip()
    for piece in _PIECE.finditer(line):
        parts.append(re.escape(line[position : piece.start()]))
        position = piece.end()
        if piece["gap"]:
            parts.append(".*")
        elif piece["space"]:
            parts.append("[ \t]+")
        else:
            parts.append(PLACEHOLDERS.get(piece["word"], re.escape(piece[0])))
    return "".join(parts) + re.escape(line[position:]) + "\n"


def _tidy(output: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in output.splitlines())


def _step(block: _Block) -> Step:
    marks = block.marks
    return Step(
        block.line,
        block.text,
        not_run=marks.get("not run", ""),
        is_failing="fails" in marks,
        is_clean_up="clean up" in marks,
    )


def _with_expected(step: Step, expected: str) -> Step:
    return Step(step.line, step.commands, expected, step.not_run, step.is_failing, step.is_clean_up)


def _problems(block: _Block, root: Path) -> Iterator[tuple[int, str]]:
    if block.kind not in _MARKS:
        known = ", ".join(sorted(_MARKS))
        yield block.line, f"a block of unknown kind {block.kind!r}; there are {known}"
        return
    for name, value in block.marks.items():
        if name not in _MARKS[block.kind]:
            yield block.line, f"a mark {name!r} that a block of kind {block.kind} does not have"
        elif bool(value) != (name in _WITH_VALUE):
            yield block.line, f"the mark {name!r} has too much or too little after it"
    if not block.text.strip():
        yield block.line, "an empty block"
    if "from" in _MARKS[block.kind]:
        source = root / block.marks.get("from", "")
        if not source.is_file():
            yield (
                block.line,
                f"a {block.kind} block without <!-- from: path --> of a file that exists",
            )
        elif f"\n{block.text}" not in f"\n{source.read_text(encoding='utf-8')}":
            yield block.line, f"is not an excerpt of {block.marks['from']}"


def _blocks(text: str) -> tuple[list[_Block], list[tuple[int, str]]]:
    """All fenced blocks with the comments directly above them, and comments that are above none."""
    found: list[_Block] = []
    problems: list[tuple[int, str]] = []
    marks: dict[str, str] = {}
    fence: tuple[int, str, dict[str, str], list[str]] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if fence is not None:
            start, kind, own, lines = fence
            if line == "```":
                body = "".join(f"{each}\n" for each in lines)
                found.append(_Block(start, kind, body, own))
                fence = None
            else:
                lines.append(line)
        elif mark := _MARK.match(line):
            marks[mark["name"]] = mark["value"] or ""
        elif opened := _FENCE.match(line):
            fence = (number, opened["kind"], marks, [])
            marks = {}
        else:
            if "<!--" in line or "```" in line:
                problems.append((number, "a comment or a fence that has not the line to itself"))
            if marks:
                problems.append((number - 1, "a comment that is not directly above a block"))
            marks = {}
    if fence is not None:
        problems.append((fence[0], "a block that does not end"))
    if marks:
        problems.append((number, "a comment that is not directly above a block"))
    return found, problems
