"""Effective pods as processes of this machine: what they see, how they end, what is left of them."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import re
import signal
import struct
import subprocess
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from tests.engines.jobs import a_handle, effective, log, until, until_over

from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.engines.base import Amounts, EngineRejected, NodeShare
from astrago_trainer.engines.local.engine import LocalEngine
from astrago_trainer.engines.local.folder import read_json
from astrago_trainer.engines.local.limits import Limits
from astrago_trainer.logs.layout import find_logs
from astrago_trainer.logs.limits import LogLimits

ONCE = {"restartPolicy": "Never"}
GROUP = {"pod": ONCE, "job": {"backoffLimit": 0}}


@pytest.fixture(params=["view", "plain"])
def engine(request, tmp_path):
    return LocalEngine(tmp_path / "data", isolation=request.param)


@pytest.fixture
def viewed(tmp_path):
    return LocalEngine(tmp_path / "data", isolation="view")


def run(engine, job, **changes):
    """The end of the job, and its folder."""

    async def scenario():
        handle = a_handle()
        await engine.apply(handle, job)
        return await until_over(engine, handle), engine.folder(handle).path

    return asyncio.run(scenario())


def config_map(name="settings", **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.mark.req("M71", "M123")
def test_a_pod_has_the_variables_that_the_operator_would_give_it(engine):
    seen, folder = run(engine, effective("env", nodes=2, policy={"numNodes": 1, "torch": {}}))

    assert seen.phase is Phase.COMPLETE
    env = dict(line.split("=", 1) for line in log(folder, rank=1).splitlines() if "=" in line)
    assert env["PET_NNODES"] == "2"
    assert env["PET_NODE_RANK"] == "1"
    assert env["JOB_COMPLETION_INDEX"] == "1"
    assert env["HOSTNAME"] == "job-node-0-1"
    assert env["ASTRAGO_ATTEMPT"] == "0"


def test_variables_refer_to_each_other_and_to_other_objects(engine):
    entries = [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)-$$(A)-$(NONE)"},
        {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "rate"}}},
        {"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
    ]
    job = effective(
        "echo $B $C $D $PREFIX_rate",
        container={
            "env": entries,
            "envFrom": [{"prefix": "PREFIX_", "configMapRef": {"name": "settings"}}],
        },
        objects=(config_map(rate="$(A)"),),
    )

    _, folder = run(engine, job)

    assert log(folder) == "1-$(A)-$(NONE) $(A) team $(A)\n"


def test_what_a_pod_refers_to_has_to_be_there(engine):
    entries = [{"name": "C", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
    volumes = [{"name": "v", "configMap": {"name": "c"}}]
    job = effective(container={"env": entries}, pod={"volumes": volumes})

    with pytest.raises(EngineRejected) as refused:
        run(engine, job)

    assert "Secret 's' is expected in namespace 'team', and is not there" in str(refused.value)
    assert "ConfigMap 'c' is expected in namespace 'team', and is not there" in str(refused.value)


def test_volumes_are_where_the_job_wants_them(viewed, tmp_path):
    volumes = [
        {"name": "code", "configMap": {"name": "settings", "defaultMode": 0o755}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
        {"name": "host", "hostPath": {"path": str(tmp_path)}},
    ]
    mounts = [
        {"name": "code", "mountPath": "/workspace/scripts", "readOnly": True},
        {"name": "data", "mountPath": "/data"},
        {"name": "shm", "mountPath": "/dev/shm"},
        {"name": "host", "mountPath": "/usr/share/of-the-host/deep"},
    ]
    (tmp_path / "here").touch()
    script = (
        "cat /workspace/scripts/train.py; stat -c %a /workspace/scripts/train.py; echo kept > /data/file;"
        "df --output=size /dev/shm | tail -1; ls /usr/share/of-the-host/deep | grep here;"
        "touch /workspace/scripts/x 2>&1 | grep -o Read-only"
    )
    job = effective(
        script,
        container={"volumeMounts": mounts},
        pod={"volumes": volumes},
        objects=(config_map(**{"train.py": "print(1)\n"}),),
    )

    _, folder = run(viewed, job)

    assert log(folder).split() == ["print(1)", "755", "65536", "here", "Read-only"]
    kept = Path(folder).parents[2] / "claims" / "team" / "data" / "file"
    assert kept.read_text() == "kept\n"
    assert not Path("/usr/share/of-the-host").exists()


def test_the_names_of_all_pods_resolve_in_each_of_them(viewed):
    names = "job-node-0-0.job job-node-0-1.job.team.svc.cluster.local"
    seen, folder = run(viewed, effective(f"hostname; getent hosts {names} | wc -l", nodes=2))

    assert seen.phase is Phase.COMPLETE
    assert log(folder, rank=1).split() == ["job-node-0-1", "2"]


def test_init_containers_run_one_after_another_before_the_others(engine):
    shared = [{"name": "shared", "emptyDir": {}}]
    mount = [{"name": "shared", "mountPath": "/shared"}]
    init = [
        {
            "name": name,
            "image": "i",
            "command": ["sh", "-c", f"echo {name} >> /shared/order"],
            "volumeMounts": mount,
        }
        for name in ("first", "second")
    ]
    job = effective(
        "cat /shared/order",
        container={"volumeMounts": mount},
        pod={"volumes": shared, "initContainers": init},
    )

    _, folder = run(engine, job)

    assert log(folder) == "first\nsecond\n"


def test_a_pod_is_told_with_its_machine_and_the_address_that_it_knows_itself(engine):
    own = {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}

    seen, folder = run(engine, effective("echo $IP", nodes=2, container={"env": [own]}))

    assert {each.node for each in seen.pods} == {platform.node()}
    assert [f"{each.address}\n" for each in seen.pods] == [
        log(folder, rank=rank) for rank in (0, 1)
    ]


@pytest.mark.parametrize(
    ("script", "code", "told"),
    [
        ("echo why >&2; exit 3", 3, "exit code 3: why"),
        ("kill -9 $BASHPID", 137, "SIGKILL (exit code 137)"),
    ],
)
def test_a_failure_is_told_with_its_first_cause(engine, script, code, told):
    seen, _ = run(engine, effective(script, **GROUP))

    assert (seen.phase, seen.reason) == (Phase.FAILED, "FailedJobs")
    assert told in seen.message
    assert seen.pods[0].exit_code == code


def test_a_program_that_is_not_there_is_told(engine):
    job = effective(container={"command": ["no-such-program"]}, **GROUP)

    seen, folder = run(engine, job)

    assert seen.pods[0].exit_code == 127
    assert "no-such-program: No such file or directory" in seen.message
    assert "no-such-program: No such file or directory" in log(folder)


@pytest.mark.req("M114", "M115", "M133", "X13")
def test_one_failure_starts_the_whole_group_again_up_to_the_limit(engine):
    script = (
        "echo attempt $ASTRAGO_ATTEMPT; [ $JOB_COMPLETION_INDEX = 1 ] && exit 3; exec sleep 1000"
    )
    job = effective(script, nodes=2, job_set={"failurePolicy": {"maxRestarts": 2}}, **GROUP)

    seen, folder = run(engine, job)

    assert (seen.phase, seen.reason, seen.attempt) == (Phase.FAILED, "ReachedMaxRestarts", 2)
    assert [(each.attempt, each.phase, each.reason) for each in seen.ended] == [
        (0, Phase.FAILED, "BackoffLimitExceeded"),
        (1, Phase.FAILED, "BackoffLimitExceeded"),
    ]
    assert all("exit code 3" in each.message for each in seen.ended)
    logs = [log(folder, attempt=n, rank=1) for n in range(3)]
    assert logs == [f"attempt {n}\n" for n in range(3)]


@pytest.mark.req("M133")
def test_a_container_that_may_is_started_again_in_its_place(engine):
    script = "echo start; [ -e /state/tried ] && exit 0; touch /state/tried; exit 3"
    mounts = {"volumeMounts": [{"name": "state", "mountPath": "/state"}]}
    job = effective(script, container=mounts, pod={"volumes": [{"name": "state", "emptyDir": {}}]})

    seen, folder = run(engine, job)

    assert (seen.phase, seen.attempt, seen.pods[0].restarts) == (Phase.COMPLETE, 0, 1)
    assert log(folder) == "start\nstart\n"


def test_a_stop_reaches_every_process_and_waits_for_the_slow(engine):
    escaped = "(trap '' TERM; exec setsid sleep 1000) &"
    script = f"trap 'echo stopping; exit 0' TERM; {escaped} echo on; while :; do sleep 0.05; done"
    job = effective(script, pod={"terminationGracePeriodSeconds": 5})

    async def scenario():
        handle = a_handle()
        folder = engine.folder(handle).path
        await engine.apply(handle, job)
        await until(
            engine,
            handle,
            lambda _: Path(f"{folder}/logs/0/job-node-0-0/node.log").exists() and log(folder),
        )
        await engine.apply(handle, replace(job, suspend=True))
        return log(folder), handle, folder

    told, handle, _ = asyncio.run(scenario())

    assert told.splitlines()[-1] == "stopping"
    assert processes_of(handle) == []


def test_a_deadline_ends_the_job(engine):
    seen, _ = run(engine, effective("exec sleep 1000", deadline=1))

    assert (seen.phase, seen.reason) == (Phase.FAILED, "DeadlineExceeded")


@pytest.mark.parametrize("restarts", [0, 1])
def test_a_lost_supervisor_is_told_and_costs_a_restart(engine, restarts):
    script = "[ $ASTRAGO_ATTEMPT = 1 ] && exit 0; exec sleep 1000"
    job = effective(script, job_set={"failurePolicy": {"maxRestarts": restarts}}, **GROUP)

    async def scenario():
        handle = a_handle()
        await engine.apply(handle, job)
        await until(engine, handle, lambda seen: seen.phase is Phase.RUNNING)
        os.kill(read_json(engine.folder(handle).supervisor)["pid"], signal.SIGKILL)
        return await until_over(engine, handle), handle

    seen, handle = asyncio.run(scenario())

    if restarts:
        assert (seen.phase, seen.attempt) == (Phase.COMPLETE, 1)
        assert [(each.attempt, each.reason) for each in seen.ended] == [(0, "SupervisorLost")]
    else:
        assert (seen.phase, seen.reason) == (Phase.FAILED, "SupervisorLost")
    assert processes_of(handle) == []


def test_a_job_outlives_the_engine_that_started_it_and_is_found_again(engine, tmp_path):
    handle = a_handle()
    sign = tmp_path / "sign"
    script = f"until [ -e {sign} ]; do sleep 0.05; done"
    asyncio.run(engine.apply(handle, effective(script)))
    before = asyncio.run(until(engine, handle, lambda seen: seen.phase is Phase.RUNNING))

    later = LocalEngine(tmp_path / "data", isolation="plain")
    found = asyncio.run(later.observe(handle))
    sign.touch()
    after = asyncio.run(until_over(later, handle))

    assert (found.phase, found.events) == (Phase.RUNNING, before.events)
    assert (after.phase, after.attempt) == (Phase.COMPLETE, 0)


def test_what_does_not_fit_waits_with_the_reason_in_numbers(viewed, monkeypatch):
    monkeypatch.setenv("ASTRAGO_LOCAL_CPUS", "2")
    cpus = {"resources": {"requests": {"cpu": "1500m"}}}

    async def scenario():
        first, second = a_handle("first"), a_handle("second")
        await viewed.apply(first, effective("exec sleep 1000", container=cpus))
        await until(viewed, first, lambda seen: seen.phase is Phase.RUNNING)
        await viewed.apply(second, effective("exit 0", container=cpus))
        waiting = await until(viewed, second, lambda seen: seen.phase is Phase.QUEUED)
        await viewed.stop(first)
        return waiting, await until_over(viewed, second)

    waiting, done = asyncio.run(scenario())

    assert waiting.message == "1.5 CPU needed, 0.5 of 2 free"
    assert done.phase is Phase.COMPLETE


def processes_of(handle) -> list[str]:
    """What is left of a job, by its mark."""
    mark = f"ASTRAGO_CONTAINER={handle.uid}/".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes():
                found.append(json.dumps(path.parent.name))
        except OSError:
            continue
    return found


def test_logs_stay_when_the_job_is_stopped_and_nothing_else_does(engine):
    async def scenario():
        handle = a_handle()
        await engine.apply(handle, effective("echo hello"))
        await until_over(engine, handle)
        await engine.stop(handle)
        return engine.logs(handle)

    folder = asyncio.run(scenario())
    assert [path.name for path in folder.iterdir()] == ["logs"]
    assert log(folder) == "hello\n"


@pytest.mark.parametrize("name", ["stdout", "stderr", "fd/1"])
def test_a_script_that_opens_its_output_anew_does_not_cut_the_log_off(engine, name):
    script = f"echo first; echo second > /dev/{name}; echo third >> /dev/{name}; echo fourth"
    _, folder = run(engine, effective(script))
    assert log(folder) == "first\nsecond\nthird\nfourth\n"


def test_a_log_has_its_index_of_times(engine):
    before = time.time()
    _, folder = run(engine, effective("echo one; head -c 200000 /dev/zero | tr '\\0' x; echo"))
    index = find_logs(Path(folder))[0].path.with_name("node.log.idx")
    data = index.read_bytes()[16:]
    marks = [struct.unpack("<qq", data[at : at + 16]) for at in range(0, len(data), 16)]
    assert marks[-1][1] == 200005
    assert before <= marks[-1][0] / 1e9 <= time.time()


def test_a_hundred_thousand_lines_are_all_there(engine):
    _, folder = run(engine, effective("seq 100000; exit 3", **GROUP))
    assert log(folder) == "".join(f"{number}\n" for number in range(1, 100001))


def test_output_is_kept_although_the_process_is_killed_right_after_it(engine):
    _, folder = run(engine, effective("seq 20000; kill -9 $$$$", **GROUP))
    assert log(folder).endswith("19999\n20000\n")


def test_mounts_that_are_read_only_are(viewed):
    volumes = [
        {"name": "claim", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}},
        {"name": "map", "configMap": {"name": "settings"}},
        {"name": "mine", "persistentVolumeClaim": {"claimName": "data"}},
    ]
    mounts = [
        {"name": "claim", "mountPath": "/read"},
        {"name": "map", "mountPath": "/map"},
        {"name": "map", "mountPath": "/etc/one-file", "subPath": "a"},
        {"name": "mine", "mountPath": "/write"},
    ]
    script = "cat /etc/one-file; for x in /read /map /write; do (> $x/new) 2>/dev/null && echo $x; done; :"
    job = effective(
        script,
        container={"volumeMounts": mounts},
        pod={"volumes": volumes},
        objects=(config_map(a="text of a\n"),),
    )
    seen, folder = run(viewed, job)
    assert (seen.phase, log(folder)) == (Phase.COMPLETE, "text of a\n/write\n")


LIMITED = pytest.mark.skipif(bool(Limits().trouble), reason="control groups cannot be made here")


@LIMITED
def test_memory_is_limited_and_the_end_is_told_with_the_limit(engine):
    limits = {"resources": {"limits": {"memory": "64Mi"}}}
    seen, _ = run(engine, effective("head -c 500M /dev/zero | tail", container=limits, **GROUP))
    assert seen.phase is Phase.FAILED
    assert "out of memory at its limit of 64 MiB (OOMKilled)" in seen.message
    assert seen.pods[0].reason == "OOMKilled"
    assert_no_groups_left()


@LIMITED
def test_cpu_is_limited(viewed):
    limits = {"resources": {"limits": {"cpu": "200m"}}}
    script = "timeout 1 bash -c 'while :; do :; done'; times"
    seen, folder = run(viewed, effective(script, container=limits))
    used = float(re.findall(r"m([\d.]+)s", log(folder))[2])
    assert seen.phase is Phase.COMPLETE
    assert used < 0.5


@LIMITED
@pytest.mark.parametrize("isolation", ["view", "plain"])
def test_a_fork_bomb_ends_at_the_limit_of_processes_and_nothing_is_left(isolation, tmp_path):
    # Thousands of processes would starve the tests beside this one.
    engine = LocalEngine(tmp_path / "data", isolation=isolation, most_processes=200)
    bomb = "bomb() { bomb | bomb & sleep 1000; }; bomb 2>/dev/null; sleep 1000"

    async def scenario():
        handle = a_handle()
        grace = {"terminationGracePeriodSeconds": 0}
        await engine.apply(handle, effective(bomb, pod=grace))
        group = "/astrago~" + handle.uid
        most = 0

        def is_full(_):
            nonlocal most
            most = max(most, len(processes_in(group)))
            return refusals(handle.uid) > 0  # so it was at the limit

        try:
            await until(engine, handle, is_full)
        finally:
            await engine.stop(handle)
        return most, processes_in(group)

    most, left = asyncio.run(scenario())
    assert most <= 200
    assert left == []
    assert_no_groups_left()


def groups(prefix: str) -> list[Path]:
    """Control groups of jobs with such a uid; other jobs come and go meanwhile."""
    parents = {Path(each) for each in Limits()._parents.values()}
    return [
        group
        for parent in parents
        for group in parent.iterdir()
        if group.name.startswith(f"astrago~{prefix}")
    ]


def refusals(uid: str) -> int:
    """How often the kernel refused a process because of the limit."""
    count = 0
    for group in groups(uid):
        with suppress(FileNotFoundError):
            count += int((group / "pids.events").read_text().split()[1])
    return count


def processes_in(group: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cgroup"):
        with suppress(OSError):
            if group in path.read_text():
                found.append(path.parent.name)
    return found


def assert_no_groups_left() -> None:
    assert groups(f"{os.getpid()}-") == []


@pytest.mark.parametrize("how", ["setsid", "setsid env -i"])
def test_a_process_that_leaves_its_parents_and_its_session_ends_with_the_container(engine, how):
    if "env -i" in how and Limits().trouble:
        pytest.skip("without control groups a process can hide its mark")
    script = f"({how} bash -c 'sleep 1000 & sleep 1000' &) ; sleep 0.2; exit 0"
    seen, folder = run(engine, effective(script))
    assert seen.phase is Phase.COMPLETE
    uid = Path(folder).name.partition("-")[2]
    assert processes_in("/astrago~" + uid) == []


def test_a_full_disk_for_logs_does_not_end_the_training(tmp_path):
    """The data folder on a small tmpfs: the log has no room, the status waits for some."""
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", small]).returncode:
        pytest.skip("no right to mount")
    try:
        engine = LocalEngine(small / "data", isolation="plain", log_limits=LogLimits(reserve=0))
        go_on = tmp_path / "go-on"
        script = f"head -c 4000000 /dev/zero; until [ -e {go_on} ]; do sleep 0.05; done; echo end"

        async def scenario():
            handle = a_handle()
            await engine.apply(handle, effective(script))
            log_file = engine.logs(handle) / "logs/0/job-node-0-0/node.log"
            full = lambda _: log_file.exists() and os.statvfs(small).f_bavail == 0  # noqa: E731
            await until(engine, handle, full)
            os.truncate(log_file, 0)
            go_on.touch()
            return await until_over(engine, handle), log_file.read_text()

        seen, text = asyncio.run(scenario())
        assert seen.phase is Phase.COMPLETE
        assert re.search(r"\[astrago: \d+ bytes in 0 lines could not be written: .+\]\n", text)
        assert text.endswith("end\n")
        assert any("cannot be written: No space left" in event.message for event in seen.events)
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def test_a_supervisor_that_cannot_work_is_told_and_not_waited_for(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "notices").write_text("no folder")
    seen, _ = run(LocalEngine(tmp_path / "data", isolation="plain"), effective())
    assert (seen.phase, seen.reason) == (Phase.FAILED, "SupervisorFailed")
    assert "its supervisor broke: " in seen.message
    assert "notices" in seen.message


def test_what_can_never_fit_runs_with_what_there_is_or_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("ASTRAGO_LOCAL_CPUS", "1")
    monkeypatch.setenv("ASTRAGO_LOCAL_GPUS", "0")
    much = {
        "resources": {
            "requests": {"cpu": "1500m", "memory": "1Ti", "nvidia.com/gpu": "1"},
            "limits": {"cpu": "64", "memory": "2Ti", "nvidia.com/gpu": "1"},
        }
    }
    script = "echo visible=${CUDA_VISIBLE_DEVICES-unset}."

    job = effective(script, nodes=2, container=much)

    done, folder = run(LocalEngine(tmp_path / "data", isolation="plain"), job)
    assert done.phase is Phase.COMPLETE
    assert (done.reason, done.message) == ("AllJobsCompleted", "jobset completed successfully")
    (told,) = [each.message for each in done.events if each.reason == "Squeezed"]
    assert told.startswith("asked for 64 CPU, 2048Gi and 1 GPU per node on 2 nodes; ")
    assert re.search(r"; this machine has 1 CPU, [\d.]+Gi and no GPU: runs on CPU$", told)
    assert [log(folder, rank=rank) for rank in (0, 1)] == ["visible=.\n"] * 2
    monkeypatch.setenv("ASTRAGO_LOCAL_OVERSIZE", "refuse")
    with pytest.raises(EngineRejected, match="asked for 64 CPU, 2048Gi and 1 GPU") as refused:
        run(LocalEngine(tmp_path / "strict", isolation="plain"), job)
    assert refused.value.reason == "TooLarge"
    assert "and no GPU: too small. Ask for less" in str(refused.value)
    monkeypatch.setenv("ASTRAGO_LOCAL_OVERSIZE", "maybe")
    with pytest.raises(InvalidRequest, match="squeeze, refuse"):
        LocalEngine(tmp_path / "data")


def test_pods_beyond_the_last_gpu_see_none(tmp_path, monkeypatch):
    monkeypatch.setenv("ASTRAGO_LOCAL_GPUS", "1")
    one = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    job = effective("echo visible=${CUDA_VISIBLE_DEVICES-unset}.", nodes=2, container=one)
    done, folder = run(LocalEngine(tmp_path / "data", isolation="plain"), job)
    assert done.phase is Phase.COMPLETE
    assert [log(folder, rank=rank) for rank in (0, 1)] == ["visible=0.\n", "visible=.\n"]
    (told,) = [each.message for each in done.events if each.reason == "Squeezed"]
    assert "asked for 1 GPU per node on 2 nodes; " in told
    assert told.endswith(" and 1 GPU: runs with what there is")


def with_paths(**paths):
    names = {"checkpoints": "ASTRAGO_CHECKPOINT_DIR", "resume_from": "ASTRAGO_RESUME_FROM"}
    return {"env": [{"name": names[key], "value": value} for key, value in paths.items()]}


def test_checkpoints_without_a_volume_outlive_attempts_and_jobs(engine):
    """The path is none of the machine's: it is a folder of the namespace."""
    script = (
        'mkdir -p -- "$ASTRAGO_CHECKPOINT_DIR" || exit 1; cd "$ASTRAGO_CHECKPOINT_DIR"; '
        "echo $ASTRAGO_ATTEMPT >> saved; cat saved; [ $ASTRAGO_ATTEMPT = 1 ]"
    )
    container = with_paths(checkpoints="/no-such-place/run 1/")
    job = effective(
        script, container=container, job_set={"failurePolicy": {"maxRestarts": 1}}, **GROUP
    )
    seen, folder = run(engine, job)
    assert (seen.phase, seen.attempt) == (Phase.COMPLETE, 1)
    assert log(folder, attempt=1) == "0\n1\n"
    asyncio.run(engine.stop(a_handle()))
    kept = engine.claims("team") / "_checkpoints" / "no-such-place" / "run 1" / "saved"
    assert kept.read_text() == "0\n1\n"

    later = with_paths(checkpoints="/no-such-place/other", resume_from="/no-such-place/run 1")
    job = effective('cat "$ASTRAGO_RESUME_FROM/saved"; ls $ASTRAGO_CHECKPOINT_DIR', container=later)
    seen, folder = run(engine, job)
    assert (seen.phase, log(folder)) == (Phase.COMPLETE, "0\n1\n")


