"""Processes forked from an interpreter with imports done: nothing tells them from fresh ones."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import pytest
from tests.engines.jobs import a_handle, effective, log, until, until_over

from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.engines.local.engine import LocalEngine
from astrago_trainer.engines.local.folder import identity
from astrago_trainer.engines.local.plan import Images

PROGRAMS = str(Path(sys.executable).parent)
MODULES = "decimal,fractions"
ONCE = {"pod": {"restartPolicy": "Never"}, "job": {"backoffLimit": 0}}


@pytest.fixture(params=["view", "plain"])
def isolation(request):
    return request.param


def run(tmp_path, isolation, script, *, warm=MODULES, meanwhile=None, **job):
    """How it ended, its log and its events; the pool was ready when it came."""

    async def scenario():
        images = Images(PROGRAMS)
        engine = LocalEngine(tmp_path / "data", isolation=isolation, images=images, warm=warm)
        handle = a_handle()
        try:
            if engine.pool is not None:
                await engine.pool.warm_up(PROGRAMS)
            await engine.apply(handle, effective(script.replace("$", "$$"), **ONCE, **job))
            if meanwhile is not None:
                await meanwhile(engine, handle)
            seen = await until_over(engine, handle)
            return seen, log(engine.folder(handle).path), engine.pool and engine.pool.describe()
        finally:
            if engine.pool is not None:
                await engine.pool.close()

    return asyncio.run(scenario())


def events(seen) -> list[str]:
    return [f"{event.reason}: {event.message}" for event in seen.events]


SAME = {
    "arguments, name and file": "import sys; print(sys.argv, __name__, __file__, sys.path[0])",
    "exit code": "import sys; sys.exit(3)",
    "text as exit code": "import sys; sys.exit('it went wrong')",
    "exception": "def f():\n    raise ValueError('no')\nf()",
    "syntax": "def f(:\n",
    "killed": "import os; os.kill(os.getpid(), 9)",
    "exit handlers and buffers": "import atexit; atexit.register(print, 'bye'); print('x', end='')",
    "threads end first": "import threading\nthreading.Thread(target=lambda: print('t')).start()",
    "closed output": "import os; os.close(1); print('lost')",
    "own packages": "import sys; print([m for m in sys.modules if 'astrago' in m])",
    "standard streams": "import sys; print(sys.stdin.read(), sys.stdout.encoding, sys.stderr.errors)",
    "descriptors": "import os; print(sorted(os.listdir('/proc/self/fd'))[:3])",
    "signals": "import signal as s; print([s.getsignal(n) for n in (1, 2, 10, 12, 13, 15, 17)])",
    "mask and folder": "import os; print(oct(os.umask(0)), os.getcwd())",
    "environment": "import os; print(sorted(k for k in os.environ if 'WARM' not in k))",
    "pickle of the main module": (
        "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))).__module__)"
    ),
    "multiprocessing": (
        "import multiprocessing as m\ndef f(x): return x + 1\n"
        "if __name__ == '__main__':\n"
        "    for how in ('fork', 'spawn'):\n"
        "        with m.get_context(how).Pool(2) as pool: print(pool.map(f, [1, 2]))"
    ),
    "subprocess": "import subprocess as s, sys; print(s.run([sys.executable, '-c', 'exit(5)']).returncode)",
    "limits": "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))",
}


def test_a_fork_does_what_a_fresh_interpreter_does(tmp_path, isolation):
    script = "umask 027; ulimit -n 500; echo from-input > in\n"
    for number, (what, text) in enumerate(SAME.items()):
        script += f"cat > s{number}.py <<'END'\n{text}\nEND\n"
        script += f"echo '== {what}'; python s{number}.py a 'b c' < in; echo code $?\n"
    script += "echo 'print(__name__)' > mod.py; python -m mod; python no.py; echo code $?\n"
    script += "python -u s0.py < in\n"
    (tmp_path / "cold").mkdir()
    (tmp_path / "warm").mkdir()
    cold, expected, _ = run(tmp_path / "cold", isolation, script, warm="")
    warm, found, _ = run(tmp_path / "warm", isolation, script)

    assert cold.phase is warm.phase is Phase.COMPLETE
    assert f"Warm: processes begin with {MODULES} imported" in events(warm)
    assert plain(found) == plain(expected)


def plain(text: str) -> list[str]:
    """Without what differs between any two runs, and between any two programs called python."""
    text = re.sub(r"/\S*/(?=s\d+\.py)|/\S*/(?=no\.py)", "", text)
    text = re.sub(r"\S*python\S*: can't", "python: can't", text)
    text = re.sub(r"'/[^']*/node'|/\S*/node\b", "FOLDER", text)
    return re.sub(r"(line \d+:) +\d+ ", r"\1 PID ", text).splitlines()


def test_the_modules_are_there_and_random_numbers_differ(tmp_path, isolation):
    script = (
        "echo 'import sys, random; print(\"decimal\" in sys.modules, random.random())' > a.py;"
        "python a.py; python a.py"
    )
    _, text, _ = run(tmp_path, isolation, script)
    (one, first), (two, second) = (line.split() for line in text.splitlines())
    assert (one, two) == ("True", "True")
    assert first != second


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("PYTHONHASHSEED=1 python a.py", "variable PYTHONHASHSEED"),
        ("LD_PRELOAD= python a.py", "variable LD_PRELOAD"),
        ("python -O a.py", "option -O"),
        ("python -c 'print(1)'", "option -c"),
        ("echo 'print(1)' | python -", "option -"),
    ],
)
def test_what_a_fork_cannot_give_starts_a_fresh_interpreter(tmp_path, command, reason):
    seen, text, _ = run(tmp_path, "view", f"echo 'print(1)' > a.py; {command}")
    assert text == "1\n"
    assert f"Cold: a fresh interpreter is started: {reason}" in events(seen)


def test_signals_reach_the_fork_and_its_end_reaches_the_shell(tmp_path, isolation):
    script = """
