"""Where checkpoints go, where to begin, and which attempt this is: what a job's code finds on a real cluster."""

from __future__ import annotations

from astrago_trainer.catalogue import default_platform, load_runtime
from astrago_trainer.core.render import render
from astrago_trainer.core.spec import parse_job_spec


def test_the_code_finds_its_checkpoints_and_the_number_of_its_attempt(space, version):
    request = {
        "name": "resumed",
        "user": "user123",
        "namespace": space.name,
        "framework": "pytorch",
        "resources": {"cpu": {"request": "10m"}, "memory": {"request": "32Mi"}},
        "checkpoints": "/checkpoints",
        "resume_from": "/checkpoints/old $(HOME)",
        "max_restarts": 1,
        "command": "env | grep ^ASTRAGO_ | sort; sleep 1; [ $ASTRAGO_ATTEMPT = 1 ]",
    }
    spec, platform = parse_job_spec(request), default_platform(version)
    runtime = load_runtime(platform.default_runtimes[spec.framework])
    space.create(*render(spec, runtime, platform).objects)
    job = space.until_one(
        "trainjobs", "resumed", lambda job: (job.get("status") or {}).get("conditions")
    )
    (pod,) = space.list("pods", labelSelector="jobset.sigs.k8s.io/jobset-name=resumed")

    assert [each["type"] for each in job["status"]["conditions"]] == ["Complete"]
    lines = space.log(pod["metadata"]["name"]).splitlines()
    assert "ASTRAGO_ATTEMPT=1" in lines
    assert "ASTRAGO_CHECKPOINT_DIR=/checkpoints" in lines
    assert "ASTRAGO_RESUME_FROM=/checkpoints/old $(HOME)" in lines
