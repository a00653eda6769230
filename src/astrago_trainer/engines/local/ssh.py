"""The program `ssh` of a job's pods: asks the supervisor to run a command in another pod of the same job.

mpirun starts its processes on other hosts over ssh. Here the hosts are pods on one machine, so neither daemon nor keys
are needed: the command runs as a process of that pod, with our standard streams. Every option is accepted, as all of
them are about a network that is not there. Standard library only.
"""

from __future__ import annotations

import sys
from typing import NoReturn

from astrago_trainer.engines.local.calls import Call

_WITH_VALUE = "BbcDEeFIiJLlmOoPpQRSWw"
_NO_CONNECTION = 255  # as ssh has it


def main() -> NoReturn:
    """`<folder of the job> <words of ssh's command line>`."""
    host, command = parse(sys.argv[2:])
    if not host or not command:
        _leave("expected a host and a command; there is no other way to use it here.")
    try:
        call = Call(sys.argv[1], ["ssh", host, command])
        _, trouble = call.answer().split(" ", 1)
        code = "" if trouble else call.answer()
    except (OSError, ValueError):
        _leave("the supervisor of the job does not answer.")
    if trouble:
        _leave(trouble)
    if not code:
        _leave(f"the connection to {host} was lost.")
    sys.exit(int(code) if int(code) >= 0 else _NO_CONNECTION)


def parse(words: list[str]) -> tuple[str, str]:
    """The host, without a user, and the command for its shell."""
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "--":
        word = rest.pop(0)
        letters = [letter for letter in word[1:] if letter in _WITH_VALUE]
        if letters and word.endswith(letters[0]) and rest:
            rest.pop(0)
    if rest[:1] == ["--"]:
        rest.pop(0)
    return (rest[0].rpartition("@")[2] if rest else ""), " ".join(rest[1:])


def _leave(text: str) -> NoReturn:
    sys.stderr.write(f"ssh: {text}\n")
    sys.exit(_NO_CONNECTION)


if __name__ == "__main__":
    main()
