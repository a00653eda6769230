"""The SDK against the real server: everything a user does with jobs, in both forms; and its manual."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from astrago_trainer.client import (
    AsyncTrainerClient,
    Conflict,
    NotFound,
    Refused,
    TrainerClient,
    Unavailable,
)
from astrago_trainer.core.spec import parse_job_spec

from .servers import a_server

SMALL = {"cpu": "50m", "memory": "64Mi"}
HELLO = """
import sys
print("hello", *sys.argv[1:])
for step in range(1, 4):
    print(f"step {step} loss={1 / step:.3f}")
"""
WAITS = """
import time
print("begun", flush=True)
time.sleep(600)
"""
MANUAL = Path(__file__).parents[2] / "docs" / "sdk.md"


@pytest.fixture
def train(tmp_path: Path) -> Path:
    file = tmp_path / "train.py"
    file.write_text(HELLO)
    return file


def test_a_script_runs_and_is_followed(url: str, train: Path) -> None:
    client = TrainerClient(url, namespace="first")
    job = client.run(train, "--epochs", "3", name="a", nodes=2, resources=SMALL)
    assert (job.name, job.namespace, job.nodes) == ("a", "first", 2)
    lines = [each for each in client.logs("a", follow=True) if each.is_ended]
    for rank in (0, 1):
        said = [each.text for each in lines if each.rank == rank]
        assert said[-4:] == ["hello --epochs 3", *(f"step {n} loss={1 / n:.3f}" for n in (1, 2, 3))]
    ended = client.wait("a")
    assert ended.is_over
    assert ended.has_succeeded
    assert client.get("a") == ended
    history = [each.text for each in client.logs("a", rank=1, tail=1)]
    assert history == ["step 3 loss=0.333"]
    assert [each.text for each in client.logs("a", rank=0, grep="step 2")] == ["step 2 loss=0.500"]
    assert client.events("a")[0].reason == "Accepted"
    for rank in (0, 1, "mean"):
        assert client.metrics("a", rank=rank)["loss"][-1].value == 0.333
    assert client.metrics("a", rank=7) == {}
    assert client.metrics("a") == client.metrics("a", rank=0)
    assert [each["rank"] for each in client.pods("a")] == [0, 1]
    assert client.explain("a")["phase"] == "Complete"
    with pytest.raises(NotFound):
        list(client.logs("a", rank=7))


def test_the_server_searches_and_sends_what_matches_alone(url: str, tmp_path: Path) -> None:
    """More matches than a page has, in two ranks, in the order of time and each once; in both forms."""
    file = tmp_path / "many.py"
    file.write_text("for n in range(2500):\n    print('hit', n)\n    print('miss', n)\n")
    client = TrainerClient(url, namespace="found")
    client.run(file, name="many", nodes=2, resources={"cpu": "500m", "memory": "64Mi"})
    client.wait("many")

    lines = list(client.logs("many", grep="^hit"))

    async def again() -> list[str]:
        async with AsyncTrainerClient(url, namespace="found") as other:
            return [each.text async for each in other.logs("many", grep="^hit")]

    assert len(lines) == 5000
    for rank in (0, 1):
        said = [each.text for each in lines if each.rank == rank]
        assert said == [f"hit {n}" for n in range(2500)]
    times = [each.time or 0.0 for each in lines]
    assert times == sorted(times)
    assert asyncio.run(again()) == [each.text for each in lines]
    assert [each.text for each in client.logs("many", rank=1, tail=4, grep="hit")] == [
        "hit 2498",
        "hit 2499",
    ]
    with pytest.raises(Refused):
        list(client.logs("many", grep="("))


def test_jobs_are_submitted_previewed_listed_and_cloned(url: str) -> None:
    client = TrainerClient(url, namespace="second")
    code = {"inline": HELLO}
    fields = {"framework": "pytorch", "code": code, "resources": SMALL}
    spec = parse_job_spec({"user": "kim", "namespace": "second", **fields})
    assert not client.preview(spec, nodes=2)["is_refused"]
    first = client.submit(spec, name="one", idempotency_key="k1")
    assert client.submit(spec, name="one", idempotency_key="k1").uid == first.uid
    with pytest.raises(Conflict):
        client.submit(spec, name="one")
    with pytest.raises(Refused) as caught:
        client.submit(fields, nodes=0, env=[{"name": "RANK", "value": "1"}])
    assert len(caught.value.problems) == 2
    two = client.clone("one", name="two", nodes=2)
    assert (two.nodes, two.cloned_from, first.cloned_from) == (2, "one", None)
    assert client.wait("two").has_succeeded
    assert client.wait("one").has_succeeded
    assert [each.name for each in client.list()] == ["two", "one"]
    assert [each.name for each in client.list(text="tw", phase="Complete")] == ["two"]
    assert list(client.list(phase=["Failed", "Running"])) == []


def test_jobs_are_suspended_resumed_restarted_deleted(url: str) -> None:
    client = TrainerClient(url, namespace="third")
    job = client.submit(framework="pytorch", name="long", code={"inline": WAITS}, resources=SMALL)
    next(each for each in client.logs("long", follow=True) if each.text == "begun")
    assert client.suspend("long").raw["is_suspended"]
    next(each for each in client.watch("long") if each.phase == "Suspended")
    client.resume("long")
    next(each for each in client.watch("long") if each.phase == "Running")
    with pytest.raises(Unavailable, match="has not ended after"):
        client.wait("long", timeout_seconds=0.2)
    assert client.restart("long").uid == job.uid
    next(each for each in client.watch("long") if each.run == 2)
    with pytest.raises(Conflict):
        client.delete("long", uid="another")
    assert client.delete("long", uid=job.uid).phase == "Deleting"
    with pytest.raises(NotFound, match=r"was deleted|there is no job"):
        client.wait("long")


def test_the_asynchronous_client_does_the_same(url: str, train: Path) -> None:
    async def scenario() -> None:
        async with AsyncTrainerClient(url, namespace="fourth") as client:
            job = await client.run(train, name="a", nodes=2, resources=SMALL)
            lines = [each async for each in client.logs(job.name, follow=True) if each.is_ended]
            assert {each.rank for each in lines} == {0, 1}
            assert (await client.wait("a")).has_succeeded
            assert [each.text async for each in client.logs("a", rank=0, tail=1)] == [
                "step 3 loss=0.333"
            ]
            assert [each.name async for each in client.list()] == ["a"]
            assert (await client.events("a"))[0].reason == "Accepted"
            assert (await client.metrics("a", rank="mean"))["loss"][-1].value == 0.333
            with pytest.raises(NotFound):
                await client.get("b")
            with pytest.raises(Refused):
                await client.submit(framework="pytorch", nodes=0)
            long = await client.submit(
                framework="pytorch", name="long", code={"inline": WAITS}, resources=SMALL
            )
            with pytest.raises(Unavailable, match="has not ended after"):
                await client.wait("long", timeout_seconds=0.2)
            await client.delete("long", uid=long.uid)
            with pytest.raises(NotFound):
                await client.wait("long")

    asyncio.run(scenario())


def test_a_follower_survives_a_restart_of_the_server(tmp_path: Path) -> None:
    """Lines of before, during and after it come once each."""
    data, gate = tmp_path / "data", tmp_path / "gate"
    waits = f"""
