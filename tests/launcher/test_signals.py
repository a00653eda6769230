"""Signals reach the training code, and a stop takes as long as that code needs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import textwrap
from pathlib import Path

import pytest

from catalogue.inline import SYSTEM
from catalogue.shells import plain_env, read_until, running
from launcher.common import (
    LAUNCH,
    WAITING,
    command,
    is_dead_within,
    is_running,
    launch,
    program,
    wait_for_death,
)

# Says its number, then dies of whatever comes.
CHILD = """
import os, signal
os.write(1, b"child %d\\n" % os.getpid())
while True:
    signal.pause()
"""


def number_after(word: str, output: str) -> int:
    return int(output.rpartition(f"{word} ")[2].split()[0])


@pytest.fixture
def waiting(tmp_path: Path) -> Path:
    return program(tmp_path, WAITING, "waiting.py")


@pytest.fixture
def child(tmp_path: Path) -> Path:
    return program(tmp_path, CHILD, "child.py")


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("code", [0, 7])
def test_every_process_gets_sigterm_and_its_exit_code_is_kept(count, code, waiting):
    with running(command("--nproc", count, "--", waiting, code), plain_env()) as process:
        for _ in range(count):
            read_until(process, "ready")
        process.send_signal(signal.SIGTERM)
        output = process.stdout.read()
        assert process.wait() == code
    assert output.count("stopping\n") == count


@pytest.mark.req("M11", "M19")
def test_after_the_set_up_script_of_the_runtime_signals_come_through(waiting):
    """As render starts it: bash, which forwards to its child, then the launcher."""
    trainer = {
        "PET_NNODES": "2",
        "PET_NODE_RANK": "1",
        "PET_NPROC_PER_NODE": "2",
        "PET_MASTER_ADDR": "localhost",
        "PET_MASTER_PORT": "29500",
    }
    text = f"source {SYSTEM}/setup_pytorch_env.sh\n\npython {LAUNCH} -- {waiting} 7"
    with running(["bash", "-c", text], plain_env(**trainer)) as process:
        read_until(process, "ready")
        read_until(process, "ready")
        process.send_signal(signal.SIGTERM)
        output = process.stdout.read()
        assert process.wait() == 7
    assert output.count("stopping\n") == 2
    assert re.search(r"launch: rank [23] .* exited with code 7, after SIGTERM", output)


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGTERM, 143),
        (signal.SIGINT, 130),
        (signal.SIGHUP, 129),
        (signal.SIGQUIT, 131),
        (signal.SIGUSR1, 138),
        (signal.SIGUSR2, 140),
    ],
)
def test_a_process_without_a_handler_ends_as_it_would_alone(number, code, child):
    """Python turns SIGINT into an exception, and then dies of the signal all the same."""
    with running(command("--", child), plain_env()) as process:
        read_until(process, "child")
        process.send_signal(number)
        output = process.stdout.read()
        assert process.wait() == code
    assert f"killed by {number.name}" in output


def test_sigterm_reaches_what_a_process_has_started(child):
    words = command("--", "bash", "-c", f"trap 'echo last; exit 5' TERM; python {child} & wait; :")
    with running(words, plain_env()) as process:
        pid = number_after("child", read_until(process, "child"))
        process.send_signal(signal.SIGTERM)
        assert read_until(process, "last")
        wait_for_death(pid)
        assert process.wait() == 5


def test_sigusr1_is_for_the_process_alone(child, tmp_path):
    """A DataLoader's worker has no handler for it, and would die."""
    script = program(
        tmp_path,
        f"""
        import os, signal, subprocess, sys
        other = subprocess.Popen([sys.executable, {str(child)!r}], stdout=subprocess.PIPE)
        other.stdout.readline()
        signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGUSR1}})
        os.write(1, b"ready\\n")
        signal.sigwait({{signal.SIGUSR1}})
        other.terminate()
        print("child ended by", -other.wait())
        """,
    )
    with running(command("--", script), plain_env()) as process:
        read_until(process, "ready")
        process.send_signal(signal.SIGUSR1)
        output = process.stdout.read()
        assert process.wait() == 0
    assert output == f"child ended by {signal.SIGTERM:d}\n"


def test_a_second_signal_is_passed_on_like_the_first(tmp_path):
    """Whoever stops a job may ask again, after a crash say, and must not kill a checkpoint."""
    script = program(
        tmp_path,
        """
        import os, signal, sys
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        os.write(1, b"ready\\n")
        for count in (1, 2, 3):
            signal.sigwait({signal.SIGTERM})
            os.write(1, b"signal %d\\n" % count)
        sys.exit(9)
        """,
    )
    with running(command("--", script), plain_env()) as process:
        read_until(process, "ready")
        for count in (1, 2, 3):
            process.send_signal(signal.SIGTERM)
            read_until(process, f"signal {count}")
        assert process.wait() == 9


# Rank 0 dies of SIGTERM; the others take it as a wish to save, until the test lets them go on.
SAVING = """
    import os, signal, sys
    if os.environ["RANK"] != "0":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    os.write(1, b"rank %s is %d\\n" % (os.environb[b"RANK"], os.getpid()))
    signal.sigwait({signal.SIGTERM} if os.environ["RANK"] != "0" else {signal.SIGHUP})
    os.write(1, b"saving\\n")
    open(sys.argv[1]).read()
    os.write(1, b"saved\\n")
"""


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "gate")
    return tmp_path / "gate"


