"""The launcher as process 1, as it is in a container whose command it is."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess

import pytest

from catalogue.shells import plain_env, read_until, running
from launcher.common import WAITING, command, only_child, program


@pytest.fixture(scope="module")
def container() -> list[str]:
    """The command that makes what follows process 1 of something, with a /proc of its own."""
    for options in ([], ["--user", "--map-root-user"]):
        words = ["unshare", *options, "--pid", "--mount-proc", "--fork", "--kill-child"]
        if shutil.which("unshare"):
            tried = subprocess.run([*words, "true"], capture_output=True)
            if tried.returncode == 0:
                return words
    pytest.skip("no new process namespace on this machine")


@pytest.mark.parametrize("count", [1, 2])
def test_it_passes_signals_on_though_the_kernel_gives_it_no_defaults(count, container, tmp_path):
    script = program(tmp_path, WAITING)
    words = [*container, *command("--nproc", count, "--", script, 7)]
    with running(words, plain_env()) as process:
        for _ in range(count):
            read_until(process, "ready")
        os.kill(only_child(process.pid), signal.SIGTERM)
        output = process.stdout.read()
        assert process.wait() == 7
    assert output.count("stopping\n") == count


def test_it_reaps_what_lost_its_parent(container, tmp_path):
    """Fifty processes whose parent is gone end, and none stays as a zombie; then ours ends too."""
    script = program(
        tmp_path,
        """
        import os, pathlib, subprocess, sys, time

        def names(state):
            found = []
            for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
                try:
                    text = path.read_text()
                except (FileNotFoundError, ProcessLookupError):
                    continue
                if text.rpartition(")")[2].split()[0] == state:
                    found.append(text)
            return found

        reading, writing = os.pipe()
        for _ in range(50):
            if os.fork() == 0:
                if os.fork() == 0:  # its parent ends now, so that process 1 gets it
                    os.close(writing)
                    os.read(reading, 1)  # until all of them may end at once
                    os._exit(3)
                os._exit(0)
        for _ in range(50):
            os.wait()
        assert os.getppid() == 1
        children = pathlib.Path("/proc/1/task/1/children")
        print("children", len(children.read_text().split()), flush=True)
        os.close(writing)
        deadline = time.monotonic() + 30
        while len(children.read_text().split()) > 1:
            assert time.monotonic() < deadline, names("Z")
            os.sched_yield()
        print("left", len(children.read_text().split()), "zombies", len(names("Z")))
        sys.exit(5)
        """,
    )
    with running([*container, *command("--", script)], plain_env()) as process:
        output = process.stdout.read()
        assert process.wait() == 5
    assert output.startswith("children 51\nleft 1 zombies 0\n")


def test_the_end_of_an_orphan_is_not_the_end_of_a_process_of_ours(container, tmp_path):
    """Not even one that fails, and not for the first cause."""
    script = program(
        tmp_path,
        """
        import os
        if os.environ["RANK"] == "0":
            reading, writing = os.pipe()
            if os.fork() == 0:
                if os.fork() == 0:
                    while os.getppid() != 1:
                        os.sched_yield()
                    os.write(writing, b"%d" % os.getpid())
                    os.kill(os.getpid(), 9)
                os._exit(0)
            os.wait()
            orphan = int(os.read(reading, 10))
            while os.path.exists("/proc/%d" % orphan):  # until it is reaped
                os.sched_yield()
        print("trained")
        """,
    )
    with running([*container, *command("--nproc", 2, "--", script)], plain_env()) as process:
        output = process.stdout.read()
        assert process.wait() == 0
    assert output == "trained\ntrained\n"


def test_a_process_that_fails_ends_the_others_and_is_the_cause(container, tmp_path):
    shell = 'if [ "$RANK" = 1 ]; then kill -9 $$; fi; exec sleep 1000'
    words = [*container, *command("--nproc", 3, "--", "bash", "-c", shell)]
    with running(words, plain_env()) as process:
        output = process.stdout.read()
        assert process.wait() == 137
    assert "launch: rank 1 " in output
    assert "ending the other 2." in output
