"""One process fails: the others end, and the first cause is what remains."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from catalogue.shells import plain_env, read_until, run, running
from launcher.common import LAUNCH, command, launch, message, program, wait_for_death
from launcher.test_signals import STUBBORN, number_after

FAILING = """
    import os, signal, sys
    def train():
        raise ValueError(f"rank {os.environ['RANK']} has no data")
    if os.environ["RANK"] == "1":
        train()
    signal.pause()
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "message"


@pytest.mark.parametrize(
    ("text", "code", "name", "said"),
    [
        ("exit 3", 3, None, "exited with code 3"),
        ("exit 255", 255, None, "exited with code 255"),
        ("kill -9 $$", 137, "SIGKILL", "was killed by SIGKILL (often that is the memory limit)"),
        ("kill -SEGV $$", 139, "SIGSEGV", "was killed by SIGSEGV"),
        ("kill -ABRT $$", 134, "SIGABRT", "was killed by SIGABRT"),
        ("kill -40 $$", 168, "signal 40", "was killed by signal 40"),
    ],
)
@pytest.mark.parametrize("count", [1, 3])
def test_the_code_is_the_first_causes(text, code, name, said, count, place):
    """The others end with 143, which must not be taken for it."""
    last = count - 1
    shell = f'if [ "$RANK" = {last} ]; then {text}; fi; exec sleep 1000'
    env = {"ASTRAGO_TERMINATION_LOG": str(place)}
    done = launch("--nproc", count, "--", "bash", "-c", shell, **env)
    assert done.returncode == code
    others = f"; ending the other {last}" if last else ""
    host = os.uname().nodename
    assert done.stderr == f"launch: rank {last} (local rank {last} on {host}) {said}{others}.\n"
    cause, words = message(place)
    assert 0 <= time.time() - cause.pop("time") < 60
    assert cause == {
        "rank": last,
        "local_rank": last,
        "host": host,
        "exit_code": code,
        "signal": name,
        "stopped_by": None,
    }
    assert words == f"rank {last} (local rank {last} on {host}) {said}.\n"


def test_the_message_has_the_traceback_and_the_rank_in_the_job(place, tmp_path):
    script = program(tmp_path, FAILING.replace('"1"', '"5"'))
    env = {
        "PET_NNODES": "3",
        "PET_NODE_RANK": "2",
        "PET_NPROC_PER_NODE": "2",
        "PET_MASTER_ADDR": "127.0.0.1",
        "ASTRAGO_TERMINATION_LOG": str(place),
    }
    done = launch("--", script, **env)
    assert done.returncode == 1
    cause, words = message(place)
    assert (cause["rank"], cause["local_rank"], cause["exit_code"]) == (5, 1, 1)
    lines = words.splitlines()
    assert lines[0].endswith("exited with code 1.")
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[-1] == "ValueError: rank 5 has no data"
    assert "\n".join(lines[1:]) in done.stderr


def test_all_else_that_was_written_stays_where_it_was(place, tmp_path):
    """A single process whose standard error is a file writes it itself, and it is read back."""
    script = program(
        tmp_path,
        """
        import sys
        for number in range(3):
            print("out", number, flush=True)
            print("err", number, file=sys.stderr)
        raise ValueError("new")
        """,
    )
    log = tmp_path / "log"
    log.write_text("Traceback (most recent call last):\nValueError: of an earlier run\n")
    with log.open("a") as output:
        env = plain_env(ASTRAGO_TERMINATION_LOG=str(place))
        words = command("--", script)
        assert os.waitstatus_to_exitcode(wait_for(words, env, output.fileno())) == 1
    lines = log.read_text().splitlines()
    assert lines[2:8] == [f"{word} {number}" for number in range(3) for word in ("out", "err")]
    assert message(place)[1].endswith("ValueError: new\n")
    # And where nothing was written, nothing of before is told.
    with log.open("a") as output:
        wait_for(command("--", "bash", "-c", "exit 2"), env, output.fileno())
    assert message(place)[1].endswith("exited with code 2.\n")


def wait_for(words: list[str], env: dict[str, str], output: int) -> int:
    both = [(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)]
    return os.waitpid(os.posix_spawn(words[0], words, env, file_actions=both), 0)[1]


def test_the_traceback_is_that_of_the_process_that_failed(place, tmp_path):
    """Not that of another, which wrote one and goes on."""
    script = program(
        tmp_path,
        """
        import os, signal, sys, traceback
        if os.environ["RANK"] == "0":
            open(sys.argv[1]).read()
            raise KeyError("the cause")
        try:
            raise ValueError("of no importance")
        except ValueError:
            traceback.print_exc()
        open(sys.argv[1], "w").close()
        signal.pause()
        """,
    )
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    words = ["--nproc", 2, "--", script, gate]
    done = launch(*words, ASTRAGO_TERMINATION_LOG=str(place))
    assert done.returncode == 1
    assert "of no importance" in done.stderr
    assert message(place)[1].endswith("KeyError: 'the cause'\n")
    assert "of no importance" not in message(place)[1]


