"""A job that prints without end, a disk without space, and files of other releases: each costs one job, and says so."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pytest
from tests.disks import a_small_disk
from tests.engines.jobs import PATIENCE, a_handle, effective, log, until, until_over

from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.engines.base import EngineRejected, EngineUnavailable
from astrago_trainer.engines.local import engine as engine_module
from astrago_trainer.engines.local.engine import MOST_FAILED_STARTS, UNREADABLE, LocalEngine
from astrago_trainer.engines.local.folder import JobFolder, is_alive, read_json
from astrago_trainer.engines.local.loop import Loop
from astrago_trainer.engines.local.output import Output
from astrago_trainer.logs import gap as gaps
from astrago_trainer.logs.gap import read_gap
from astrago_trainer.logs.limits import LogLimits
from astrago_trainer.logs.reader import LogFile
from astrago_trainer.logs.share import TenantShare

MIB = 1 << 20
GROUP = {"pod": {"restartPolicy": "Never"}, "job": {"backoffLimit": 0}}
RESTARTS = {"failurePolicy": {"maxRestarts": 5}}


@pytest.fixture(params=["view", "plain"])
def isolation(request):
    return request.param


def fill(path: Path) -> None:
    """To the last page of the disk."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


def log_of(engine: LocalEngine, handle) -> Path:
    return engine.logs(handle) / "logs/0/job-node-0-0/node.log"


# --- logs


def test_a_job_that_prints_without_end_keeps_its_log_below_its_limit_and_can_be_stopped(
    tmp_path, isolation
):
    engine = LocalEngine(tmp_path, isolation=isolation, log_limits=LogLimits(log=4 * MIB))

    async def scenario():
        handle = a_handle()
        await engine.apply(handle, effective("echo first; yes some words", **GROUP))
        path = log_of(engine, handle)
        await until(engine, handle, lambda _: (found := read_gap(path)) and found.bytes > 64 * MIB)
        used = path.stat().st_blocks * 512
        seen = await engine.observe(handle)
        async with asyncio.timeout(PATIENCE):
            await engine.stop(handle)
        return path, used, seen

    path, used, seen = asyncio.run(scenario())
    gap, file = read_gap(path), LogFile(path)
    assert used <= 4 * MIB + MIB, "between two looks a few chunks may be above it"
    assert path.stat().st_blocks * 512 <= 4 * MIB + 256 * 1024
    assert seen.phase is Phase.RUNNING
    assert any(event.reason == "LogShortened" for event in seen.events)
    assert [line.text for line in file.lines(0, 2)] == ["first", "some words"]
    assert next(line.dropped for line in file.lines_from(gap.marker)) == (gap.bytes, gap.lines)
    assert file.tail(2).data.startswith(b"some words\n")


def test_the_logs_of_a_namespace_stay_below_their_limit(tmp_path):
    limits = LogLimits(log=64 * MIB, tenant=8 * MIB)
    engine = LocalEngine(tmp_path, isolation="plain", log_limits=limits)

    async def scenario():
        handles = [a_handle() for _ in range(4)]
        for handle in handles:
            await engine.apply(handle, effective("yes 0123456789 | head -c 3000000; echo end"))
            await until_over(engine, handle)
            who = read_json(engine.folder(handle).supervisor)
            with suppress(ProcessLookupError):  # it looks at the sum as the last thing that it does
                process = os.pidfd_open(who["pid"])
                await engine_module._readable(process)
                os.close(process)
        return [log_of(engine, handle) for handle in handles]

    paths = asyncio.run(scenario())
    assert sum(path.stat().st_blocks * 512 for path in paths) <= 8 * MIB
    assert read_gap(paths[0]) is not None
    assert all(LogFile(path).tail(1).data.endswith(b"end\n") for path in paths)
    assert read_gap(paths[-1]) is None, "the newest one is as it was"


