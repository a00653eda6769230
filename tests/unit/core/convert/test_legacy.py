"""Jobs of the Training Operator v1 as job files; what is lost is told, in order of how much it matters."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astrago_trainer.core.convert import LEGACY_KINDS, legacy_to_job
from astrago_trainer.core.spec import parse_job_spec


def a_template(container="pytorch", **fields):
    made = {
        "name": container,
        "image": "example.org/train:1",
        "command": ["python", "train.py", "--epochs=3"],
        "resources": {"limits": {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": 1}},
        "env": [{"name": "LR", "value": "0.1"}],
        "ports": [{"name": "pytorchjob-port", "containerPort": 23456}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        **fields,
    }
    return {
        "metadata": {"annotations": {"sidecar.istio.io/inject": "false"}},
        "spec": {
            "containers": [made],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        },
    }


def a_pytorch_job(**spec):
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "mnist", "namespace": "team", "uid": "x"},
        "spec": {
            "pytorchReplicaSpecs": {
                "Master": {"replicas": 1, "restartPolicy": "Never", "template": a_template()},
                "Worker": {"replicas": 3, "restartPolicy": "Never", "template": a_template()},
            },
            **spec,
        },
        "status": {"conditions": []},
    }


def test_a_pytorch_job_of_equal_nodes_loses_nothing():
    policy = {"ttlSecondsAfterFinished": 60, "backoffLimit": 3, "cleanPodPolicy": "None"}
    manifest = a_pytorch_job(runPolicy=policy, nprocPerNode="2")
    before = copy.deepcopy(manifest)

    found = legacy_to_job(manifest)

    assert found.lost == ()
    assert found.job == {
        "name": "mnist",
        "namespace": "team",
        "framework": "pytorch",
        "nodes": 4,
        "annotations": {"sidecar.istio.io/inject": "false"},
        "image": "example.org/train:1",
        "argv": ["python", "train.py", "--epochs=3"],
        "env": [{"name": "LR", "value": "0.1"}],
        "resources": {"cpu": {"limit": "2"}, "memory": {"limit": "4Gi"}, "gpus": 1},
        "volumes": [{"name": "data", "mount_path": "/data", "claim": "data"}],
        "ttl_seconds": 60,
        "max_restarts": 3,
        "processes_per_node": 2,
    }
    parse_job_spec({"user": "ann", **found.job})
    assert manifest == before


def test_roles_that_differ_are_told():
    manifest = a_pytorch_job()
    roles = manifest["spec"]["pytorchReplicaSpecs"]
    roles["Worker"]["template"] = a_template(image="example.org/other:2")
    roles["Worker"]["restartPolicy"] = "OnFailure"

    found = legacy_to_job(manifest)

    told = {(each.path, each.severity) for each in found.lost}
    assert told == {
        ("spec.pytorchReplicaSpecs.Worker.template", "error"),
        ("spec.pytorchReplicaSpecs.Worker.restartPolicy", "warning"),
    }
    assert "image" in " ".join(each.message for each in found.lost)


@pytest.mark.parametrize(
    ("change", "path", "severity"),
    [
        ({"elasticPolicy": {"maxReplicas": 4}}, "spec.elasticPolicy", "error"),
        ({"runPolicy": {"cleanPodPolicy": "All"}}, "spec.runPolicy.cleanPodPolicy", "warning"),
        (
            {"runPolicy": {"schedulingPolicy": {"queue": "a"}}},
            "spec.runPolicy.schedulingPolicy",
            "warning",
        ),
    ],
)
def test_what_is_lost_is_named(change, path, severity):
    found = legacy_to_job(a_pytorch_job(**change))
    assert [(each.path, each.severity) for each in found.lost] == [(path, severity)]


def test_a_sidecar_and_an_image_without_a_command_are_errors():
    manifest = a_pytorch_job()
    template = a_template()
    del template["spec"]["containers"][0]["command"]
    template["spec"]["containers"].append({"name": "proxy", "image": "p"})
    manifest["spec"]["pytorchReplicaSpecs"] = {"Worker": {"replicas": 1, "template": template}}

    found = legacy_to_job(manifest)

    paths = [each.path for each in found.lost]
    assert "spec.pytorchReplicaSpecs.Worker" in paths
    assert "spec.pytorchReplicaSpecs.Worker.template.spec.containers[1]" in paths


def test_parameter_servers_have_no_place():
    manifest = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": "tf"},
        "spec": {
            "tfReplicaSpecs": {
                "Worker": {"replicas": 2, "template": a_template("tensorflow")},
                "PS": {"replicas": 1, "template": a_template("tensorflow")},
            }
        },
    }

    found = legacy_to_job(manifest)

    assert (found.job["framework"], found.job["nodes"]) == ("tensorflow", 2)
    assert "spec.tfReplicaSpecs.PS" in [each.path for each in found.lost]


def test_an_mpi_job_runs_what_its_launcher_says_on_its_workers():
    launcher = a_template("mpi", command=["mpirun", "-np", "4", "python", "train.py"])
    launcher["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
    worker = a_template("mpi")
    del worker["spec"]["containers"][0]["command"]
    manifest = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "h"},
        "spec": {
            "slotsPerWorker": 2,
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": launcher},
                "Worker": {"replicas": 2, "template": worker},
            },
        },
    }

    found = legacy_to_job(manifest)

    assert found.lost == (), found.lost
    assert found.job["argv"] == ["mpirun", "-np", "4", "python", "train.py"]
    assert (found.job["nodes"], found.job["processes_per_node"]) == (2, 2)
    assert found.job["launcher"] == {"cpu": {"limit": "1"}}
    assert found.job["resources"]["gpus"] == 1


_KEYS = ["spec", "template", "containers", "replicas", "Master", "Worker", "Launcher", "env",
         "pytorchReplicaSpecs", "mpiReplicaSpecs", "tfReplicaSpecs", "runPolicy", "ports", "name"]  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=4)
    ),
    max_leaves=25,
)


@given(st.sampled_from(sorted(LEGACY_KINDS)), JSON)
def test_no_manifest_breaks_it(kind, value):
    whole = value if isinstance(value, dict) else {"spec": value}
    legacy_to_job({**whole, "kind": kind})


@pytest.mark.parametrize(("path", "is_code"), [("/workspace/scripts", True), ("/opt/code", False)])
def test_a_config_map_beside_the_job_is_its_code_where_code_belongs(path, is_code):
    manifest = a_pytorch_job()
    for replica in manifest["spec"]["pytorchReplicaSpecs"].values():
        pod = replica["template"]["spec"]
        pod["volumes"].append({"name": "code", "configMap": {"name": "mnist"}})
        pod["containers"][0]["volumeMounts"].append({"name": "code", "mountPath": path})
    beside = {"kind": "ConfigMap", "metadata": {"name": "mnist"}, "data": {"train.py": "print(1)"}}

    found = legacy_to_job(manifest, [beside])

    assert ("code" in found.job) == is_code
    assert [each.path for each in found.lost] == ([] if is_code else ["ConfigMap mnist"])
    mounted = [each.get("config_map") for each in found.job["volumes"]]
    assert ("mnist" in mounted) != is_code
