"""What an installation did, in lines for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from astrago_trainer.cli.terminal import Terminal, clean
from astrago_trainer.cli.words import folded, next_commands

if TYPE_CHECKING:
    from astrago_trainer.install.applying import Applied
    from astrago_trainer.install.prerequisites import Operators

_COLOURS = {"created": "green", "changed": "yellow", "unchanged": "dim", "refused": "red"}
_DIFF_COLOURS = {"+": "green", "-": "red"}


def heading(server: str, found: Operators) -> str:
    kubernetes = clean(found.kubernetes).removeprefix("v")
    return f"{clean(server)}: Kubernetes {kubernetes}, Kubeflow Trainer {found.trainer}"


def applied_lines(applied: Applied, terminal: Terminal) -> Iterator[str]:
    """What became of one object, why it was refused, and how it differs in a dry run."""
    outcome = applied.outcome.value
    where = f" in {applied.namespace}" if applied.namespace else ""
    label = terminal.paint(f"{outcome:<9}", _COLOURS[outcome])
    yield f"{label}  {applied.kind} {clean(applied.name + where)}"
    if applied.trouble:
        for line in folded(clean(applied.trouble), terminal, indent=11):
            yield f"{'':11}{line}"
    for line in applied.diff:
        yield terminal.paint(f"  {clean(line)}", _DIFF_COLOURS.get(line[:1], "dim"))


def summary(done: Sequence[Applied], *, is_dry: bool) -> str:
    counts = Counter(each.outcome.value for each in done)
    told = ", ".join(f"{counts[name]} {name}" for name in _COLOURS if counts[name])
    return f"{len(done)} objects: {told}{'; nothing was written' if is_dry else ''}."


def next_steps(namespace: str, terminal: Terminal) -> list[str]:
    where = f"kubectl -n {namespace}"
    return next_commands(
        [
            (f"{where} rollout status deployment/astrago", "wait until it answers"),
            (f"{where} exec deployment/astrago -- cat /data/admin-token", "the first token"),
            (f"{where} port-forward service/astrago 8000:80", "reach it from here"),
            ("astrago login http://127.0.0.1:8000", "use it"),
            ("astrago doctor --engine kubernetes", "look whether all is well"),
        ],
        terminal,
    )
