"""A tenant that does harm on a cluster: floods, huge requests, a namespace that goes. Others must not notice."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.cluster.api import PATIENCE
from tests.cluster.service.people import Person, a_server

QUIET_SECONDS = 1.0
"""In which the status of a job is answered on a machine that runs a cluster beside the tests."""
MOST_MEMORY = 400 << 20
FLOOD = """
import sys, time
block = ("x" * 199 + "\\n") * 5000
for _ in range(60):  # 60 MB, as fast as the node takes it
    sys.stdout.write(block)
print("the end of the flood", flush=True)
"""


def status_seconds(person: Person, name: str) -> float:
    begin = time.monotonic()
    person.client.get(name)
    return time.monotonic() - begin


def memory_of(pid: int) -> int:
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * 4096


def test_a_flood_of_lines_through_the_kubelet_is_bounded_and_others_are_answered(
    runtimes, newcomer, tmp_path
):
    limits = {"ASTRAGO_LOG_MAX_BYTES": str(4 << 20)}
    with a_server(tmp_path / "data", **limits) as server:
        ann, bob = newcomer(server.address), newcomer(server.address)
        quiet = bob.submit("print('quiet')")
        loud = ann.submit(FLOOD, resources={"cpu": {"request": "50m", "limit": 1}, "memory": "1Gi"})
        waits = []
        for _ in ann.client.watch(loud.name, timeout_seconds=PATIENCE):
            waits.append(status_seconds(bob, quiet.name))
            assert memory_of(server.process.pid) < MOST_MEMORY
        assert ann.client.get(loud.name).phase == "Complete"
        kept = sum(
            path.stat().st_blocks * 512
            for path in (tmp_path / "data").rglob("*.log")
            if loud.name in str(path)
        )
        assert kept < 16 << 20
        assert ann.lines(loud.name, tail=1) == ["the end of the flood"]
        assert max(waits) < QUIET_SECONDS
        assert bob.wait(quiet.name).phase == "Complete"


def test_a_namespace_that_is_deleted_under_a_running_job_is_reported_and_stops_nobody(
    ann, bob, kubectl
):
    running = ann.submit("import time; time.sleep(1000)")
    other = bob.submit("import time; time.sleep(1000)")
    for person, job in ((ann, running), (bob, other)):
        person.until(job.name, lambda seen: seen.phase == "Running")
    kubectl("delete", "namespace", ann.namespace, "--wait=false")
    ended = ann.until(running.name, lambda seen: seen.phase in ("Failed", "Restarting", "Deleting"))
    assert ended.message
    assert bob.client.get(other.name).phase == "Running"
    again = ann.ask(
        "POST",
        f"/api/v1/namespaces/{ann.namespace}/jobs",
        {"user": ann.user, "framework": "pytorch", "nodes": 1, "code": {"inline": "print(1)"}},
    )
    assert again.status_code < 500 or again.status_code == 503, again.text
    assert bob.wait(bob.submit("print('fine')").name).phase == "Complete"


@pytest.mark.parametrize("size", [250 * 1024, 300 * 1024])
def test_huge_annotations_are_taken_or_refused_with_their_size(ann, bob, size):
    wanted = {"annotations": {"example.com/huge": "x" * size}}
    body = {
        **{"user": ann.user, "framework": "pytorch", "nodes": 1, "code": {"inline": "print(1)"}},
        **wanted,
    }
    answer = ann.ask("POST", f"/api/v1/namespaces/{ann.namespace}/jobs", body)
    if size < 256 * 1024:
        assert answer.status_code == 201, answer.text
        assert ann.wait(answer.json()["name"]).phase == "Complete"
    else:
        assert answer.status_code == 422, answer.text
        assert any(each["path"] == "annotations" for each in answer.json()["errors"])
    assert list(bob.client.list()) == []
