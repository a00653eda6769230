"""The start of one container's process."""

from __future__ import annotations

import os
import signal

import pytest

from astrago_trainer.engines.local import container
from astrago_trainer.engines.local.processes import kill_all, signal_all

MARK = "test/container/0"


@pytest.mark.parametrize("held_in", ["setsid", "execvpe"])
def test_a_stop_that_comes_before_the_program_has_begun_is_not_lost(held_in, monkeypatch, tmp_path):
    """The child is held at one point between fork and exec, and gets its signal there."""
    wait, go_on = os.pipe()
    reached, reach = os.pipe()
    real = getattr(os, held_in)

    def held(*arguments):
        os.write(reach, b"x")
        os.read(wait, 1)
        return real(*arguments)

    monkeypatch.setattr(container.os, held_in, held)
    before = signal.signal(signal.SIGTERM, lambda *_: None)  # as in a supervisor
    try:
        what = container.Start()
        what.command, what.env = ["/bin/sleep", "60"], {"PATH": os.defpath}
        what.mark, what.scratch = MARK, str(tmp_path)
        what.output = os.open(tmp_path / "log", os.O_CREAT | os.O_WRONLY)
        pid, told = container.start(what, has_view=False)
        os.read(reached, 1)
        assert signal_all(MARK, pid, signal.SIGTERM) == 1
        os.write(go_on, b"x")

        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGTERM
    finally:
        signal.signal(signal.SIGTERM, before)
        kill_all(MARK, pid)
        for handle in (wait, go_on, reached, reach, told, what.output):
            os.close(handle)
