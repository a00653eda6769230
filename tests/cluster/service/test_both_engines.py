"""One job file, two engines: the same effective objects, the same variables and files, the same result."""

from __future__ import annotations

import json

import pytest
from tests import patient
from tests.cluster.api import LINGER, PATIENCE
from tests.cluster.service.people import a_server
from tests.server.serving import a_process, bearer

from astrago_trainer.client import TrainerClient

SCRIPT = """
import hashlib, json, os, pathlib, socket, sys
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "EPOCHS", "SPECIAL", "PET_NNODES", "PET_NODE_RANK",
         "PET_NPROC_PER_NODE", "PET_MASTER_ADDR", "PYTHONUNBUFFERED", "JOB_COMPLETION_INDEX")
seen = {
    "variables": {name: os.environ.get(name) for name in names},
    "arguments": sys.argv[1:],
    "host": socket.gethostname(),
    "code": hashlib.sha256(pathlib.Path("/workspace/scripts/train.py").read_bytes()).hexdigest(),
    "mode": oct(os.stat("/workspace/scripts/train.py").st_mode & 0o777),
    "shared": sorted(each.name for each in pathlib.Path("/shared").iterdir() if not each.name.startswith(".")),
}
print("seen", json.dumps(seen, sort_keys=True), flush=True)
sys.exit(int(os.environ["CODE"]))
"""
SAME = {"ASTRAGO_JOB_URL": "http://astrago.example:8000"}
"""Where progress is reported; by default only the local engine knows an address."""
JOB = {
    "name": "same",
    "framework": "pytorch",
    "nodes": 2,
    "resources": {"cpu": {"request": "50m", "limit": 1}, "memory": "256Mi"},
    "env": [{"name": "EPOCHS", "value": "3"}, {"name": "SPECIAL", "value": 'a "b" $(EPOCHS) $c'}],
    "code": {"inline": LINGER + SCRIPT},
    "max_restarts": 0,
}


def job_of(person, nodes, code):
    """Of several ranks the first that fails ends the others, wherever they are: then one is enough."""
    return {
        **JOB,
        "nodes": nodes,
        "user": person.user,
        "namespace": person.namespace,
        "env": [*JOB["env"], {"name": "CODE", "value": str(code)}],
    }


def outcome(client, address, headers, body):
    """What is known of the job when it has ended."""
    client.submit(body)
    job = client.wait("same", timeout_seconds=PATIENCE)
    url = f"{address}/api/v1/namespaces/{body['namespace']}/jobs/same/manifest"
    manifest = patient.get(url, headers=headers, timeout=PATIENCE).json()
    seen = {}
    for rank in range(body["nodes"]):
        said = [each.text for each in client.logs("same", rank=rank)]
        (line,) = [each for each in said if each.startswith("seen")] or [job.message]
        assert line.startswith("seen"), line
        seen[rank] = json.loads(line.removeprefix("seen "))
    pods = [(each["rank"], each["exit_code"]) for each in client.pods("same")]
    return (job.phase, job.restarts, job.max_restarts), manifest, seen, pods


@pytest.mark.parametrize(("nodes", "code", "end"), [(2, 0, "Complete"), (1, 3, "Failed")])
def test_a_job_file_means_the_same_on_both(nodes, code, end, newcomer, runtimes, version, tmp_path):
    with a_server(tmp_path / "there", **SAME) as server:
        ann = newcomer(server.address)
        body = job_of(ann, nodes, code)
        there = outcome(ann.client, server.address, bearer(ann.token), body)
    dialect = {"ASTRAGO_TRAINER": version}
    with a_process(tmp_path / "here", ASTRAGO_LOCAL_CPUS="8", **SAME, **dialect) as local:
        client = TrainerClient(local.address, namespace=ann.namespace)
        here = outcome(client, local.address, {}, body)

    assert there[0] == here[0]
    assert here[0][0] == end
    assert there[1]["effective"] == here[1]["effective"]
    assert there[1]["objects"] == here[1]["objects"]
    assert there[2] == here[2]
    assert there[3] == here[3]

    # And what was shown beforehand is what the operator made.
    made = ann.space.get("jobsets", "same")["spec"]
    shown = there[1]["effective"][0]["spec"]
    assert pods_of(made) == pods_of(shown)


def pods_of(spec):
    """Containers as they were asked for; names, images, commands, variables, mounts, resources."""
    return [
        (job["name"], job["template"]["spec"]["completions"], container)
        for job in spec["replicatedJobs"]
        for container in job["template"]["spec"]["template"]["spec"]["containers"]
    ]