def test_where_a_file_cannot_have_holes_the_beginning_and_the_last_words_are_kept(
    tmp_path, monkeypatch
):
    def refuse(*_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(gaps, "_punch", refuse)
    path, loop = tmp_path / "node.log", Loop()
    limits = LogLimits(log=MIB, tenant=0, reserve=0)
    output = Output(str(path), loop, lambda *_: None, limits, TenantShare("", 0))
    for number in range(500_000):
        output.add(f"line {number:06d}\n")
    output.started()
    output.finish()
    text = path.read_text()
    found = re.search(
        r"\n\[astrago: (\d+) bytes in (\d+) lines could not be written: the log is over its limit\]\n",
        text,
    )
    lines = len(text.splitlines()) - 1

    assert path.stat().st_size <= MIB + MIB // 2
    assert text.startswith("line 000000\n")
    assert text.endswith("line 499999\n")
    assert int(found[1]) == 12 * 500_000 - (len(text) - (found.end() - found.start() - 1))
    assert int(found[2]) in (500_000 - lines, 500_000 - lines + 1)


def test_output_waits_in_turn_for_a_job_that_never_stops_printing(tmp_path):
    """A pipe that is never empty must not keep the supervisor from everything else."""
    loop = Loop()
    limits = LogLimits(log=MIB, tenant=0, reserve=0)
    output = Output(str(tmp_path / "log"), loop, lambda *_: None, limits, TenantShare("", 0))
    with subprocess.Popen(["yes"], stdout=output.write) as process:
        output.started()
        turns: list[int] = []
        loop.later(0, lambda: turns.append(1))
        for _ in range(100):
            loop.wait()
        process.kill()
    output.finish()
    assert turns == [1]


# --- a full disk


def test_below_the_reserve_no_log_is_written_and_the_loss_is_counted_when_it_goes_on(tmp_path):
    """The status and the history of the job have the space that the log does not take."""
    with a_small_disk(tmp_path / "small", "8m") as small:
        engine = LocalEngine(small / "data", isolation="plain")
        begin, go_on, filler = tmp_path / "begin", tmp_path / "go-on", small / "filler"
        wait = "until [ -e {} ]; do sleep 0.02; done"
        script = f"echo first; {wait}; seq 1000; {wait}; echo end".format(begin, go_on)

        async def scenario():
            handle = a_handle()
            await engine.apply(handle, effective(script))
            path = log_of(engine, handle)
            await until(engine, handle, lambda _: path.exists() and path.read_text() == "first\n")
            free = os.statvfs(small).f_bavail * os.statvfs(small).f_frsize
            with filler.open("wb") as file:
                os.posix_fallocate(
                    file.fileno(), 0, free - 256 * 1024
                )  # the reserve is 5 % of 8 MiB
            begin.touch()
            lost = lambda seen: any(event.reason == "LogLost" for event in seen.events)  # noqa: E731
            seen = await until(engine, handle, lost)
            during = path.read_text()
            filler.unlink()
            go_on.touch()
            return seen, during, await until_over(engine, handle), path.read_text()

        seen, during, over, text = asyncio.run(scenario())
        assert seen.phase is Phase.RUNNING
        assert during == "first\n"
        assert over.phase is Phase.COMPLETE
        assert any("ASTRAGO_DISK_RESERVE_BYTES" in event.message for event in over.events)
        *before, note, end = text.splitlines()
        assert (before[0], end) == ("first", "end")
        found = re.fullmatch(
            r"\[astrago: (\d+) bytes in (\d+) lines could not be written: the disk is nearly full\]",
            note,
        )
        assert (int(found[1]), int(found[2])) == (
            len("\n".join(map(str, range(1, 1001)))) + 1,
            1000,
        )


def test_a_job_is_stopped_and_forgotten_on_a_disk_without_any_space(tmp_path, isolation):
    with a_small_disk(tmp_path / "small", "8m") as small:
        engine = LocalEngine(small / "data", isolation=isolation)

        async def scenario():
            handle = a_handle()
            await engine.apply(handle, effective("echo begun; exec sleep 1000", **GROUP))
            await until(engine, handle, lambda _: log_of(engine, handle).exists())
            await until(engine, handle, lambda seen: seen.phase is Phase.RUNNING)
            fill(small / "filler")
            assert os.statvfs(small).f_bavail == 0
            who = read_json(engine.folder(handle).supervisor)
            async with asyncio.timeout(PATIENCE):
                await engine.stop(handle)
            return handle, who, await engine.observe(handle)

        handle, who, seen = asyncio.run(scenario())
        assert seen.is_gone
        assert not is_alive(who)
        assert [each.name for each in engine.logs(handle).iterdir()] == ["logs"]


def test_a_pod_that_finds_no_space_at_its_start_waits_and_uses_no_restart(tmp_path, isolation):
    """The first attempt fills the disk and fails; the second one starts when there is space again."""
    with a_small_disk(tmp_path / "small", "8m") as small:
        engine = LocalEngine(small / "data", isolation=isolation)
        script = f"if [ $ASTRAGO_ATTEMPT = 0 ]; then until [ -e {tmp_path}/go-on ]; do sleep 0.02; done; exit 3; fi"

        async def scenario():
            handle = a_handle()
            await engine.apply(handle, effective(script, job_set=RESTARTS, **GROUP))
            await until(engine, handle, lambda seen: seen.phase is Phase.RUNNING)
            journal = Path(engine.folder(handle).journal)
            with _kept_full(small / "filler"):  # what the first attempt frees is taken at once
                (tmp_path / "go-on").touch()
                await _rests(read_json(engine.folder(handle).supervisor)["pid"], handle)
            seen = await until_over(engine, handle)
            return seen, journal.read_text()

        seen, journal = asyncio.run(scenario())
        assert (seen.phase, seen.restarts) == (Phase.COMPLETE, 1), journal


@contextmanager
def _kept_full(path: Path) -> Iterator[None]:
    """A thread writes whenever there is space; the file goes at the end."""
    is_over = threading.Event()
    fill(path)

    def write() -> None:
        file = os.open(path, os.O_WRONLY | os.O_APPEND)
        while not is_over.is_set():
            with suppress(OSError):
                os.write(file, b"x" * 4096)
        os.close(file)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        path.unlink()


async def _rests(supervisor: int, handle) -> None:
    """Returns when nothing of the job runs and its supervisor only waits, seen many times in a row."""
    mark, seen = f"ASTRAGO_CONTAINER={handle.uid}/".encode(), 0
    async with asyncio.timeout(PATIENCE):
        while seen < 30:
            try:
                status = Path(f"/proc/{supervisor}/stat").read_text()
            except (FileNotFoundError, ProcessLookupError):  # it found space, and has ended the job
                return
            is_quiet = status.rpartition(")")[2].split()[0] == "S"
            for path in Path("/proc").glob("[0-9]*/environ"):
                with suppress(OSError):
                    is_quiet = is_quiet and mark not in path.read_bytes()
            seen = seen + 1 if is_quiet else 0
            await asyncio.sleep(0.005)


# --- files of pods


def test_a_volume_above_its_size_limit_evicts_the_pod(tmp_path, isolation):
    engine = LocalEngine(tmp_path / "data", isolation=isolation, disk_seconds=0.05)
    volume = {"name": "scratch", "emptyDir": {"sizeLimit": "1Mi"}}
    mounts = {"volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]}
    script = "head -c 4000000 /dev/zero > /scratch/large; exec sleep 1000"

    async def scenario():
        handle = a_handle()
        pod = {**GROUP["pod"], "volumes": [volume]}
        job = effective(script, pod=pod, job=GROUP["job"], container=mounts)
        await engine.apply(handle, job)
        return await until_over(engine, handle), engine.folder(handle)

    seen, folder = asyncio.run(scenario())
    assert seen.phase is Phase.FAILED
    found = r"pod job-node-0-0 was evicted: volume scratch holds [\d.]+ MiB, and its limit is 1 MiB"
    assert re.search(found, seen.message)
    assert any(event.reason == "Evicted" for event in seen.events)
    assert not list(Path(folder.path).glob("pods/*/*/volumes/scratch/large"))


def test_a_job_that_fills_the_disk_with_files_is_evicted_and_gives_them_back(tmp_path, isolation):
    """Others go on: the disk has space again without anybody's doing."""
    with a_small_disk(tmp_path / "small", "16m") as small:
        engine = LocalEngine(small / "data", isolation=isolation, disk_seconds=0.05)
        script = "head -c 1000000000 /dev/zero > $TMPDIR/large; exec sleep 1000"

        async def scenario():
            handle = a_handle()
            await engine.apply(handle, effective(script, **GROUP))
            seen = await until_over(engine, handle)
            other = a_handle("other")
            await engine.apply(other, effective("echo fine"))
            return seen, await until_over(engine, other)

        seen, other = asyncio.run(scenario())
        assert seen.phase is Phase.FAILED
        assert "its temporary files hold" in seen.message
        assert other.phase is Phase.COMPLETE
        assert os.statvfs(small).f_bavail > os.statvfs(small).f_blocks // 2


def test_shared_memory_goes_with_the_pod(tmp_path):
    """The machine's own /dev/shm is not touched."""
    name = f"astrago-{os.getpid()}-{id(tmp_path)}"
    engine = LocalEngine(tmp_path, isolation="view")

    async def scenario():
        handle = a_handle()
        script = f"echo here > /dev/shm/{name}; cat /dev/shm/{name}; df /dev/shm | tail -1"
        await engine.apply(handle, effective(script))
        return await until_over(engine, handle), engine.folder(handle).path

    seen, folder = asyncio.run(scenario())
    assert seen.phase is Phase.COMPLETE
    said = log(folder).splitlines()
    assert said[0] == "here"
    assert said[1].startswith("tmpfs")
    assert not Path(f"/dev/shm/{name}").exists()


# --- files of other releases


async def _with_plan_of_another(engine, change):
    """A job that runs, whose supervisor is killed and whose plan is not what this release writes."""
    handle = a_handle()
    script = "[ $$ASTRAGO_ATTEMPT = 0 ] && exec sleep 1000; echo again"
    await engine.apply(handle, effective(script, job_set=RESTARTS, **GROUP))
    await until(engine, handle, lambda seen: seen.phase is Phase.RUNNING)
    folder = engine.folder(handle)
    process = os.pidfd_open(read_json(folder.supervisor)["pid"])
    plan = json.loads(Path(folder.plan).read_text())
    Path(folder.plan).write_text(change(plan))
    signal.pidfd_send_signal(process, signal.SIGKILL)
    await engine_module._readable(process)
    os.close(process)
    return handle, folder


def without(plan, *names):
    return json.dumps({key: value for key, value in plan.items() if key not in names})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda plan: json.dumps({**plan, "version": 99}),
            "a version up to 1 is expected, found 99",
        ),
        (lambda plan: json.dumps({**plan, "version": "x"}), "a version up to 1 is expected"),
        (lambda _: '{"name": ', "JSON is expected"),
        (lambda _: "[]", "an object is expected, found list"),
        (lambda plan: without(plan, "groups"), "the plan must have groups"),
        (lambda plan: json.dumps({**plan, "groups": [{"name": "node"}]}), "must have count"),
    ],
)
def test_a_plan_that_cannot_be_read_fails_the_job_with_one_reason(tmp_path, change, words):
    engine = LocalEngine(tmp_path, isolation="view")

    async def scenario():
        handle, folder = await _with_plan_of_another(engine, change)
        first = await engine.observe(handle)
        again = await engine.observe(handle)
        with pytest.raises(EngineRejected) as refusal:
            await engine.apply(handle, effective("exit 0", **GROUP))
        log_of_supervisor = Path(folder.supervisor_log).read_text()
        await engine.stop(handle)
        return first, again, refusal.value, log_of_supervisor, await engine.observe(handle)

    first, again, refusal, said, gone = asyncio.run(scenario())
    assert (first.phase, first.reason) == (Phase.FAILED, UNREADABLE)
    assert words in first.message
    assert "plan.json" in first.message
    assert "Delete the job and submit it again" in first.message
    assert (again.reason, again.message) == (first.reason, first.message)
    assert (refusal.reason, str(refusal)) == (UNREADABLE, first.message)
    assert said == "", "no supervisor was started to find out"
    assert gone.is_gone


