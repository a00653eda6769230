"""The steps of the five documents: what a person types or writes, what must come of it, and what did.

One file for each document, `S0.yaml` to `S4.yaml`. `blocks` lists the fingerprints of the document's fenced
blocks (`documents.py`), `steps` everything that the document asks a person to do or promises:

    id        number of the step in its document
    block     number of the fenced block; 0 for a table, a list or a sentence outside of them
    section   where it stands, in our own words
    type      the command as the document has it
    what      what the document has, where it is not a command
    data      what a block writes down as YAML or JSON: the data itself, or the name of a file in `manifests`
    outcome   `as written`, `changed` or `cannot`
    reason    why it is changed or cannot be: a decision (X1 to X23) or one of REASONS, then a colon and the reason
    note      what a reader should know of a step that is as written
    instead   the command that is run in its place, for one that is changed
    fill      what a person puts in place of the document's own placeholders, as shell text
    check     the command that shows it on the cluster, for one that is not a command itself
    before    commands that a person would wait with, in front of the step
    shows     what is on the screen, in the notation of the guide (`tests/cluster/guide/pages.py`)
    of        the step whose output `shows` describes, if it is not the step's own
    where     `local`: in `make test`; `cluster`: in `make test-cluster`; `never`

A step on the cluster with a command, or with `shows`, is run from here by `tests/cluster/seeds`. Every other one is
named by the test that shows it: `@pytest.mark.seeds("S0-01")`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

HERE = Path(__file__).parent
DOCUMENTS = ("S0", "S1", "S2", "S3", "S4")
REASONS = ("no GPU", "no network", "other system", "no EKS", "placeholder", "security")
_REASON = re.compile(rf"(X\d+|{'|'.join(REASONS)}): \S.*", re.DOTALL)

Outcome = Literal["as written", "changed", "cannot"]
Where = Literal["local", "cluster", "never"]


@dataclass(frozen=True, slots=True)
class Step:
    id: str
    block: int
    section: str
    outcome: Outcome
    where: Where
    type: str = ""
    what: str = ""
    data: Any = None
    reason: str = ""
    note: str = ""
    instead: str = ""
    check: str = ""
    fill: Mapping[str, str] = field(default_factory=dict)
    before: str = ""
    shows: str = ""
    of: str = ""

    @property
    def is_replayed(self) -> bool:
        """Whether the replay of its document runs it; any other one is shown by a test that names it."""
        return self.where == "cluster" and bool(self.type or self.shows)

    @property
    def command(self) -> str:
        """What is typed, with what a person fills in and, after a here-document's first line, its data."""
        text = self.instead or self.type or self.check
        if "<<EOF" in text:
            body = yaml.safe_dump(self.data, sort_keys=False)
            text += "\n" + re.sub(r"([$`\\])", r"\\\1", body) + "EOF"
        for placeholder, value in self.fill.items():
            text = text.replace(placeholder, value)
        return text


@dataclass(frozen=True, slots=True)
class Document:
    name: str
    title: str
    folder: str
    """In which its commands are typed, from the root of the checkout; `-` is an empty one."""
    clean_up: str
    """Run before the replay and after one that failed."""
    blocks: tuple[str, ...]
    """Fingerprint of each of its fenced blocks."""
    steps: tuple[Step, ...]

    def of_block(self, number: int) -> list[Step]:
        return [each for each in self.steps if each.block == number]

    def kind(self, number: int) -> str:
        """What the fingerprint of a block is of: `data`, `shell` or `text`."""
        steps = self.of_block(number)
        if any(each.data is not None for each in steps):
            return "data"
        return "shell" if any(each.type for each in steps) else "text"


def read(name: str) -> Document:
    """Raises AssertionError for a file that does not keep the rules above."""
    found = yaml.safe_load((HERE / f"{name}.yaml").read_text(encoding="utf-8"))
    steps = []
    section = ""
    for raw in found["steps"]:
        section = raw.pop("section", section)
        data = raw.pop("data", None)
        if isinstance(data, str):
            data = yaml.safe_load((HERE / "manifests" / data).read_text(encoding="utf-8"))
        step = Step(section=section, data=data, **{**raw, "id": f"{name}-{raw['id']:02d}"})
        _check(step)
        steps.append(step)
    return Document(
        name,
        found["title"],
        found.get("folder", ""),
        found.get("clean up", ""),
        tuple(found["blocks"]),
        tuple(steps),
    )


def read_all() -> list[Document]:
    return [read(name) for name in DOCUMENTS]


def _check(step: Step) -> None:
    name = step.id
    assert step.outcome in ("as written", "changed", "cannot"), name
    assert step.where in ("local", "cluster", "never"), name
    assert (step.where == "never") <= (step.outcome == "cannot"), f"{name} is not run: cannot"
    assert bool(step.type) != bool(step.what), f"{name} has either a command or says what it has"
    if step.outcome == "as written":
        assert not step.instead, f"{name} is not as written: it runs another command"
        assert not step.reason, f"{name} is as written: a remark about it is a note"
    else:
        assert _REASON.fullmatch(step.reason), f"{name} has no reason of a known kind"
    if step.outcome == "changed" and step.type and step.is_replayed:
        assert step.instead, f"{name} is changed, so it says what is typed instead"
    if step.of:
        assert step.shows, f"{name} describes an output, but has none"
