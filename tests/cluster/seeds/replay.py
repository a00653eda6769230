"""Types the commands of a document into one bash, in their order, and compares what comes on the screen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.cluster.guide.following import Shell
from tests.cluster.guide.pages import difference
from tests.seeds.documents import ROOT
from tests.seeds.steps import Document, Step


def replay(document: Document, env: Mapping[str, str], folder: Path, *, look: str = "") -> None:
    """Raises AssertionError at the first step whose outcome is not as stored; cleans up in any case.

    `look` are commands whose output is shown with a failure, from before the clean-up.
    """
    empty = folder / "empty"
    empty.mkdir()
    place = empty if document.folder == "-" else ROOT / document.folder
    _clean_up(document, env, folder / "before")
    try:
        with Shell(env, folder / "document", root=place) as shell:
            outputs: dict[str, str] = {}
            for step in document.steps:
                if step.is_replayed:
                    _take(shell, step, outputs)
    except BaseException as error:
        with Shell(env, folder / "look") as shell:
            error.add_note(shell.run(look, stop_at_failure=False)[1])
        raise
    finally:
        _clean_up(document, env, folder / "after")


def _take(shell: Shell, step: Step, outputs: dict[str, str]) -> None:
    where = f"{step.id}: {step.command or step.what}\n"
    if step.of:
        output = outputs[step.of]
    else:
        for commands in filter(None, (step.before, step.command)):
            code, output = shell.run(commands, stop_at_failure=True)
            assert code == 0, f"{where}ended with code {code}:\n{commands}\n{output}"
        outputs[step.id] = output
    if step.shows:
        wrong = difference(step.shows, output)
        assert not wrong, f"{where}{wrong}\n--- expected\n{step.shows}--- and it was\n{output}"


def _clean_up(document: Document, env: Mapping[str, str], folder: Path) -> None:
    with Shell(env, folder) as shell:
        shell.run(document.clean_up, stop_at_failure=False)
