"""Jobs from the command line, with nothing but the data folder: begun, seen, left, found again, ended."""

from __future__ import annotations

import asyncio
import json
import platform
import re
import signal
import sys
from pathlib import Path

import pytest
import yaml

from astrago_trainer.cli.here import glance
from astrago_trainer.cli.terminal import cut
from astrago_trainer.service.service import Service

from .conftest import Astrago
from .jobs import (
    CONTROL,
    FAILS,
    HELLO,
    PATIENCE,
    SMALL,
    WAITS,
    on_terminal,
    script,
    shown_lines,
    start,
    until_line,
)
from .test_main import cpu_seconds

pytestmark = pytest.mark.usefixtures("data")


def test_a_script_runs_on_two_nodes_and_everything_is_told(
    tmp_path: Path, astrago: Astrago
) -> None:
    file = script(tmp_path, HELLO)
    argv = ("--nodes", "2", "--name", "two", "--env", "COLOUR=red", *SMALL, "--", "--epochs", "3")
    run = astrago("run", file, *argv)
    assert run.code == 0
    for rank in (0, 1):
        assert f"{rank} │ hello from {rank} of 2 ['--epochs', '3'] red\n" in run.out
        assert f"{rank} │ step 3 loss=0.333\n" in run.out
    assert run.err.startswith("two: pytorch, 2 nodes, local engine\n")
    assert "✓ Complete after" in run.err
    assert "astrago status two" in run.err

    listed = astrago("list")
    assert listed.out.splitlines()[0].split() == ["NAME", "PHASE", "NODES", "AGE", "TOOK", "WHY"]
    assert listed.out.splitlines()[1].split()[:3] == ["two", "Complete", "2"]
    status = astrago("status", "two")
    assert status.code == 0
    assert "AllJobsCompleted: jobset completed successfully" in status.out
    node = platform.node()
    for rank in (0, 1):
        assert re.search(
            rf"^{rank} +{re.escape(cut(node, 15))} +127\.\S+ +Succeeded", status.out, re.M
        )
    wide = astrago("status", "two", "-o", "wide").out
    assert re.search(rf"^1 +two-node-0-1 +{re.escape(node)} +127\.", wide, re.M)
    assert "by kim" in astrago("events", "two").out
    mean = astrago("metrics", "two").out.splitlines()
    assert mean[0] == "Mean of the ranks 0, 1; --rank all shows each."
    assert mean[-1].split()[:5] == ["loss", "1", "0.333", "0.333", "3"]
    each = astrago("metrics", "two", "--rank", "all").out.splitlines()
    assert [line.split()[:4] for line in each] == [
        ["NAME", "RANK", "FIRST", "LAST"],
        ["loss", "0", "1", "0.333"],
        ["loss", "1", "1", "0.333"],
    ]
    one = json.loads(astrago("metrics", "two", "--rank", "1", "-o", "json").out)
    assert (one["ranks"], one["other_ranks"], len(one["series"]["loss"])) == ([0, 1], [], 3)
    none = astrago("metrics", "two", "--rank", "7")
    assert none.out == "No numbers of rank 7; there are some of 0, 1.\n"
    assert "must be the number of a rank" in astrago("metrics", "two", "--rank", "x").err
    assert "Every node ended with success." in astrago("explain", "two").out

    logs = astrago("logs", "two", "--rank", "1", "--grep", "loss", "--tail", "2")
    assert logs.out == "step 2 loss=0.500\nstep 3 loss=0.333\n"
    assert astrago("logs", "two", "--rank", "7").code == 102
    assert "has no attempt 3; it has 0 alone" in astrago("logs", "two", "--attempt", "3").err
    assert astrago("logs", "two", "--grep", "nothing") == (0, "", "No line matches.\n")
    assert astrago("delete", "two") == (0, "two is deleted.\n", "")
    assert astrago("status", "two").code == 102
    assert "No jobs in the namespace kim yet" in astrago("list").out


