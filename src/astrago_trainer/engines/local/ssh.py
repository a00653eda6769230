"""The program `ssh` of a job's pods: asks the supervisor to run a command in another pod of the same job.

mpirun starts its processes on other hosts over ssh. Here the hosts are pods on one machine, so neither daemon nor keys
are needed: the command runs as a process of that pod, with our standard streams. Every option is accepted, as all of
them are about a network that is not there. Standard library only.
"""

from __future__ import annotations

import json
import os
import socket
import sys

SOCKET = "ssh.sock"
_WITH_VALUE = "BbcDEeFIiJLlmOoPpQRSWw"
_NO_CONNECTION = 255  # as ssh has it


def main(folder: str) -> None:
    """`folder` is the job's; words of the command line are ssh's."""
    host, command = parse(sys.argv[1:])
    if not host or not command:
        _leave("expected a host and a command; there is no other way to use it here.")
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(address(folder))
            request = json.dumps({"host": host, "command": command}).encode()
            socket.send_fds(connection, [request], [0, 1, 2])
            answer = connection.makefile("r", encoding="utf-8").readline()
        except OSError as error:
            _leave(f"the supervisor of the job does not answer: {error.strerror}")
    if not answer:
        _leave(f"the connection to {host} was lost.")
    told = json.loads(answer)
    if "trouble" in told:
        _leave(told["trouble"])
    sys.exit(told["code"])


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


def address(folder: str) -> str:
    """Short enough for a socket, however long the folder's path is."""
    return f"/proc/self/fd/{os.open(folder, os.O_PATH | os.O_CLOEXEC)}/{SOCKET}"


def _leave(text: str) -> None:
    sys.stderr.write(f"ssh: {text}\n")
    sys.exit(_NO_CONNECTION)
