"""The verbs of the service, and a server that is killed in the middle: on the cluster as on one machine."""

from __future__ import annotations

import hashlib
import json

import pytest
from tests.cluster.service.people import a_server

SLEEPS = "import time\nprint('begun', flush=True)\ntime.sleep(1000)\n"
COUNTS = """
import hashlib, os, time
whole = hashlib.sha256()
rank = os.environ["RANK"]
for number in range(1, 12001):
    line = f"{rank} step {number} loss={1 / number:.6f} " + "x" * (number % 97)
    whole.update(line.encode() + b"\\n")
    print(line, flush=number % 50 == 0)
    time.sleep(0.0008)
print("sha256", whole.hexdigest(), flush=True)
"""


def test_suspend_takes_the_pods_and_resume_brings_them_again(ann):
    job = ann.submit(SLEEPS, name="job")
    ann.until("job", lambda job: job.phase == "Running")
    ann.client.suspend("job")
    ann.until("job", lambda job: job.phase == "Suspended")
    left = [pod["status"]["phase"] for pod in ann.space.list("pods")]
    assert set(left) <= {"Succeeded", "Failed"}
    assert ann.space.get("trainjobs", "job")["spec"]["suspend"] is True
    ann.client.resume("job")
    again = ann.until("job", lambda job: job.phase == "Running")
    assert (again.uid, again.run) == (job.uid, 1)
    ann.delete("job")


def test_a_restart_is_a_new_run_and_a_clone_a_new_job(ann):
    ann.submit("print('hello')\n", name="job")
    assert ann.wait("job").has_succeeded
    first = ann.space.get("trainjobs", "job")["metadata"]["uid"]
    ann.client.restart("job")
    ann.until("job", lambda job: job.run == 2)
    assert ann.wait("job").run == 2
    assert ann.space.get("trainjobs", "job")["metadata"]["uid"] != first
    copy = ann.client.clone("job", name="copy", nodes=2)
    assert copy.cloned_from == "job"
    assert ann.wait(copy.name).has_succeeded
    assert len(ann.space.list("trainjobs")) == 2


@pytest.mark.req("M14", "X4")
def test_whoever_deletes_a_job_and_submits_another_at_once_runs_the_new_code(ann):
    """Its files have the name of the old ones, which the node has just had (decision 10)."""
    for number in range(4):
        ann.submit(f"print('this is {number}', flush=True)\n", name="job")
        assert ann.wait("job").has_succeeded
        code = ann.space.get("configmaps", f"{ann.user}-train-script")
        assert f"this is {number}" in code["data"]["train.py"]
        assert ann.lines("job")[-1] == f"this is {number}"
        ann.delete("job")


@pytest.mark.req("M67", "M84", "M134", "X9")
def test_when_its_time_is_over_the_trainjob_goes_and_its_history_stays(ann):
    ann.submit("print('remember me')\n", name="job", ttl_seconds=1)
    assert ann.wait("job").has_succeeded
    for kind in ("trainjobs", "pods"):
        ann.space.until_gone(kind)
    job = ann.client.get("job")
    assert job.phase == "Complete"
    assert ann.lines("job")[-1] == "remember me"
    status = ann.first("GET", "job/status", namespace=ann.namespace)
    assert (status["state"], status["message"]) == ("Complete", "jobset completed successfully")


@pytest.mark.req("M114", "M115")
def test_a_rank_that_fails_restarts_all_and_the_count_is_kept(ann):
    script = "import os, sys\nos.environ['RANK'] == '1' and sys.exit('rank 1 is tired')\n"
    ann.submit(script + "import time; time.sleep(1000)\n", name="job", nodes=2, max_restarts=1)
    again = ann.until("job", lambda job: job.restarts == 1)
    assert again.max_restarts == 1
    job = ann.wait("job")
    assert (job.phase, job.restarts) == ("Failed", 1)
    assert job.message.startswith("rank 1 ended with exit code 1")
    assert "rank 1 is tired" in job.message
    assert "all 1 restarts are used up" in job.message
    for attempt in (0, 1):
        assert "rank 1 is tired" in ann.lines("job", 1, attempt=attempt)


def test_progress_is_read_from_the_log(ann):
    script = "for step in range(1, 6): print(f'step {step} loss={1 / step:.4f}', flush=True)\n"
    ann.submit(script, name="job")
    assert ann.wait("job").has_succeeded
    points = ann.client.metrics("job")["loss"]
    assert [(point.step, point.value) for point in points] == [
        (step, pytest.approx(1 / step, abs=1e-4)) for step in range(1, 6)
    ]


def test_search_tail_and_download_come_from_the_store(ann):
    script = "for number in range(500): print('line', number)\nprint('needle')\n"
    ann.submit(script, name="job", nodes=2)
    assert ann.wait("job").has_succeeded
    base = f"/api/v1/namespaces/{ann.namespace}/jobs/job/logs"
    ann.space.delete("trainjobs", "job")
    ann.space.until_gone("pods")
    assert ann.lines("job", 0, tail=1) == ["needle"]
    found = ann.ask("GET", f"{base}?grep=needle&format=ndjson").text.splitlines()
    hits = [each for each in map(json.loads, found) if "text" in each]
    assert [(each["rank"], each["text"]) for each in hits] == [(0, "needle"), (1, "needle")]
    text = ann.ask("GET", f"{base}?rank=1&format=text").text
    assert text.count("line ") == 500


def test_a_server_killed_in_the_middle_loses_nothing(newcomer, runtimes, tmp_path):
    data = tmp_path / "data"
    with a_server(data) as server:
        ann = newcomer(server.address)
        ann.submit(COUNTS, name="job", nodes=2)
        seen = 0
        for line in ann.client.logs("job", follow=True, rank=1):
            seen += "step" in line.text
            if seen == 3000:
                break
        server.kill()
    with a_server(data) as server:
        ann = ann.at(server.address)
        job = ann.wait("job")
        assert (job.phase, job.restarts, job.run) == ("Complete", 0, 1), job
        assert len(ann.space.list("trainjobs")) == 1
        for rank in (0, 1):
            lines = ann.lines("job", rank)
            *steps, last = lines[
                next(place for place, line in enumerate(lines) if "step" in line) :
            ]
            assert len(steps) == 12000
            whole = hashlib.sha256("".join(f"{line}\n" for line in steps).encode()).hexdigest()
            assert last == f"sha256 {whole}"