def test_checkpoints_on_a_volume_or_in_a_folder_of_the_machine_are_there(viewed, tmp_path):
    volumes = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}
    mounts = {"volumeMounts": [{"name": "d", "mountPath": "/data"}]}
    script = 'mkdir -p -- "$ASTRAGO_CHECKPOINT_DIR" && touch "$ASTRAGO_CHECKPOINT_DIR/saved"'
    on_claim = with_paths(checkpoints="/data/run") | mounts
    seen, _ = run(viewed, effective(script, container=on_claim, pod=volumes))
    assert seen.phase is Phase.COMPLETE
    assert (viewed.claims("team") / "data" / "run" / "saved").exists()
    here = with_paths(checkpoints=str(tmp_path / "new" / "run"))
    seen, _ = run(viewed, effective(script, container=here))
    assert seen.phase is Phase.COMPLETE
    assert (tmp_path / "new" / "run" / "saved").exists()
    assert not (viewed.claims("team") / "_checkpoints").exists()


def test_a_path_to_resume_from_that_was_never_saved_is_not_made_up(viewed):
    job = effective('test ! -e "$ASTRAGO_RESUME_FROM"', container=with_paths(resume_from="/no/ck"))
    assert run(viewed, job)[0].phase is Phase.COMPLETE


@pytest.mark.req("M113")
def test_the_machine_is_the_only_node_and_shows_who_has_it(viewed, monkeypatch):
    monkeypatch.setenv("ASTRAGO_LOCAL_CPUS", "4")
    monkeypatch.setenv("ASTRAGO_LOCAL_GPUS", "2")
    needs = {"resources": {"requests": {"cpu": "1500m", "memory": "64Mi", "nvidia.com/gpu": "1"}}}

    async def scenario():
        (before,) = await viewed.nodes()
        handle = a_handle()
        await viewed.apply(handle, effective("sleep 1000", container=needs))
        await until(viewed, handle, lambda seen: seen.phase is Phase.RUNNING)
        (during,) = await viewed.nodes()
        await viewed.stop(handle)
        (after,) = await viewed.nodes()
        return handle, before, during, after

    handle, before, during, after = asyncio.run(scenario())
    assert (before.capacity.cpu, before.capacity.gpus, before.used) == (4.0, 2, Amounts())
    used = Amounts(1.5, 64 * 2**20, 1)
    assert during.used == used
    assert during.shares == (NodeShare(handle.namespace, handle.name, 1, used),)
    assert (during.free.cpu, during.free.gpus) == (2.5, 1)
    assert after.used == Amounts()


SECRETS = {
    "HF_TOKEN": "hf-secret",
    "AWS_SECRET_ACCESS_KEY": "aws-secret",
    "ASTRAGO_DATABASE": "postgresql://astrago:db-secret@db/astrago",
    "https_proxy": "http://me:proxy-secret@proxy:3128",
}
ITS_OWN_AND_THOSE_ABOVE = """
process=$BASHPID
while [ "$process" -gt 1 ]; do
    tr '\\0' '\\n' < /proc/$process/environ
    process=$(awk '{print $4}' /proc/$process/stat)
done
"""


@pytest.mark.parametrize(
    ("named", "expected"), [("", set()), ("HF_TOKEN, https_proxy", {"HF_TOKEN", "https_proxy"})]
)
def test_secrets_of_the_server_reach_no_job_unless_they_are_named(
    engine, monkeypatch, named, expected
):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("ASTRAGO_LOCAL_ENV", named)
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    seen, folder = run(engine, effective(ITS_OWN_AND_THOSE_ABOVE))
    assert seen.phase is Phase.COMPLETE
    lines = log(folder).splitlines()
    found = {name for name, value in SECRETS.items() if any(value in line for line in lines)}
    assert found == expected
    assert "http_proxy=http://proxy:3128" in lines