def test_a_plan_of_an_earlier_release_is_read(tmp_path):
    engine = LocalEngine(tmp_path, isolation="plain")
    newer = ("version", "needs", "shortfall", "notes", "has_ssh")

    async def scenario():
        handle, folder = await _with_plan_of_another(engine, lambda plan: without(plan, *newer))
        return await until_over(engine, handle), folder.path

    seen, folder = asyncio.run(scenario())
    assert (seen.phase, seen.attempt) == (Phase.COMPLETE, 1)
    assert log(folder, attempt=1) == "again\n"


def test_a_status_of_a_newer_release_fails_the_job_and_ends_what_runs(tmp_path):
    engine = LocalEngine(tmp_path, isolation="view")

    async def scenario():
        handle = a_handle()
        await engine.apply(handle, effective("exec sleep 1000", **GROUP))
        await until(engine, handle, lambda seen: seen.phase is Phase.RUNNING)
        folder = engine.folder(handle)
        who = read_json(folder.supervisor)
        found = json.loads(Path(folder.status).read_text())
        Path(folder.status).write_text(json.dumps({**found, "version": 7}))
        seen = await engine.observe(handle)
        return seen, is_alive(who)

    seen, is_there = asyncio.run(scenario())
    assert (seen.phase, seen.reason) == (Phase.FAILED, UNREADABLE)
    assert "status.json: a version up to 1 is expected, found 7" in seen.message
    assert not is_there


