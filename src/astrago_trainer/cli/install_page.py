"""What an installation did, in lines for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from astrago_trainer.cli.terminal import Terminal, clean
from astrago_trainer.cli.words import folded, next_commands

if TYPE_CHECKING:
    import argparse

    from astrago_trainer.install.applying import Applied
    from astrago_trainer.install.prerequisites import Operators
    from astrago_trainer.install.server_state import Blocker

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


def blocker_lines(
    blockers: Sequence[Blocker], options: argparse.Namespace, terminal: Terminal
) -> Iterator[str]:
    """Why the server does not answer, and what to do."""
    where = f"kubectl -n {options.namespace}"
    if not blockers:
        yield f"The server does not answer after {options.wait:g} s, and the cluster does not say why."
        yield f"  {terminal.paint(f'{where} describe pods', 'bold')}"
        return
    yield "The server does not answer:"
    for each in blockers:
        label = terminal.paint(f"{each.subject:<9}", "red")
        first, *rest = folded(clean(each.text), terminal, indent=11)
        yield f"{label}  {first}"
        yield from (f"{'':11}{line}" for line in rest)
        yield from (f"{'':11}| {clean(line)}" for line in each.lines)
        yield from (f"{'':11}→ {terminal.paint(clean(fix), 'bold')}" for fix in each.fixes)


def next_steps(namespace: str, terminal: Terminal) -> list[str]:
    where = f"kubectl -n {namespace}"
    return next_commands(
        [
            (f"{where} port-forward service/astrago 8000:80 &", "reach it from here"),
            (f"{where} exec deployment/astrago -- cat /data/admin-token", "the admin token"),
            ("astrago login http://127.0.0.1:8000", "use it"),
            ("astrago tenants create team-a", "a namespace for jobs"),
            ("astrago run train.py --namespace team-a", "the first job"),
            ("astrago doctor --engine kubernetes", "check the installation"),
        ],
        terminal,
    )
