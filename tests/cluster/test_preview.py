"""What was previewed is what the real operator makes: the JobSet in the cluster, defaults and all."""

from __future__ import annotations

import json

import pytest

from astrago_trainer.catalogue import default_platform, load_runtime, runtimes
from astrago_trainer.core.preview import preview_pair
from astrago_trainer.core.render import render
from astrago_trainer.core.spec import parse_job_spec

NAMES = [entry.name for entry in runtimes()]
FRAMEWORKS = {entry.name: entry.framework for entry in runtimes()}


@pytest.fixture(scope="session", autouse=True)
def catalogue(kubectl):
    for name in NAMES:
        manifest = json.dumps(load_runtime(name))
        kubectl(
            "apply",
            "--server-side",
            "--force-conflicts",
            "--validate=strict",
            "-f",
            "-",
            stdin=manifest,
        )


@pytest.mark.req("M82", "M119", "M123", "M124")
@pytest.mark.parametrize("name", NAMES)
def test_the_job_set_in_the_cluster_is_the_previewed_one(name, kubectl, create, namespace, version):
    request = {
        "name": "previewed",
        "user": "user123",
        "namespace": namespace,
        "framework": FRAMEWORKS[name],
        "runtime": name,
        "nodes": 2,
        "resources": {"cpu": {"request": "100m", "limit": 2}, "memory": "1Gi"},
        "shared_memory": "64Mi",
        "env": [{"name": "EPOCHS", "value": "1"}],
        "volumes": [
            {"name": "data", "mount_path": "/data", "empty_dir": {"size": "1Gi"}, "read_only": True}
        ],
        "node_selector": {"disk": "ssd"},
        "tolerations": [{"key": "nvidia.com/gpu"}],
        "labels": {"team": "vision"},
        "code": {"inline": "print('hi')"},
        "suspend": True,
    }
    runtime = load_runtime(name)
    rendered = render(parse_job_spec(request), runtime, default_platform(version))
    assert [problem for problem in rendered.problems if problem.severity == "error"] == []
    for manifest in rendered.objects:
        create(manifest)
    kubectl("-n", namespace, "wait", "--for=create", "jobset/previewed", "--timeout=60s")

    stored = json.loads(kubectl("-n", namespace, "get", "jobset", "previewed", "-o", "json"))
    preview = preview_pair(rendered.runtime, rendered.trainjob, version)

    assert preview.objects[0]["spec"] == stored["spec"]
    assert preview.objects[0]["metadata"].get("labels") == stored["metadata"].get("labels")
