"""Follows a page of the guide: types its commands into one bash and compares what comes on the screen."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.guide.pages import ROOT, Page, Step, difference

from catalogue.shells import kill_session

DEADLINE_SECONDS = 600.0
"""For one block. The waiting is in the commands, with time-outs of their own; this is for those that hang."""


class Shell:
    """One bash for a whole page: variables last from block to block. It ends with the first command that fails."""

    def __init__(self, env: Mapping[str, str], folder: Path, *, root: Path = ROOT) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._count = 0
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(env),
            cwd=root,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        kill_session(self._bash.pid)
        self._bash.communicate()

    def run(self, commands: str, *, stop_at_failure: bool) -> tuple[int, str]:
        """Exit code of the last command and all output; after a failure that stops, the shell is gone."""
        self._count += 1
        script, output = (self._folder / f"{self._count}.{kind}" for kind in ("sh", "out"))
        script.write_text(commands, encoding="utf-8")
        flags = "set -e" if stop_at_failure else "set +e"
        timer = threading.Timer(DEADLINE_SECONDS, kill_session, [self._bash.pid])
        timer.start()
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        # From a file and not from the pipe, which a command that reads its input would empty.
        self._bash.stdin.write(f"{flags}; . '{script}' </dev/null >'{output}' 2>&1; echo $?\n")
        self._bash.stdin.flush()
        answer = self._bash.stdout.readline()
        timer.cancel()
        code = int(answer) if answer else self._bash.wait()
        return code, output.read_text(encoding="utf-8", errors="replace")


def follow(
    page: Page, env: Mapping[str, str], folder: Path, *, root: Path = ROOT, look: str = ""
) -> None:
    """Raises AssertionError at the first step that is not as the page says; cleans up in any case.

    `look` are commands whose output is shown with a failure, from before the clean-up.
    """
    _clean_up(page, env, folder / "before", root)
    try:
        with Shell(env, folder / "page", root=root) as shell:
            for step in page.steps:
                if not step.not_run:
                    _take(shell, step, page.name)
    except BaseException as error:
        with Shell(env, folder / "look", root=root) as shell:
            error.add_note(shell.run(look, stop_at_failure=False)[1])
        _clean_up(page, env, folder / "after", root)
        raise


def _take(shell: Shell, step: Step, name: str) -> None:
    code, output = shell.run(step.commands, stop_at_failure=not step.is_failing)
    where = f"{name}:{step.line}\n{step.commands}"
    if step.is_failing:
        assert code != 0, f"{where}should fail, and did not:\n{output}"
    else:
        assert code == 0, f"{where}ended with code {code}:\n{output}"
    if step.expected is not None:
        wrong = difference(step.expected, output)
        assert not wrong, (
            f"{where}{wrong}\n--- the page says\n{step.expected}--- and it was\n{output}"
        )


def _clean_up(page: Page, env: Mapping[str, str], folder: Path, root: Path) -> None:
    with Shell(env, folder, root=root) as shell:
        for step in page.steps:
            if step.is_clean_up:
                shell.run(step.commands, stop_at_failure=False)