import os, time
print("before", flush=True)
while not os.path.exists({str(gate)!r}):
    time.sleep(0.02)
print("after", flush=True)
"""
    with a_server(data) as url:
        port = int(url.rpartition(":")[2])
        client = TrainerClient(url, namespace="team")
        client.submit(framework="pytorch", name="a", code={"inline": waits}, resources=SMALL)
        lines = client.logs("a", follow=True)
        seen = [next(lines)]
        while seen[-1].text != "before":
            seen.append(next(lines))
    gate.touch()
    with a_server(data, port=port):
        seen += lines
        assert client.wait("a").has_succeeded
    texts = [each.text for each in seen if each.is_ended]
    assert texts.count("before") == 1
    assert texts[-1] == "after"
    assert len({each.offset for each in seen if each.is_ended}) == len(texts)


def test_the_examples_of_the_manual_run(url: str, train: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", MANUAL.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 3
    for number, block in enumerate(blocks):
        file = tmp_path / f"example_{number}.py"
        file.write_text(block)
        done = subprocess.run(
            [sys.executable, str(file)],
            cwd=train.parent,
            env={"ASTRAGO_SERVER": url, "ASTRAGO_USER": "kim", "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_the_import_is_light() -> None:
    """The synchronous client needs neither the server nor an HTTP library."""
    done = subprocess.run(
        [
            sys.executable,
            "-X",
            "importtime",
            "-c",
            "from astrago_trainer.client import TrainerClient",
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "astrago_trainer.client.session" in imported
    heavy = {"httpx", "asyncio", "pydantic", "sqlalchemy", "fastapi", "yaml", "http.client"}
    assert not heavy & imported
    ours = {name for name in imported if name.startswith("astrago_trainer.")}
    below = ("astrago_trainer.client", "astrago_trainer.core")
    assert all(name.startswith(below) for name in ours)
