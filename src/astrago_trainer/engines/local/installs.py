"""Installs of environments that a job waits for, each a process of its own. Standard library only: see `supervisor`."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from astrago_trainer.engines.local.loop import Loop
from astrago_trainer.engines.local.output import Output

Json = dict[str, Any]

CONTAINER = "environment"
"""The name of its log, beside those of containers."""
_REPORTS = 3
"""Descriptor of the process for its reports; see `environments.__main__`."""


class Install:
    """One install that runs. `on_text` gets each report for people; `error` is set before it ends without success."""

    def __init__(
        self, what: Json, output: Output, loop: Loop, on_text: Callable[[str], None]
    ) -> None:
        self.title: str = what["title"]
        self.error = ""
        self._output = output
        self._loop = loop
        self._on_text = on_text
        self._rest = b""
        self._reports, sender = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._reports, False)
        self.pid = os.posix_spawn(
            what["command"][0],
            what["command"],
            {**what["env"], "ASTRAGO_IMAGE": what["image"]},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, output.write, 1),
                (os.POSIX_SPAWN_DUP2, output.write, 2),
                (os.POSIX_SPAWN_DUP2, sender, _REPORTS),
            ],
            setsid=True,
            setsigdef=[signal.SIGINT, signal.SIGHUP, signal.SIGPIPE],
        )
        os.close(sender)
        output.started()
        loop.on_readable(self._reports, self._read)

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGTERM)

    def finish(self) -> None:
        """Its process has ended: read what is left."""
        self._read()
        self._loop.forget(self._reports)
        os.close(self._reports)
        self._output.finish()

    def _read(self) -> None:
        try:
            data = os.read(self._reports, 65536)
        except BlockingIOError:
            return
        if not data:
            self._loop.forget(self._reports)
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            report = json.loads(line)
            self.error = report.get("error", self.error)
            if "text" in report:
                self._on_text(report["text"])
