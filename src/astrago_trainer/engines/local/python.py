"""The program `python` of a warm job: asks the supervisor for a process that has the framework imported already.

It stays in that process's place, for whoever started it: passes signals on, and ends as the other one ends. Whenever
the supervisor cannot or may not, it becomes the real interpreter. It starts with every `python`: it imports little.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # builds no enums
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from astrago_trainer.engines.local.calls import Call

if TYPE_CHECKING:
    from typing import NoReturn

_PASSED_ON = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


def main() -> NoReturn:
    """`<folder of the job> <real interpreter> <words of python's command line>`."""
    folder, real, *words = sys.argv[1:]
    env = [f"{name}={value}" for name, value in os.environ.items()]
    request = ["python", os.getcwd(), str(_umask()), str(len(words)), *words, *env]
    try:
        call = Call(folder, request)
        pid = int(call.answer().split(" ", 1)[0])
    except (OSError, ValueError):
        pid = 0
    if not pid:
        os.execv(real, [real, *words])  # noqa: S606 - a list of words, no shell

    def pass_on(number: int, _: object) -> None:
        with suppress(ProcessLookupError):  # it has ended, and the answer is on its way
            os.killpg(pid, number)

    for number in _PASSED_ON:
        signal.signal(number, pass_on)
    answer = call.answer()
    # Without an answer the supervisor is gone, and it has taken the other process along.
    code = int(answer) if answer else -signal.SIGKILL
    if code < 0:  # it was ended by a signal: so is this one
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


if __name__ == "__main__":
    main()
