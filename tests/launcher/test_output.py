"""What processes write arrives whole, in order, and as soon as they write it."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import termios
import time
from array import array
from pathlib import Path

import pytest

from catalogue.shells import plain_env, running
from launcher.common import command, launch, piped, program, wait_for_death

MANY = """
    import os
    rank = os.environb[b"RANK"]
    line = b"rank %s " + b"x" * 990 + b" %08d\\n"
    for first in range(0, 50_000, 500):
        os.write(2, b"".join(line % (rank, number) for number in range(first, first + 500)))
"""


@pytest.mark.parametrize("count", [1, 2])
def test_100_mb_of_standard_error_arrive_whole(count, tmp_path):
    """With a termination message to fill, so that a single process has a pipe as well."""
    lines = 100_000 // count
    script = program(tmp_path, MANY.replace("50_000", str(lines)))
    words = command("--nproc", count, "--", script)
    following = [0] * count
    size = 0
    with piped(words, ASTRAGO_TERMINATION_LOG=str(tmp_path / "message")) as process:
        memory = Path(f"/proc/{process.pid}/status")
        for line in process.stderr:
            size += len(line)
            assert len(line) == 1007, line
            rank, number = int(line[5:6]), int(line[-9:])
            assert number == following[rank]
            following[rank] += 1
            if following[rank] == lines // 2:
                peak = int(re.search(r"VmHWM:\s*(\d+) kB", memory.read_text())[1])
        assert process.wait() == 0
    assert following == [lines] * count
    assert size > 100_000_000
    assert peak < 50_000, "the launcher must not keep what passes"


def test_standard_output_is_not_touched(tmp_path):
    """The process has the very pipe; its standard error too where nobody needs it here."""
    script = program(
        tmp_path, "import os; print(os.environ['RANK'], os.fstat(1).st_ino, os.fstat(2).st_ino)"
    )
    for count in (1, 2):
        with piped(command("--nproc", count, "--", script)) as process:
            pipes = [os.fstat(end.fileno()).st_ino for end in (process.stdout, process.stderr)]
            lines = sorted(process.stdout.read().decode().splitlines())
        for rank, line in enumerate(lines):
            found = [int(word) for word in line.split()]
            assert found[:2] == [rank, pipes[0]]
            assert (found[2] == pipes[1]) == (count == 1)


def test_one_process_writes_both_streams_in_its_own_order(tmp_path):
    script = program(
        tmp_path,
        """
        import os
        for number in range(1000):
            os.write(1 + number % 2, b"%d\\n" % number)
        """,
    )
    with running(command("--", script), plain_env()) as process:
        assert process.stdout.read() == "".join(f"{number}\n" for number in range(1000))
        assert process.wait() == 0


def test_lines_stay_whole_though_they_are_written_in_pieces(tmp_path):
    """Unbuffered, as in our runtimes, Python writes a line of `print` in several pieces."""
    script = program(
        tmp_path,
        """
        import os
        for number in range(2000):
            for piece in (b"rank ", os.environb[b"RANK"], b" line ", b"%d" % number, b"\\n"):
                os.write(2, piece)
        """,
    )
    lines = launch("--nproc", 3, "--", script).stderr.splitlines()
    expected = [f"rank {rank} line {number}" for rank in range(3) for number in range(2000)]
    assert sorted(lines) == sorted(expected)
    for rank in range(3):
        assert [line for line in lines if line.startswith(f"rank {rank}")] == expected[
            rank * 2000 : (rank + 1) * 2000
        ]


@pytest.mark.parametrize("count", [1, 2])
def test_a_line_without_an_end_arrives_all_the_same(count, tmp_path):
    script = program(
        tmp_path,
        """
        import os
        if os.environ["RANK"] == "0":
            os.write(2, b"How many? ")
            os.write(1, os.read(0, 10))
        """,
    )
    words = command("--nproc", count, "--", script)
    with piped(words, ASTRAGO_TERMINATION_LOG=str(tmp_path / "message")) as process:
        assert os.read(process.stderr.fileno(), 100) == b"How many? "
        output, rest = process.communicate(b"three")
    assert (output, rest, process.returncode) == (b"three", b"", 0)


def test_a_progress_bar_is_seen_line_by_line(tmp_path):
    """Its lines end with a carriage return; nothing has to wait for the newline at its end."""
    script = program(
        tmp_path,
        """
        import os
        if os.environ["RANK"] == "0":
            os.write(2, b" 10%\\r 20%")
            os.read(0, 10)
            os.write(2, b" 30%\\n")
        """,
    )
    with piped(command("--nproc", 2, "--", script)) as process:
        assert os.read(process.stderr.fileno(), 100) == b" 10%\r"
        assert os.read(process.stderr.fileno(), 100) == b" 20%"
        _, rest = process.communicate(b"on")
    assert rest == b" 30%\n"


def test_the_rank_can_be_written_before_every_line(tmp_path):
    script = program(
        tmp_path,
        """
        import os, sys
        print("one\\ntwo\\n\\nthree", flush=True)
        sys.stderr.write("four\\nfive, unfinished")
        """,
    )
    done = launch("--prefix", "--nproc", 2, "--", script)
    assert done.returncode == 0
    for rank in range(2):
        start = f"[rank {rank}] "
        own = [line[len(start) :] for line in done.stdout.splitlines() if line.startswith(start)]
        assert own == ["one", "two", "", "three"]
        own = [line[len(start) :] for line in done.stderr.splitlines() if line.startswith(start)]
        assert own == ["four", "five, unfinished"]
    assert len(done.stdout.splitlines()) == 8
    assert len(done.stderr.splitlines()) == 4


def wait_until_full(fd: int) -> None:
    """Until there is no room for another page in a pipe that nobody reads."""
    deadline = time.monotonic() + 30
    held = array("i", [0])
    size = fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ)
    while held[0] <= size - 4096:
        assert time.monotonic() < deadline, f"the pipe holds {held[0]} of {size} bytes"
        os.sched_yield()
        fcntl.ioctl(fd, termios.FIONREAD, held)


FLOODING = """
    import os, signal, threading
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    os.write(1, b"%d\\n" % os.getpid())
    def write():
        while True:
            os.write(2, b"x" * 1023 + b"\\n")
    threading.Thread(target=write, daemon=True).start()
    signal.sigwait({signal.SIGTERM})
    os.write(1, b"stopping\\n")