def test_of_several_that_died_the_first_is_the_cause(place, tmp_path):
    """Though the launcher was not there to see it, on a machine with too much to do."""
    script = program(tmp_path, STUBBORN.replace("ready", "rank %s").replace(
        "% os.getpid()", '% (os.environb[b"RANK"], os.getpid())'
    ))  # fmt: skip
    env = plain_env(ASTRAGO_TERMINATION_LOG=str(place))
    with running(command("--nproc", 3, "--", script), env) as process:
        output = "".join(read_until(process, "rank") for _ in range(3))
        pids = [number_after(f"rank {rank}", output) for rank in range(3)]
        process.send_signal(signal.SIGSTOP)
        for rank in (2, 0, 1):
            os.kill(pids[rank], signal.SIGKILL if rank == 2 else signal.SIGILL)
            wait_for_death(pids[rank])
        process.send_signal(signal.SIGCONT)
        assert process.wait() == 137
    assert message(place)[0]["rank"] == 2


def test_a_process_that_ignores_sigterm_is_killed(tmp_path):
    stubborn = program(tmp_path, STUBBORN, "stubborn.py")
    shell = f'if [ "$RANK" = 1 ]; then exec python {stubborn}; fi; read -r line < {tmp_path}/gate'
    os.mkfifo(tmp_path / "gate")
    words = command("--nproc", 2, "--kill-after", 0.1, "--", "bash", "-c", f"{shell}; exit 6")
    with running(words, plain_env()) as process:
        pid = number_after("ready", read_until(process, "ready"))
        (tmp_path / "gate").write_text("\n")
        output = process.stdout.read()
        assert process.wait() == 6
        wait_for_death(pid)
    assert "launch: ended with SIGKILL what was left" in output


def test_the_others_may_end_well(tmp_path, place):
    """SIGTERM is a wish: who saves and exits with 0 has not failed, and the job has."""
    script = program(
        tmp_path,
        """
        import os, signal, sys
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        gate = os.open(sys.argv[1], os.O_RDWR)
        if os.environ["RANK"] == "0":
            sys.exit(8 if os.read(gate, 1) + os.read(gate, 1) == b"xx" else 9)
        os.write(gate, b"x")
        signal.sigwait({signal.SIGTERM})
        print("saved")
        """,
    )
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    done = launch("--nproc", 3, "--", script, gate, ASTRAGO_TERMINATION_LOG=str(place))
    assert (done.returncode, done.stdout) == (8, "saved\nsaved\n")


def test_a_stop_is_told_as_a_stop(place, tmp_path):
    script = program(tmp_path, "import os, signal; os.write(1, b'ready\\n'); signal.pause()")
    env = plain_env(ASTRAGO_TERMINATION_LOG=str(place))
    with running(command("--", script), env) as process:
        read_until(process, "ready")
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 143
    cause, words = message(place)
    assert (cause["signal"], cause["stopped_by"]) == ("SIGTERM", "SIGTERM")
    assert "was killed by SIGTERM, after SIGTERM from outside.\n" in words


def test_a_good_end_leaves_no_message(place, tmp_path):
    script = program(tmp_path, "import sys; print('fine', file=sys.stderr)")
    done = launch("--nproc", 2, "--", script, ASTRAGO_TERMINATION_LOG=str(place))
    assert (done.returncode, done.stderr) == (0, "fine\nfine\n")
    assert not place.exists()


def test_a_message_that_cannot_be_written_changes_nothing(tmp_path):
    env = {"ASTRAGO_TERMINATION_LOG": str(tmp_path / "no" / "such" / "folder")}
    done = launch("--", "bash", "-c", "echo out; echo err >&2; exit 3", **env)
    assert (done.returncode, done.stdout) == (3, "out\n")
    assert done.stderr.splitlines()[0] == "err"


@pytest.mark.parametrize("size", [10, 3000, 100_000])
@pytest.mark.parametrize("depth", [1, 400])
def test_a_long_traceback_fits_and_keeps_both_ends(size, depth, place, tmp_path):
    script = program(
        tmp_path,
        f"""
        import sys
        class OddError(Exception): pass
        def a(n): b(n)
        def b(n): a(n - 1) if n else c()
        def c(): raise OddError("é" * {size})
        try: a({depth})
        except OddError: raise
        finally: sys.stderr.flush()
        """,
    )
    done = launch("--", script, ASTRAGO_TERMINATION_LOG=str(place))
    assert done.returncode == 1
    assert place.stat().st_size <= 4096
    words = message(place)[1]
    assert "OddError: é" in words
    assert "in c" in words
    assert "�" not in words


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        (b"", b""),
        (b"one\ntwo\n", b"one\ntwo"),
        (b"10%\r20%\rlast", b"10%\n20%\nlast"),
        (b"\n".join(b"%d" % n for n in range(100)), b"\n".join(b"%d" % n for n in range(80, 100))),
        (
            b"[rank3]: Traceback (most recent call last):\n[rank3]:   File x\n[rank3]: E: y\n",
            b"Traceback (most recent call last):\n  File x\nE: y",
        ),
        (
            b"Traceback (most recent call last):\nA: first\n\nDuring handling\n\n"
            b"Traceback (most recent call last):\n  File x\nB: second\nwarning: later",
            b"Traceback (most recent call last):\n  File x\nB: second\nwarning: later",
        ),
        (
            b"noise\n  + Exception Group Traceback (most recent call last):\n  | File x\n",
            b"  + Exception Group Traceback (most recent call last):\n  | File x",
        ),
        (b"\xff\xfe broken", "�� broken".encode()),
    ],
)
def test_the_last_words_are_the_last_traceback_or_the_last_lines(tail, expected):
    program = f"import sys; sys.path.insert(0, {str(LAUNCH.parent)!r}); import launch; import os; "
    done = run(
        [sys.executable, "-B", "-c", f"{program}os.write(1, launch.last_words({tail!r}, 4000))"],
        plain_env(),
    )
    assert done.stdout.encode() == expected
