"""A TrainJob becomes a job that renders to the same TrainJob again, or says which fields it cannot take."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astrago_trainer import catalogue
from astrago_trainer.core.convert import trainjob_to_job
from astrago_trainer.core.platform import FRAMEWORKS
from astrago_trainer.core.render import render
from astrago_trainer.core.spec import parse_job_spec

RUNTIMES = {each.name: each.framework for each in catalogue.runtimes()}
JOBS = {
    "a shell's command with everything": {
        "framework": "pytorch",
        "runtime": "pytorch-simple",
        "nodes": 3,
        "image": "example.org/torch:1",
        "processes_per_node": 2,
        "command": "torchrun train.py --lr $LR $$HOME $(date) $(LR)",
        "resources": {
            "cpu": {"request": "1", "limit": "2"},
            "memory": {"request": "1Gi", "limit": "2Gi"},
            "gpus": 1,
        },
        "env": [
            {"name": "LR", "value": "0.1 $(HOME)"},
            {"name": "KEY", "secret": {"name": "keys", "key": "wandb"}},
            {"name": "MODE", "config_map": {"name": "modes", "key": "m"}},
        ],
        "volumes": [
            {"name": "data", "claim": "data", "mount_path": "/data", "read_only": True},
            {"name": "scratch", "empty_dir": {"size": "1Gi"}, "mount_path": "/scratch"},
            {"name": "conf", "config_map": "conf", "mount_path": "/conf", "sub_path": "a"},
        ],
        "node_selector": {"disk": "ssd"},
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "labels": {"team": "vision"},
        "annotations": {"note": "a b"},
        "ttl_seconds": 60,
        "suspend": True,
    },
    "a program": {"framework": "pytorch", "argv": ["python", "-m", "train", "a b", "$(X)"]},
    "checkpoints": {
        "framework": "pytorch",
        "command": "python train.py",
        "volumes": [{"name": "ckpt", "claim": "ckpt", "mount_path": "/ckpt"}],
        "checkpoints": "/ckpt/run",
        "resume_from": "/ckpt/old",
    },
    "tensorflow": {"framework": "tensorflow", "nodes": 2, "command": "python3 train.py"},
    "code from git": {
        "framework": "pytorch",
        "code": {"git": {"url": "https://example.org/x.git", "branch": "main"}},
        "command": "python train.py",
        "working_dir": "/workspace/code",
    },
}


def back(rendered, platform):
    beside = [each for each in rendered.objects if each["kind"] == "ConfigMap"]
    return trainjob_to_job(rendered.trainjob, platform, RUNTIMES, beside)


@pytest.mark.parametrize("version", ["2.1", "2.2", "2.3"])
@pytest.mark.parametrize("name", JOBS)
def test_what_was_rendered_comes_back(name, version):
    platform = catalogue.default_platform(version)
    spec = parse_job_spec({"user": "ann", "namespace": "team", "name": "j", **JOBS[name]})
    runtime = catalogue.load_runtime(
        platform.runtime_for(
            spec.framework, runtime=spec.runtime, has_git_code="code" in JOBS[name]
        )
    )
    first = render(spec, runtime, platform)

    found = back(first, platform)

    assert found.lost == (), found.lost
    again = parse_job_spec({"user": "ann", **found.job})
    second = render(again, runtime, platform)
    assert _spec_of(second) == _spec_of(first)


def _spec_of(rendered):
    """Without the hash of the request: the file says the default runtime and times that the request left out."""
    found = copy.deepcopy(rendered.trainjob)
    found["metadata"]["annotations"].pop("trainer.astrago.io/spec-hash")
    return json.dumps(found, sort_keys=True)


def test_a_script_beside_it_is_the_code():
    trainjob = catalogue.sample_trainjob("pytorch-simple")
    script = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "train-script"},
        "data": {"train.py": "print(1)\n"},
    }

    found = trainjob_to_job(trainjob, catalogue.default_platform(), RUNTIMES, [script])

    assert found.lost == ()
    assert found.job["code"] == {"files": {"train.py": "print(1)\n"}, "entrypoint": "train.py"}
    assert found.job["command"] == "python /workspace/scripts/train.py"
    assert "volumes" not in found.job


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (("spec", "initializer"), {"model": {"storageUri": "hf://x"}}, "spec.initializer"),
        (("spec", "trainer", "command"), None, "spec.trainer.command"),
        (("spec", "trainer", "command"), ["python", "$(RANK)"], "spec.trainer.command[1]"),
        (("spec", "runtimeRef", "name"), "unknown", "spec.runtimeRef.name"),
        (("spec", "runtimeRef", "kind"), "TrainingRuntime", "spec.runtimeRef.kind"),
        (("spec", "managedBy"), "kueue.x-k8s.io/multikueue", "spec.managedBy"),
        (
            ("spec", "podTemplateOverrides", 0, "spec", "serviceAccountName"),
            "me",
            "spec.podTemplateOverrides[0].spec.serviceAccountName",
        ),
        (
            ("spec", "podTemplateOverrides", 0, "spec", "volumes", 1),
            {"name": "train-script", "nfs": {"server": "x", "path": "/"}},
            "spec.podTemplateOverrides[0].spec.volumes[1]",
        ),
        (
            ("spec", "podTemplateOverrides", 0, "targetJobs"),
            [{"name": "dataset-initializer"}],
            "spec.podTemplateOverrides",
        ),
        (
            ("spec", "trainer", "env"),
            [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
            "spec.trainer.env[0].valueFrom",
        ),
    ],
)
def test_what_a_job_cannot_say_is_named(path, value, told):
    trainjob = copy.deepcopy(catalogue.sample_trainjob("pytorch-simple"))
    holder = trainjob
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value

    found = trainjob_to_job(trainjob, catalogue.default_platform(), RUNTIMES)

    assert any(each.path.startswith(told) for each in found.lost), found.lost
    assert all(each.severity == "error" for each in found.lost)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "spec",
                    "trainer",
                    "env",
                    "name",
                    "value",
                    "valueFrom",
                    "metadata",
                    "containers",
                    "podTemplateOverrides",
                    "targetJobs",
                    "volumes",
                    "volumeMounts",
                    "command",
                    "labels",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_no_manifest_breaks_it(value):
    whole = value if isinstance(value, dict) else {"spec": value}
    found = trainjob_to_job({**whole, "kind": "TrainJob"}, catalogue.default_platform(), RUNTIMES)
    assert set(FRAMEWORKS) >= {found.job.get("framework", "pytorch")}


def test_the_reporting_of_progress_is_the_platforms_and_is_left_to_it() -> None:
    """What a server renders reports to it; applied elsewhere, the other server says where to."""
    platform = replace(catalogue.default_platform(), progress_server="http://127.0.0.1:8000")
    spec = parse_job_spec(
        {
            "user": "user123",
            "namespace": "user-123",
            "name": "hello",
            "framework": "pytorch",
            "command": "echo",
        }
    )
    manifest = render(spec, catalogue.load_runtime("pytorch-simple"), platform).trainjob
    found = trainjob_to_job(manifest, platform, {"pytorch-simple": "pytorch"}, [])
    assert found.lost == ()
    assert not found.job.get("volumes")
    assert not found.job.get("env")