"""


def test_a_reader_that_does_not_read_keeps_no_signal_from_anybody(tmp_path):
    script = program(tmp_path, FLOODING + "    os._exit(5)\n")
    with piped(command("--nproc", 2, "--", script)) as process:
        assert int(process.stdout.readline()) != int(process.stdout.readline())
        wait_until_full(process.stderr.fileno())
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() + process.stdout.readline() == b"stopping\nstopping\n"
        rest = process.stderr.read()
        assert process.wait() == 5
    assert rest.count(b"launch: ") == 1
    assert {len(line) for line in rest.splitlines() if b"launch" not in line} == {1023}
    assert len(rest) < 1_000_000, "what nobody reads must wait in the pipes"


def test_a_reader_that_does_not_read_puts_off_no_deadline(tmp_path):
    script = program(tmp_path, FLOODING + "    threading.Event().wait()\n")
    with piped(command("--nproc", 2, "--grace", 0.5, "--", script)) as process:
        pids = [int(process.stdout.readline()) for _ in range(2)]
        wait_until_full(process.stderr.fileno())
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() + process.stdout.readline() == b"stopping\nstopping\n"
        # Room for a little only: who began to write more would wait for the rest of the room.
        assert len(os.read(process.stderr.fileno(), 4096)) == 4096
        for pid in pids:
            wait_for_death(pid)
        process.stderr.read()
        assert process.wait() == 137


@pytest.mark.parametrize("code", [0, 1])
def test_what_a_process_wrote_just_before_its_end_is_not_lost(code, tmp_path):
    """Though it is dead before the launcher has read a byte, and its pipe holds more than one read."""
    script = program(
        tmp_path,
        f"""
        import fcntl, os, sys
        fcntl.fcntl(2, 1031, 1 << 20)  # F_SETPIPE_SZ
        os.write(1, b"%d\\n" % os.getpid())
        os.read(0, 1)
        os.write(2, (b"x" * 1023 + b"\\n") * 600)
        if {code}:
            raise ValueError("last words")
        """,
    )
    place = tmp_path / "message"
    with piped(command("--", script), ASTRAGO_TERMINATION_LOG=str(place)) as process:
        pid = int(process.stdout.readline())
        process.send_signal(signal.SIGSTOP)
        process.stdin.write(b"x")
        process.stdin.flush()
        wait_for_death(pid)
        process.send_signal(signal.SIGCONT)
        output = process.stderr.read()
        assert process.wait() == code
    assert output.count(b"x" * 1023 + b"\n") == 600
    assert place.exists() == (b"ValueError: last words\n" in output) == (code == 1)
    if code:
        assert place.read_text().endswith("ValueError: last words\n")


def test_a_reader_that_goes_away_stops_no_training(tmp_path):
    script = program(
        tmp_path,
        """
        import os
        for _ in range(1000):
            os.write(2, b"x" * 1023 + b"\\n")
        print("trained on")
        """,
    )
    with piped(command("--nproc", 2, "--", script)) as process:
        assert os.read(process.stderr.fileno(), 1)
        process.stderr.close()
        assert process.stdout.read() == b"trained on\ntrained on\n"
        assert process.wait() == 0


def test_one_that_escaped_and_goes_on_writing_does_not_keep_the_launcher(tmp_path):
    script = program(
        tmp_path,
        """
        import os
        reading, writing = os.pipe()
        if os.environ["RANK"] == "0" and os.fork() == 0:
            os.setsid()
            os.close(1)
            os.write(writing, b"escaped")
            while True:
                try:
                    os.write(2, b"still here\\n")
                except BrokenPipeError:
                    os._exit(0)
        if os.environ["RANK"] == "0":
            os.read(reading, 1)
        """,
    )
    with running(command("--nproc", 2, "--", script), plain_env()) as process:
        assert set(process.stdout.read().splitlines()) <= {"still here"}
        assert process.wait() == 0


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_closed_streams_are_no_trap(closed, tmp_path):
    """Else a pipe of the launcher's would get the number of a standard stream."""
    place = tmp_path / "place"
    script = program(
        tmp_path, f"open({str(place)!r} + __import__('os').environ['RANK'], 'w').write('done')"
    )
    words = ["bash", "-c", f'exec "$@" {closed}', "bash", *command("--nproc", 2, "--", script)]
    assert subprocess.run(words, env=plain_env(), capture_output=True, timeout=60).returncode == 0
    assert [Path(f"{place}{rank}").read_text() for rank in range(2)] == ["done", "done"]