cat > a.py <<'END'
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
signal.signal(signal.SIGUSR1, lambda *_: print("usr1", flush=True))
open("ready", "w").close()
while True: time.sleep(1)
END
python a.py & child=$!
until [ -e ready ]; do sleep 0.01; done
kill -USR1 $child; sleep 0.1; kill -TERM $child; wait $child; echo code $?
"""
    _, text, _ = run(tmp_path, isolation, script)
    assert text == "usr1\ncode 7\n"


@pytest.mark.parametrize("victim", ["fork", "its stand-in"])
def test_a_kill_of_either_ends_both(tmp_path, isolation, victim):
    script = f"""
cat > a.py <<'END'
import os, time
open("pid", "w").write(str(os.getpid()))
time.sleep(1000)
END
python a.py & child=$!
until [ -s pid ]; do sleep 0.01; done
kill -9 {"$(cat pid)" if victim == "fork" else "$child"}
wait $child; echo code $?
while kill -0 $(cat pid) 2>/dev/null; do sleep 0.01; done; echo gone
"""
    _, text, _ = run(tmp_path, isolation, script)
    assert "code 137\ngone\n" in text


def test_a_stop_ends_forks_and_what_they_started(tmp_path, isolation):
    script = """
cat > a.py <<'END'
import os, time
if os.fork() == 0: os.setsid()
open(f"ready{os.getpid()}", "w").close()
time.sleep(1000)
END
python a.py
"""

    async def scenario():
        images = Images(PROGRAMS)
        engine = LocalEngine(tmp_path / "data", isolation=isolation, images=images, warm=MODULES)
        handle = a_handle()
        await engine.pool.warm_up(PROGRAMS)
        pods = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0}
        await engine.apply(handle, effective(script, pod=pods))
        scratch = Path(engine.folder(handle).pod(0, "job-node-0-0")) / "node"
        ready = lambda _: len(list(scratch.glob("ready*"))) == 2  # noqa: E731
        await until(engine, handle, ready)
        processes = children_of_zygote(engine)
        await engine.pool.close()
        await engine.stop(handle)
        return processes

    processes = asyncio.run(scenario())
    assert processes
    assert [pid for pid in processes if identity(pid)] == []


def children_of_zygote(engine) -> list[int]:
    """Everything forked from it, by the program it still shows."""
    place = str(engine.pool._folder).encode()
    return [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if place in read(path) and int(path.parent.name) != zygote_pid(engine)
    ]


def zygote_pid(engine) -> int:
    (zygote,) = engine.pool._zygotes.values()
    return zygote.process.pid


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_job_goes_on_when_the_pool_is_gone_and_the_next_one_starts_cold(tmp_path):
    async def scenario():
        engine = LocalEngine(tmp_path / "data", images=Images(PROGRAMS), warm=MODULES)
        first, second = a_handle("first"), a_handle("second")
        await engine.pool.warm_up(PROGRAMS)
        os_wait = "echo 'import os,time\nwhile not os.path.exists(\"go\"): time.sleep(0.01)' > a.py; python a.py"
        await engine.apply(first, effective(os_wait, **ONCE))
        await until(engine, first, lambda seen: seen.phase is Phase.RUNNING)
        os.kill(zygote_pid(engine), signal.SIGKILL)
        await engine.apply(second, effective("echo 'print(2)' > a.py; python a.py", **ONCE))
        (Path(engine.folder(first).pod(0, "first-node-0-0")) / "node" / "go").touch()
        ends = [await until_over(engine, each) for each in (first, second)]
        await engine.pool.close()
        return ends

    first, second = asyncio.run(scenario())
    assert (first.phase, second.phase) == (Phase.COMPLETE, Phase.COMPLETE)
    assert not [each for each in events(second) if each.startswith("Warm")]


@pytest.mark.parametrize(
    ("modules", "trouble"),
    [
        ("no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("threaded", "threaded runs 1 threads after its import, which no fork survives"),
    ],
)
def test_a_pool_that_cannot_be_says_why_and_jobs_start_cold(
    tmp_path, monkeypatch, modules, trouble
):
    packages = tmp_path / "packages"
    packages.mkdir()
    text = "import threading, time; threading.Thread(target=time.sleep, args=(99,), daemon=True).start()"
    (packages / "threaded.py").write_text(text)
    monkeypatch.setattr(
        "astrago_trainer.engines.local.pool._START", START_WITH.format(str(packages))
    )
    seen, text, pool = run(tmp_path, "view", "echo 'print(1)' > a.py; python a.py", warm=modules)
    assert (seen.phase, text) == (Phase.COMPLETE, "1\n")
    assert [(each["ready"], each["trouble"]) for each in pool] == [(False, trouble)]


START_WITH = (
    "import sys; sys.path.remove(''); sys.path.append({!r}); sys.path.append({{!r}}); "
    "from astrago_trainer.engines.local.zygote import main; main()"
)


def test_what_the_pool_holds_is_told(tmp_path):
    _, _, pool = run(tmp_path, "view", "true")
    (told,) = pool
    assert told["ready"]
    assert 2**20 < told["memory_bytes"] < 2**30