def read_pids(process: subprocess.Popen[str]) -> list[int]:
    output = read_until(process, "rank ") + read_until(process, "rank ")
    return [number_after(f"rank {rank} is", output) for rank in (0, 1)]


def test_a_stop_from_outside_is_not_hurried(gate, tmp_path):
    """The process that ends first is no failure that the others would be killed for."""
    words = command("--nproc", 2, "--kill-after", 0, "--", program(tmp_path, SAVING), gate)
    with running(words, plain_env()) as process:
        read_pids(process)
        process.send_signal(signal.SIGTERM)
        said = read_until(process, "launch: ")
        gate.write_text("")
        output = said + process.stdout.read()
        assert process.wait() == 143
    assert "rank 0 (local rank 0 on " in said
    assert "was killed by SIGTERM, after SIGTERM from outside." in said
    assert "saved\n" in output


def test_a_stop_and_an_end_at_once_are_a_stop(gate, tmp_path):
    """Some stop the whole tree, and a process may be dead before the launcher has its turn."""
    words = command("--nproc", 2, "--kill-after", 0, "--", program(tmp_path, SAVING), gate)
    with running(words, plain_env()) as process:
        first, _ = read_pids(process)
        process.send_signal(signal.SIGSTOP)
        os.kill(first, signal.SIGTERM)
        wait_for_death(first)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        output = read_until(process, "saving")
        gate.write_text("")
        output += process.stdout.read()
        assert process.wait() == 143
    assert "was killed by SIGTERM, after SIGTERM from outside." in output
    assert "saved\n" in output


def test_a_stop_that_comes_to_a_process_first_is_a_stop(gate, tmp_path):
    words = command("--nproc", 2, "--kill-after", 3, "--", program(tmp_path, SAVING), gate)
    with running(words, plain_env()) as process:
        first, second = read_pids(process)
        os.kill(first, signal.SIGTERM)
        assert "was killed by SIGTERM; ending the other 1." in read_until(process, "launch: ")
        process.send_signal(signal.SIGTERM)
        assert not is_dead_within(second, 3.2)
        gate.write_text("")
        assert process.stdout.read().endswith("saved\n")
        assert process.wait() == 143


STUBBORN = """
    import os, signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(1, b"ready %d\\n" % os.getpid())
    while True:
        signal.pause()
"""


def test_a_grace_ends_what_does_not_stop(tmp_path):
    script = program(tmp_path, STUBBORN)
    with running(command("--grace", 0.1, "--nproc", 2, "--", script), plain_env()) as process:
        read_until(process, "ready")
        read_until(process, "ready")
        process.send_signal(signal.SIGTERM)
        output = process.stdout.read()
        assert process.wait() == 137
    assert "launch: ended with SIGKILL what was left" in output


def test_a_launcher_that_is_killed_takes_everything_along(tmp_path):
    """Whatever they started, and although they ignore SIGTERM."""
    child = program(tmp_path, STUBBORN, "child.py")
    words = command("--nproc", 2, "--", "bash", "-c", f"trap '' TERM HUP; python {child}; :")
    with running(words, plain_env()) as process:
        pids = [number_after("ready", read_until(process, "ready")) for _ in range(2)]
        parents = [int(Path(f"/proc/{pid}/stat").read_text().split()[3]) for pid in pids]
        assert all(map(is_running, pids + parents))
        process.kill()
        for pid in pids + parents:
            wait_for_death(pid)


def test_what_a_process_leaves_behind_ends_with_the_last(tmp_path):
    """As it would in a container. One of them ends long before, and its number stays its own."""
    script = program(
        tmp_path,
        f"""
        import os, subprocess, sys
        stubborn = {textwrap.dedent(STUBBORN)!r}
        if os.environ["RANK"] == "0":
            other = subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE)
            os.write(1, other.stdout.readline())
        else:
            open(sys.argv[1]).read()
        """,
    )
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with running(command("--nproc", 2, "--", script, gate), plain_env()) as process:
        pid = number_after("ready", read_until(process, "ready"))
        gate.write_text("")
        assert process.stdout.read() == ""
        assert process.wait() == 0
        wait_for_death(pid)


def test_a_signal_that_is_ignored_stays_ignored(tmp_path):
    """As under nohup."""
    script = program(
        tmp_path, "import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)"
    )
    for prefix, ignored in (("trap '' HUP; ", "True\n"), ("", "False\n")):
        words = ["bash", "-c", f'{prefix}exec "$@"', "bash", *command("--", script)]
        done = subprocess.run(words, env=plain_env(), capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, ignored)


def test_the_end_of_a_process_is_noticed_though_sigchld_was_ignored():
    words = [
        "bash",
        "-c",
        "trap '' CHLD; exec \"$@\"",
        "bash",
        *command("--", "sh", "-c", "exit 4"),
    ]
    assert subprocess.run(words, env=plain_env(), timeout=60).returncode == 4


def test_each_process_leads_its_own_session(tmp_path):
    """So that an interrupt at the terminal comes once, from the launcher."""
    script = program(tmp_path, "import os; print(os.getsid(0) == os.getpid() == os.getpgrp())")
    assert launch("--nproc", 2, "--", script).stdout == "True\nTrue\n"
