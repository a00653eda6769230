"""Runs a shell as a child and passes every signal on to it: `docs/decisions/0011-*`.

usage: python forward.py [--own-traps] shell [argument ...]

A shell checks its traps and then waits for its child; a signal in between is lost. Here all signals
are blocked and taken one by one, so each is either waiting or taken. The exit code is the child's
own, 128+n after signal n; what it leaves in its process group is killed, as a container's end does.

A shell between two commands may act on a signal after the second one only. So what it starts after
a stop gets the stop too; what the training starts while it stops does not. With --own-traps the
shell has traps of its own: what these start is meant, and left alone.
"""

from __future__ import annotations

# Not `signal`: it builds enums for 4 ms, half of what this program takes.
import _signal as signal
import os
import sys

STOPS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}  # for the whole group
NOTES = {signal.SIGUSR1, signal.SIGUSR2}  # for the shell, or what it became by `exec`, alone
TAKEN = {*STOPS, *NOTES, signal.SIGCHLD}
CHECK_SECONDS = 0.1


def main(words: list[str]) -> int:
    has_own_traps = words[:1] == ["--own-traps"]
    words = words[has_own_traps:]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, TAKEN)
    child = start(words, mask)
    shell = b"".join(os.fsencode(word) + b"\0" for word in words)
    before = command_of(os.getpid())  # the child has it too, until it is the shell
    stop, informed = 0, set()
    while True:
        number = take(CHECK_SECONDS if stop else None)
        if number == signal.SIGCHLD:
            code = end_of(child)
            if code is not None:
                attempt(os.killpg, child, signal.SIGKILL)
                return code
        elif number in NOTES:
            attempt(os.kill, child, number)
        elif number in STOPS:
            is_program = command_of(child) not in (before, shell)
            stop = 0 if is_program or has_own_traps else number
            informed = {identity for identity, _ in members(child)}
            attempt(os.killpg, child, number)
        elif command_of(child) != shell:  # it has become a program, which did not get the stop
            attempt(os.kill, child, stop)
            stop = 0
        else:
            late = newcomers(child, informed)
            informed |= late
            for identity in late:
                attempt(os.kill, identity[0], stop)


def start(words: list[str], mask: set[int]) -> int:
    """Start the shell in a process group of its own, with the signals as they were here."""
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if ignored, the child's code would be gone
    child = os.fork()
    if child:
        attempt(os.setpgid, child, child)  # here too: a signal may come before the child does it
        return child
    os.setpgid(0, 0)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        os.execvp(words[0], words)
    except OSError as error:
        os.write(2, f"forward: {words[0]}: {error.strerror}\n".encode())
    os._exit(127)


def take(seconds: float | None) -> int:
    """Give the next signal, or 0 after so many seconds."""
    if seconds is None:
        return signal.sigwait(TAKEN)
    info = signal.sigtimedwait(TAKEN, seconds)
    return info.si_signo if info else 0


def attempt(call, target: int, value: int) -> None:
    try:
        call(target, value)
    except OSError:  # the process has ended, or does not need it any more
        return


def end_of(child: int) -> int | None:
    """Give the exit code if it has ended. As process 1, reap what others have left."""
    while True:
        end = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if end is None:
            return None
        if end.si_pid == child:  # not reaped: its number still names the group
            return end.si_status + (0 if end.si_code == os.CLD_EXITED else 128)
        os.waitpid(end.si_pid, 0)


def command_of(pid: int) -> bytes:
    """Give its command line, which is another after an `exec`; none of a process that has ended."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def members(group: int):
    """Give (pid, start, place of the stack: another after an `exec`) and parent of each process."""
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[2]) == group:
            yield (int(name), fields[19], fields[25]), int(fields[1])


def newcomers(shell: int, informed: set) -> set:
    """Give the processes that the shell started after the stop, and those that these started."""
    left, late, parents = set(members(shell)), set(), {shell}
    while True:
        more = {each for each in left if each[1] in parents and each[0] not in informed}
        if not more:
            return late
        left -= more
        late |= {identity for identity, _ in more}
        parents = {identity[0] for identity in late}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