def test_a_job_larger_than_the_machine_runs_and_says_what_it_did_not_get(
    tmp_path: Path, astrago: Astrago, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASTRAGO_LOCAL_CPUS", "2")
    monkeypatch.setenv("ASTRAGO_LOCAL_GPUS", "0")
    file = script(tmp_path, HELLO)
    size = ("--nodes", "2", "--cpus", "4", "--memory", "64Mi", "--gpus", "1")
    run = astrago("run", file, "--name", "large", *size)
    assert run.code == 0
    first, second = run.err.splitlines()[:2]
    assert first == "large: pytorch, 2 nodes with 1 GPU each, local engine"
    assert second.startswith("asked for 4 CPU, 64Mi and 1 GPU per node on 2 nodes; ")
    assert second.endswith(" and no GPU: runs on CPU")
    assert re.search(rf"^got +less: {re.escape(second)}$", astrago("status", "large").out, re.M)
    assert f"  A{second[1:]}.\n" in astrago("explain", "large").out
    monkeypatch.setenv("ASTRAGO_LOCAL_OVERSIZE", "refuse")
    refused = astrago("run", file, "--name", "strict", *size)
    assert refused.code != 0
    assert "TooLarge: asked for 4 CPU" in refused.err
    told = astrago("explain", "strict").out
    assert "ASTRAGO_LOCAL_OVERSIZE=squeeze" in told
    assert "astrago clone strict --namespace kim --nodes 1" in told
    assert "astrago logs" not in told
    assert "astrago restart" not in told


def test_the_folder_for_checkpoints_is_there_and_stays(tmp_path: Path, astrago: Astrago) -> None:
    """A path that this machine does not have, and no volume: as the seeds' readers type it."""
    text = (
        "import os\n"
        "folder = os.environ['ASTRAGO_CHECKPOINT_DIR']\n"
        "print('found', sorted(os.listdir(folder)))\n"
        "open(f'{folder}/model.pt', 'w').close()\n"
    )
    file = script(tmp_path, text)
    for name, found in (("first", "found []"), ("second", "found ['model.pt']")):
        run = astrago("run", file, "--name", name, "--checkpoints", "/ck/run", *SMALL)
        assert (run.code, found in run.out) == (0, True), run.err
        assert astrago("delete", name).code == 0


def test_programs_get_the_api_s_json(tmp_path: Path, astrago: Astrago) -> None:
    file = script(tmp_path, HELLO)
    ran = astrago("run", file, "--name", "one", *SMALL, "-o", "json")
    assert ran.code == 0
    job = json.loads(ran.out)
    assert (job["name"], job["phase"], job["namespace"]) == ("one", "Complete", "kim")
    assert json.loads(astrago("status", "one", "-o", "json").out) == job
    assert yaml.safe_load(astrago("status", "one", "-o", "yaml").out)["uid"] == job["uid"]
    assert json.loads(astrago("list", "-o", "json").out) == {
        "items": [job],
        "next_page_token": None,
    }
    events = json.loads(astrago("events", "one", "-o", "json").out)["items"]
    assert set(events[0]) == {"number", "time", "actor", "reason", "message"}
    metrics = json.loads(astrago("metrics", "one", "-o", "json").out)
    assert [point[2] for point in metrics["series"]["loss"]] == [1.0, 0.5, 0.333]
    assert json.loads(astrago("explain", "one", "-o", "json").out)["phase"] == "Complete"
    lines = [json.loads(each) for each in astrago("logs", "one", "-o", "json").out.splitlines()]
    assert lines[-1]["text"] == "step 3 loss=0.333"
    assert {"attempt", "rank", "pod", "offset", "time", "text", "ended"} == set(lines[-1])
    assert json.loads(astrago("whoami", "-o", "json").out)["name"] == "kim"


def test_a_failure_is_explained_and_has_its_exit_code(tmp_path: Path, astrago: Astrago) -> None:
    file = script(tmp_path, FAILS)
    run = astrago("run", file, "--name", "bad", "--nodes", "2", "--max-restarts", "1", *SMALL)
    assert run.code == 100
    assert "── attempt 2 of 2" in run.err
    assert "✗ Failed after" in run.err
    assert "with 1 restart: bad" in run.err
    assert "ValueError: a bad rate" in run.err
    assert "astrago explain bad" in run.err
    shown = [run, *(astrago(*each) for each in _LOOKS)]
    assert astrago("status", "bad").code == 100
    for each in shown:
        assert not CONTROL.search(each.all), "nothing of the training reaches a terminal as it is"
    assert "\\x1b]0;owned\\x07" in run.out

    sent = [on_terminal(*each) for each in _LOOKS]
    sent.append(on_terminal("run", file, "--nodes", "2", "--max-restarts", "0", *SMALL))
    assert sent[-1].code == 100
    for each in sent:
        for line in shown_lines(each.out):
            assert not CONTROL.search(line)
            assert len(line) <= 80


_LOOKS = (
    ("logs", "bad"),
    ("list",),
    ("status", "bad"),
    ("events", "bad"),
    ("explain", "bad"),
    ("metrics", "bad"),
    ("whoami",),
)


def test_ctrl_c_leaves_the_job_running_and_says_how_to_come_back(
    tmp_path: Path, astrago: Astrago
) -> None:
    file = script(tmp_path, WAITS)
    with start("run", file, "--name", "long", *SMALL) as process:
        until_line(process, "begun")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 101
    assert "long continues without you." in err
    assert "astrago logs -f long" in err
    assert "Traceback" not in err
    assert astrago("status", "long").code == 101

    with start("logs", "-f", "long") as process:
        until_line(process, "begun")
        assert astrago("delete", "long").code == 0
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 103
    assert "long was deleted." in err


def test_who_presses_ctrl_c_twice_is_let_go(tmp_path: Path) -> None:
    with start("run", script(tmp_path, WAITS), "--name", "long", *SMALL) as process:
        until_line(process, "begun")
        for _ in range(3):
            process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode in (101, 130)
    assert "bug" not in err
    assert "Traceback" not in err


def test_ctrl_c_works_in_a_flood_of_lines(tmp_path: Path) -> None:
    """More than is printed at once waits between the log and the terminal then."""
    flood = 'for number in range(1_000_000):\n    print("line", number, "x" * 100)\n'
    with start("run", script(tmp_path, flood + WAITS), "--name", "flood", *SMALL) as process:
        until_line(process, "line 5000 ")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 101
    assert "flood continues without you" in err


def test_a_detached_job_is_suspended_resumed_cloned(tmp_path: Path, astrago: Astrago) -> None:
    file = script(tmp_path, WAITS)
    begun = astrago("run", file, "--detach", "--name", "long", *SMALL)
    assert (begun.code, begun.out) == (0, "long\n")
    assert "astrago logs -f long" in begun.err
    assert astrago("suspend", "long").out.startswith("long: Suspended")
    assert astrago("status", "long").code == 101
    assert astrago("resume", "long").code == 0
    assert astrago("status", "long", "-o", "json").code == 101
    assert not json.loads(astrago("status", "long", "-o", "json").out)["is_suspended"]
    again = astrago("restart", "long", "-o", "json")
    assert json.loads(again.out)["run"] == 2
    assert astrago("clone", "long", "--as", "other", "-d").out == "other\n"
    assert re.search("^cloned from +long$", astrago("status", "other").out, re.M)
    assert astrago("run", file, "--name", "long", *SMALL).err.count("already") == 1
    assert astrago("delete", "long", "nobody").code == 102
    assert astrago("delete", "long", "other").out == "long is deleted.\nother is deleted.\n"


@pytest.mark.parametrize(
    "argv",
    [
        ["status", "no"],
        ["logs", "no"],
        ["logs", "-f", "no"],
        ["events", "no"],
        ["metrics", "no"],
        ["explain", "no"],
        ["suspend", "no"],
        ["resume", "no"],
        ["restart", "no"],
        ["clone", "no"],
        ["delete", "no"],
    ],
    ids=" ".join,
)
def test_what_is_not_there_has_its_exit_code(argv: list[str], astrago: Astrago) -> None:
    assert astrago(*argv) == (102, "", "astrago: there is no job 'no' in the namespace 'kim'.\n")


@pytest.mark.parametrize(
    "argv",
    [
        ["run"],
        ["run", "a.py", "--nodes", "two"],
        ["run", "a.py", "--volume", "data"],
        ["run", "a.py", "--volume", "data=claim:relative"],
        ["run", "a.py", "--env", "NOT_SET_ANYWHERE"],
        ["logs", "a", "--grep", "("],
        ["list", "--phase", "Asleep"],
        ["list", "--limit", "0"],
        ["list", "--server", "http://x", "--data", "y"],
        ["tokens", "revoke"],
        ["tokens", "list", "x"],
        ["tenants", "add", "team"],
        ["tenants", "list", "team"],
        ["convert"],
        ["login"],
        ["apply"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_2(argv: list[str], astrago: Astrago, tmp_path: Path) -> None:
    script(tmp_path, HELLO, "a.py")
    result = astrago(*(tmp_path / each if each == "a.py" else each for each in argv))
    assert result.code == 2
    assert "error:" in result.err
    assert not result.out


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path, astrago: Astrago) -> None:
    file = script(tmp_path, HELLO)
    result = astrago("run", file, "--nodes", "0", "--memory", "much", "--env", "RANK=1")
    assert result.code == 1
    for field in ("nodes", "resources.memory.limit", "env[0].name"):
        assert f"error    {field}\n" in result.err
    assert astrago("run", tmp_path / "none.py").code == 1
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe")
    assert "must be UTF-8" in astrago("run", tmp_path / "bytes.py").err
    (tmp_path / "large.py").write_text("#" * (2 << 20))
    assert "1 MiB at most" in astrago("run", tmp_path / "large.py").err


def test_a_job_file_is_applied(tmp_path: Path, astrago: Astrago) -> None:
    file = tmp_path / "job.yaml"
    code = {"inline": HELLO}
    small = {"cpu": "50m", "memory": "64Mi"}
    spec = {"name": "filed", "framework": "pytorch", "code": code, "resources": small}
    file.write_text(yaml.safe_dump(spec))
    result = astrago("apply", "-f", file, "--follow")
    assert result.code == 0
    assert "step 3 loss=0.333" in result.out
    file.write_text("kind: Pod\napiVersion: v1\n")
    refused = astrago("apply", "-f", file)
    assert refused.code == 1
    assert "found Pod" in refused.err
    file.write_text("{}\n---\n{}\n")
    assert "expected one job, found 2 documents" in astrago("apply", "-f", file).err


def test_an_environment_stands_in_for_an_image(
    tmp_path: Path, astrago: Astrago, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "env" / "bin"
    programs.mkdir(parents=True)
    python = programs / "python"
    python.write_text(f'#!/bin/sh\necho "stand-in for $1"\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("ASTRAGO_ENVIRONMENTS", f"my/*={tmp_path / 'env'}")
    file = script(tmp_path, HELLO)
    assert "stand-in" in astrago("run", file, "--image", "my/torch:1", *SMALL).out
    monkeypatch.setenv("ASTRAGO_ENVIRONMENTS", "my/*=/nowhere;nonsense")
    refused = astrago("run", file, *SMALL)
    assert refused.code == 1
    assert "there is no folder /nowhere" in refused.err
    assert "found 'nonsense'" in refused.err
    monkeypatch.delenv("ASTRAGO_ENVIRONMENTS")


def test_a_glance_at_the_database_shows_what_the_service_would(
    tmp_path: Path, data: Path, astrago: Astrago
) -> None:
    file = script(tmp_path, HELLO)
    for name in ("a", "b"):
        assert astrago("run", file, "--name", name, *SMALL).code == 0
    assert astrago("clone", "a", "--as", "c").code == 0

    async def listed(limit: int) -> dict[str, object]:
        async with Service.on_this_machine(data) as service:
            page = service.list("kim", limit=limit)
            items = [json.loads(each.body) for each in page.records]
            return {"items": items, "next_page_token": page.next_token}

    for limit in (2, 3, 50):
        assert glance(data / "astrago.db", "kim", limit) == asyncio.run(listed(limit))
    assert glance(data / "astrago.db", "kim", 50) == glance(data / "astrago.db", None, 50)
    assert glance(data / "none.db", "kim", 50) is None
    (data / "text.db").write_text("no database")
    assert glance(data / "text.db", "kim", 50) is None

    assert cpu_seconds(tmp_path, "list") <= 0.15, "a list costs at most 150 ms of CPU"
    waits = script(tmp_path, WAITS)
    assert astrago("run", waits, "--name", "d", "-d", *SMALL).code == 0
    assert glance(data / "astrago.db", "kim", 50) is None, "how it stands is the engine's to say"


def test_tokens_are_shown_once(astrago: Astrago, data: Path) -> None:
    assert astrago("tokens").out == "No tokens.\n"
    assert "there is no user 'kim'" in astrago("tokens", "create").err
    assert astrago("tokens", "revoke", "none").code == 102


def test_the_service_in_this_process_is_local_only(
    astrago: Astrago, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASTRAGO_ENGINE", "kubernetes")
    result = astrago("list")
    assert result.code == 1
    assert "ASTRAGO_ENGINE" in result.err
