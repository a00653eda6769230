"""Requests as users make them, rendered in the release's dialect, train for real: two nodes of each framework."""

from __future__ import annotations

import re

import pytest

from astrago_trainer.catalogue import default_platform, load_runtime
from astrago_trainer.core.render import render
from astrago_trainer.core.spec import parse_job_spec
from catalogue.inline import RUNTIMES

MILESTONES = {
    "pytorch-simple": (
        "PyTorch 환경변수 설정 완료!",
        "분산 학습 초기화 성공!",
        "Rank: 0/2",
        "Epoch 1/1 done",
        "PyTorch 분산 학습 완료!",
        "노드 수: 2",
    ),
    "tensorflow-distributed": (
        "TF_CONFIG 생성 완료!",
        "Worker 0 initialized with 2 replicas",
        "총 2개 워커",
        "TensorFlow 분산 학습 완료!",
        "노드 수: 2",
    ),
    "horovod-runtime": ("Rank: 0/2", "Epoch 1, ", "Training finished", r"process count: 2"),
}
FRAMEWORKS = {
    "pytorch-simple": "pytorch",
    "tensorflow-distributed": "tensorflow",
    "horovod-runtime": "horovod",
}
SCRIPTS = {"horovod-runtime": "horovod"}
# The image here has no Horovod: the script then joins its processes by torch, and wants to know where rank 0 is.
RANK_0 = {"name": "MASTER_ADDR", "value": "training-launcher-0-0.training"}
ENV = [{"name": "EPOCHS", "value": "1"}, {"name": "SAMPLES", "value": "1920"}]


@pytest.mark.req("M1", "M2", "M19", "M35", "M41", "M45", "M71", "M72")
@pytest.mark.parametrize("runtime", MILESTONES)
def test_a_request_trains_on_two_nodes(runtime, kubectl, space, version):
    script = (RUNTIMES / SCRIPTS.get(runtime, runtime) / "train.py").read_text(encoding="utf-8")
    request = {
        "name": "training",
        "user": "user123",
        "namespace": space.name,
        "framework": FRAMEWORKS[runtime],
        "runtime": runtime,
        "nodes": 2,
        "resources": {"cpu": {"request": "100m", "limit": 2}, "memory": "1Gi"},
        "env": [*ENV, RANK_0] if runtime == "horovod-runtime" else ENV,
        "code": {"inline": script},
    }
    rendered = render(parse_job_spec(request), load_runtime(runtime), default_platform(version))

    for manifest in rendered.objects:
        space.create(manifest)
    job = space.until_one(
        "trainjobs", "training", lambda job: (job.get("status") or {}).get("conditions")
    )
    (condition,) = job["status"]["conditions"]
    first = "launcher" if runtime == "horovod-runtime" else "node"
    selector = (
        f"jobset.sigs.k8s.io/replicatedjob-name={first},batch.kubernetes.io/job-completion-index=0"
    )
    log = kubectl("-n", space.name, "logs", "-l", selector, "-c", "node", "--tail=-1")

    assert condition["type"] == "Complete", log
    position = 0
    for milestone in MILESTONES[runtime]:
        found = re.compile(milestone).search(log, position)
        assert found, f"{milestone!r} is missing, or too early, in:\n{log}"
        position = found.end()