def test_every_json_file_of_a_job_has_a_version(tmp_path):
    engine = LocalEngine(tmp_path, isolation="plain")

    async def scenario():
        handle = a_handle()
        await engine.apply(handle, effective())
        await until_over(engine, handle)
        return Path(engine.folder(handle).path)

    folder = asyncio.run(scenario())
    files = {path.name: json.loads(path.read_text()) for path in folder.glob("*.json")}
    assert {name: value.get("version") for name, value in files.items()} == {
        "plan.json": 1,
        "status.json": 1,
        "supervisor.json": None,
    }
    assert json.loads((tmp_path / "ledger.json").read_text())["version"] == 1


# --- supervisors that die at once


class Clock:
    """Stands in for the module `time` of the engine."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def time(self) -> float:
        return self.now


def test_a_supervisor_that_dies_at_once_is_started_less_and_less_often_and_then_no_more(
    tmp_path, monkeypatch
):
    engine, clock = LocalEngine(tmp_path, isolation="plain"), Clock()
    starts: list[float] = []
    begin = LocalEngine._start

    async def counted(self: LocalEngine, folder: JobFolder) -> None:
        starts.append(clock.now)
        await begin(self, folder)

    async def scenario():
        handle, _ = await _with_plan_of_another(engine, json.dumps)
        monkeypatch.setattr(engine_module, "_START", "import sys; sys.exit('broken on purpose')")
        monkeypatch.setattr(engine_module, "time", clock)
        monkeypatch.setattr(LocalEngine, "_start", counted)
        seen = [await engine.observe(handle) for _ in range(50)]
        assert len(starts) == 1, "whatever news there are, it waits"
        texts = {seen[-1].message}
        while seen[-1].phase is not Phase.FAILED and len(starts) < 100:
            clock.now += 0.25
            seen.append(await engine.observe(handle))
            texts.add(seen[-1].message)
        for wake in engine._wakes.values():
            wake.cancel()
        await engine.stop(handle)
        return seen, texts

    seen, texts = asyncio.run(scenario())
    pauses = [after - before for before, after in pairwise(starts)]
    assert len(starts) == MOST_FAILED_STARTS + 1
    assert pauses == sorted(pauses)
    assert pauses[0] == pytest.approx(0.5, abs=0.3)
    assert pauses[-1] == pytest.approx(60.0, abs=1)
    assert seen[49].phase is Phase.RESTARTING
    assert "its supervisor ended at once 1 times" in seen[49].message
    assert "broken on purpose" in seen[49].message
    assert (seen[-1].phase, seen[-1].reason) == (Phase.FAILED, "SupervisorFailed")
    assert f"ended at once {MOST_FAILED_STARTS + 1} times" in seen[-1].message
    assert len(texts) > MOST_FAILED_STARTS


def test_the_next_start_of_a_supervisor_is_news_when_it_is_due(tmp_path, monkeypatch):
    """Nobody asks again and again: the engine tells of the job when its pause is over."""
    engine = LocalEngine(tmp_path, isolation="plain")

    async def scenario():
        handle, _ = await _with_plan_of_another(engine, json.dumps)
        start = engine_module._START
        monkeypatch.setattr(engine_module, "_START", "import sys; sys.exit('broken on purpose')")
        changes = engine.changes()
        async with asyncio.timeout(PATIENCE):
            heard = asyncio.ensure_future(anext(changes))
            await asyncio.sleep(0)  # it listens now
            await engine.observe(handle)
            await engine.observe(handle)
            monkeypatch.setattr(engine_module, "_START", start)
            while True:
                found = await heard
                seen = await engine.observe(found)
                if seen.phase is Phase.COMPLETE:
                    await changes.aclose()
                    return seen
                heard = asyncio.ensure_future(anext(changes))

    seen = asyncio.run(scenario())
    assert (seen.phase, seen.attempt) == (Phase.COMPLETE, 1)


def test_a_job_whose_share_cannot_be_noted_is_applied_again_later(tmp_path):
    """Nothing of the job is lost or started twice."""
    engine = LocalEngine(tmp_path, isolation="plain")
    ledger = tmp_path / "ledger.json"
    ledger.mkdir()  # cannot be replaced by a file

    async def scenario():
        handle = a_handle()
        with pytest.raises(EngineUnavailable, match=r"ledger\.json"):
            await engine.apply(handle, effective("echo ran"))
        ledger.rmdir()
        await engine.apply(handle, effective("echo ran"))
        return await until_over(engine, handle), engine.folder(handle).path

    seen, folder = asyncio.run(scenario())
    assert (seen.phase, seen.restarts) == (Phase.COMPLETE, 0)
    assert log(folder) == "ran\n"
