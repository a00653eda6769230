"""What goes wrong around jobs: servers, supervisors and machines that die, numbers that come to mean something else."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from tests.engines.jobs import PATIENCE, a_handle, effective, log, until, until_over

from astrago_trainer.core.lifecycle import Phase, is_terminal
from astrago_trainer.engines.base import Handle
from astrago_trainer.engines.local.engine import LocalEngine
from astrago_trainer.engines.local.folder import identity, read_json, write_json

ROOT = Path(__file__).parents[2]
GROUP = {"pod": {"restartPolicy": "Never"}, "job": {"backoffLimit": 0}}
TINY = {"resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}}

SERVER = """
import asyncio, os, sys
from pathlib import Path
from tests.engines.jobs import effective
from astrago_trainer.engines.base import Handle
from astrago_trainer.engines.local.engine import LocalEngine

async def main():
    engine = LocalEngine(Path(sys.argv[1]), isolation=sys.argv[2], warm="")
    await engine.pool.warm_up()
    script = "n=0; until [ -e %s ]; do echo line $$((n++)); sleep 0.01; done; echo end" % sys.argv[3]
    for number in range(int(sys.argv[4])):
        handle = Handle("team", f"j{number}", f"{sys.argv[5]}-{number}")
        await engine.apply(handle, effective(script, container=%r))
    print("started", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
""".replace("%r", repr(TINY))


@pytest.mark.parametrize(("isolation", "down"), [("view", 0), ("plain", 5)])
def test_jobs_outlive_a_killed_server_and_are_found_again_within_a_second(
    tmp_path, isolation, down
):
    """20 jobs; nothing is started again, and no byte of a log is missing."""
    jobs, go_on, uid = 20, tmp_path / "go-on", f"{os.getpid()}-{time.time_ns()}"
    command = [sys.executable, "-c", SERVER, tmp_path / "data", isolation, go_on, str(jobs), uid]
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as server:
        assert server.stdout.readline() == "started\n"
        server.kill()
    time.sleep(down)  # the time for which there is no server

    async def scenario():
        engine = LocalEngine(tmp_path / "data", isolation=isolation)
        handles = [Handle("team", f"j{number}", f"{uid}-{number}") for number in range(jobs)]
        begin = time.monotonic()
        found = [await engine.observe(handle) for handle in handles]
        seconds = time.monotonic() - begin
        try:
            for handle in handles:
                await until(engine, handle, lambda seen: seen.phase is Phase.RUNNING)
            go_on.touch()
            return engine, handles, found, seconds, [await until_over(engine, h) for h in handles]
        finally:
            for handle in handles:
                await engine.stop(handle)

    engine, handles, found, seconds, ends = asyncio.run(scenario())
    assert seconds < 1
    assert all(seen.phase in (Phase.RUNNING, Phase.PENDING) for seen in found)
    assert [(seen.phase, seen.attempt) for seen in ends] == [(Phase.COMPLETE, 0)] * jobs
    for handle in handles:
        path = engine.logs(handle) / f"logs/0/{handle.name}-node-0-0/node.log"
        *lines, last = path.read_text().splitlines()
        assert last == "end"
        assert lines == [f"line {number}" for number in range(len(lines))]


@pytest.fixture(params=["view", "plain"])
def engine(request, tmp_path):
    return LocalEngine(tmp_path / "data", isolation=request.param)


def test_a_pid_that_came_to_mean_a_stranger_is_left_alone(engine):
    """The supervisor is killed, and its number is now that of somebody else's process."""

    async def scenario():
        handle = a_handle()
        await engine.apply(handle, effective("exec sleep 1000", **GROUP))
        await until(engine, handle, lambda seen: seen.phase is Phase.RUNNING)
        folder = engine.folder(handle)
        os.kill(read_json(folder.supervisor)["pid"], signal.SIGKILL)
        with subprocess.Popen(["sleep", "1000"]) as stranger:
            try:
                forged = {**read_json(folder.supervisor), "pid": stranger.pid}
                write_json(folder.supervisor, forged)
                seen = await until_over(engine, handle)
                await engine.stop(handle)
                return seen, stranger.poll()
            finally:
                stranger.kill()

    seen, stranger = asyncio.run(scenario())
    assert (seen.phase, seen.reason) == (Phase.FAILED, "SupervisorLost")
    assert stranger is None


def test_after_a_reboot_jobs_go_on_with_their_next_attempt(engine):
    """All processes are gone, and their numbers are of another boot."""

    async def scenario():
        handle = a_handle()
        job_set = {"failurePolicy": {"maxRestarts": 1}}
        script = "[ $$ASTRAGO_ATTEMPT = 1 ] || exec sleep 1000; echo again"
        await engine.apply(handle, effective(script, job_set=job_set, **GROUP))
        await until(engine, handle, lambda seen: seen.phase is Phase.RUNNING)
        folder = engine.folder(handle)
        who = read_json(folder.supervisor)
        os.kill(who["pid"], signal.SIGKILL)
        write_json(folder.supervisor, {**who, "pid": os.getpid(), "boot": "another"})
        return await until_over(engine, handle), folder.path

    seen, folder = asyncio.run(scenario())
    assert (seen.phase, seen.attempt) == (Phase.COMPLETE, 1)
    assert log(folder, attempt=1) == "again\n"


def test_who_listens_for_news_hears_of_a_killed_supervisor_and_need_not_ask_again(engine):
    async def end_as_told(handle):
        async for _ in engine.changes():
            seen = await engine.observe(handle)
            if is_terminal(seen.phase):
                return seen

    async def scenario():
        handle = a_handle()
        await engine.apply(handle, effective("exec sleep 1000", **GROUP))
        await until(engine, handle, lambda seen: seen.phase is Phase.RUNNING)
        listener = asyncio.create_task(end_as_told(handle))
        await asyncio.sleep(0)  # it listens now
        os.kill(read_json(engine.folder(handle).supervisor)["pid"], signal.SIGKILL)
        return await asyncio.wait_for(listener, PATIENCE)

    for _ in range(5):
        seen = asyncio.run(scenario())
        assert (seen.phase, seen.reason) == (Phase.FAILED, "SupervisorLost")


def test_a_frozen_rank_is_ended_by_a_stop(engine):
    async def scenario():
        handle = a_handle()
        grace = {"terminationGracePeriodSeconds": 1}
        await engine.apply(handle, effective("kill -STOP $$$$; echo never", pod=grace))
        await until(engine, handle, lambda seen: seen.phase is Phase.RUNNING)
        begin = time.monotonic()
        await engine.stop(handle)
        return engine.logs(handle), time.monotonic() - begin

    folder, seconds = asyncio.run(scenario())
    assert log(folder) == ""
    assert seconds < 10


def test_a_rank_that_is_killed_costs_one_restart_and_the_others_start_with_it(engine):
    async def scenario():
        handle = a_handle()
        script = "echo $$ASTRAGO_ATTEMPT; [ $$ASTRAGO_ATTEMPT = 1 ] || exec sleep 1000"
        job_set = {"failurePolicy": {"maxRestarts": 3}}
        await engine.apply(handle, effective(script, nodes=3, job_set=job_set, **GROUP))
        path = Path(engine.folder(handle).path) / "logs/0"
        ready = lambda _: len([p for p in path.rglob("*.log") if p.stat().st_size]) == 3  # noqa: E731
        await until(engine, handle, ready)
        os.kill(rank_of(handle, 1), signal.SIGKILL)
        return await until_over(engine, handle), engine.folder(handle).path

    seen, folder = asyncio.run(scenario())
    assert (seen.phase, seen.attempt) == (Phase.COMPLETE, 1)
    assert [log(folder, attempt=1, rank=rank) for rank in range(3)] == ["1\n"] * 3
    assert any("job-node-0-1/node ended with SIGKILL" in event.message for event in seen.events)


def rank_of(handle, rank: int) -> int:
    mark = f"ASTRAGO_CONTAINER={handle.uid}/0/job-node-0-{rank}/node".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes():
                return int(path.parent.name)
        except OSError:
            continue
    raise LookupError(mark)


def test_two_servers_at_once_start_a_lost_job_once(engine, tmp_path):
    async def scenario():
        handle = a_handle()
        job_set = {"failurePolicy": {"maxRestarts": 5}}
        script = "echo $$ASTRAGO_ATTEMPT; [ $$ASTRAGO_ATTEMPT = 1 ] || exec sleep 1000"
        await engine.apply(handle, effective(script, job_set=job_set, **GROUP))
        await until(engine, handle, lambda seen: seen.phase is Phase.RUNNING)
        os.kill(read_json(engine.folder(handle).supervisor)["pid"], signal.SIGKILL)
        others = [LocalEngine(tmp_path / "data") for _ in range(8)]
        await asyncio.gather(*(each.observe(handle) for each in others))
        return await until_over(engine, handle), engine.folder(handle)

    seen, folder = asyncio.run(scenario())
    assert (seen.phase, seen.attempt) == (Phase.COMPLETE, 1)
    assert log(folder.path, attempt=1) == "1\n"
    accepted = [event for event in seen.events if event.reason == "Accepted"]
    assert len(accepted) == 2, "one supervisor at first, and one after it was lost"


PLAIN_USER = """
import asyncio, json, sys
from pathlib import Path
from astrago_trainer.engines.base import Effective, Handle
from astrago_trainer.engines.local.engine import LocalEngine
from astrago_trainer.engines.local.plan import Images

async def main():
    engine = LocalEngine(Path(sys.argv[1]), images=Images("/usr/bin"))
    handle = Handle("team", "job", sys.argv[2])
    await engine.apply(handle, Effective(json.loads(sys.argv[3])))
    async for _ in engine.changes():
        seen = await engine.observe(handle)
        if seen.phase in ("Complete", "Failed"):
            break
    print(seen.phase, seen.message, [event.message for event in seen.events])
    print((engine.logs(handle) / "logs/0/job-node-0-0/node.log").read_text())

asyncio.run(main())
"""


def test_an_ordinary_user_gets_the_view_too(tmp_path):
    """A user namespace instead of root's rights; where the kernel forbids them, plain mode, and the events say so."""
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root, to become somebody else")
    volumes = [
        {"name": "data", "emptyDir": {}},
        {"name": "claim", "persistentVolumeClaim": {"claimName": "c"}},
    ]
    mounts = [
        {"name": "data", "mountPath": "/no/such/place"},
        {"name": "claim", "mountPath": "/claim"},
    ]
    script = (
        "echo $$(hostname) $$(id -u); echo x > /no/such/place/file; ls /no/such/place; "
        "> /claim/kept; getent hosts job-node-0-0.job"
    )
    job = effective(script, container={"volumeMounts": mounts}, pod={"volumes": volumes})
    with tempfile.TemporaryDirectory(dir="/tmp") as open_folder:
        packages = Path(open_folder) / "src"
        shutil.copytree(ROOT / "src", packages)
        data = Path(open_folder) / "data"
        data.mkdir()
        Path(open_folder).chmod(0o755)
        os.chown(data, 65534, 65534)
        done = subprocess.run(
            [
                *(
                    "setpriv",
                    "--reuid=65534",
                    "--regid=65534",
                    "--clear-groups",
                    "/usr/bin/python3",
                ),
                *("-c", PLAIN_USER, str(data), f"{os.getpid()}-user", json.dumps(job.job_set)),
            ],
            env={
                "PYTHONPATH": str(packages),
                "PATH": "/usr/bin:/bin",
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        kept = (data / "claims/team/c/kept").exists()
    if "No module named" in done.stderr or done.returncode == 127:
        pytest.skip(f"this machine's own python cannot run it: {done.stderr[-200:]}")
    assert "Complete" in done.stdout, done.stdout + done.stderr
    if "each pod has its own view" in done.stdout:
        assert "job-node-0-0 65534\nfile\n127.77.0.1" in done.stdout
        assert kept
    else:
        assert "plain, for there are no namespaces" in done.stdout


def test_a_supervisor_names_itself_for_good():
    who = identity(os.getpid())
    assert who is not None
    assert identity(os.getpid()) == who
    assert identity(2**22 + 1) is None
