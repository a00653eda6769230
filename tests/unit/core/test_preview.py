"""The preview says beforehand what the API server, the operator, JobSet and the kubelet would say later."""

from __future__ import annotations

import pytest

from astrago_trainer.core.platform import Platform
from astrago_trainer.core.preview import outcome_of, preview_job, preview_pair, read_runtime
from astrago_trainer.core.render import render
from astrago_trainer.core.spec import parse_job_spec
from builders import a_container, a_job, a_runtime, a_trainjob, an_override, container_of, pod_of

POD = "/0/spec/replicatedJobs/0/template/spec/template/spec"


def problem(preview, code):
    found = [each for each in preview.problems if each.code == code]
    assert len(found) == 1, preview.problems
    return found[0]


@pytest.mark.req("M126", "M38")
def test_env_in_an_override_is_refused_and_told_where_it_belongs():
    env = [{"name": "EPOCHS", "value": "10"}, {"name": "BATCH_SIZE", "value": "64"}]
    override = an_override({"containers": [{"name": "node", "env": env}]})

    preview = preview_pair(a_runtime(), a_trainjob(trainer={}, **override))

    refusal = problem(preview, "FieldValueInvalid")
    assert preview.is_refused
    assert refusal.path == "spec.podTemplateOverrides"
    assert refusal.remedy == (
        "Move EPOCHS, BATCH_SIZE from spec.podTemplateOverrides[0].spec.containers[0].env to spec.trainer.env."
    )


@pytest.mark.req("M69", "X10")
def test_num_nodes_one_level_too_high_is_refused_with_its_place():
    unknown = problem(preview_pair(a_runtime(), a_trainjob(numNodes=2)), "UnknownField")

    assert (unknown.path, unknown.remedy) == (
        "spec.numNodes",
        "It belongs to spec.trainer.numNodes.",
    )


@pytest.mark.req("M119", "M120")
@pytest.mark.parametrize(
    ("version", "spec", "path"),
    [
        ("2.3", an_override({"serviceAccountName": "x"}, "2.1"), "spec.podTemplateOverrides"),
        ("2.1", an_override({"serviceAccountName": "x"}, "2.3"), "spec.runtimePatches"),
        ("2.1", {"activeDeadlineSeconds": 60}, "spec.activeDeadlineSeconds"),
        ("2.2", {"labels": {"a": "b"}}, "spec.labels"),
    ],
)
def test_fields_that_the_version_would_drop_are_refused(version, spec, path):
    unknown = problem(
        preview_pair(a_runtime(), a_trainjob(trainer={}, **spec), version), "UnknownField"
    )

    assert unknown.path == path
    assert version in unknown.message
    assert unknown.remedy


@pytest.mark.req("M120")
def test_a_number_of_processes_in_the_torch_policy_warns_from_2_2_on():
    runtime = a_runtime(policy={"numNodes": 1, "torch": {"numProcPerNode": "auto"}})

    unknown = problem(preview_pair(runtime, a_trainjob(trainer={}), "2.3"), "UnknownField")

    assert (unknown.path, unknown.severity) == (
        "runtime.spec.mlPolicy.torch.numProcPerNode",
        "warning",
    )
    assert not preview_pair(runtime, a_trainjob(trainer={}), "2.1").is_refused


@pytest.mark.req("M121", "M122")
@pytest.mark.parametrize(
    ("name", "nodes", "codes"),
    [
        pytest.param("a" * 48, 10, [], id="48 characters fit ten nodes"),
        pytest.param("a" * 49, 10, ["JobSetRefused"], id="49 do not"),
        pytest.param("a" * 48, 11, ["JobSetRefused"], id="48 do not fit eleven"),
        pytest.param("a" * 47, 100, [], id="47 fit a hundred"),
        pytest.param(
            "a" * 64, 1, ["FieldValueTooLong", "JobSetRefused"], id="64 are too many for anything"
        ),
        pytest.param("Job", 1, ["FieldValueInvalid"], id="upper case"),
        pytest.param("1job", 1, ["FieldValueInvalid"], id="a digit first"),
        pytest.param("job-", 1, ["FieldValueInvalid"], id="a dash last"),
    ],
)
def test_names_are_held_against_the_real_limits(name, nodes, codes):
    trainjob = a_trainjob(trainer={"numNodes": nodes, "command": ["torchrun"]})
    trainjob["metadata"]["name"] = name

    assert [each.code for each in preview_pair(a_runtime(), trainjob).problems] == codes


@pytest.mark.parametrize("nodes", [0, -1])
def test_fewer_than_one_node_is_refused_though_the_operator_takes_it(nodes):
    found = problem(
        preview_pair(a_runtime(), a_trainjob(trainer={"numNodes": nodes})), "FieldValueInvalid"
    )

    assert (found.path, str(nodes) in found.message) == ("spec.trainer.numNodes", True)


@pytest.mark.req("M128")
def test_a_container_without_an_image_is_found_before_it_hangs():
    override = an_override({"containers": [{"name": "nod"}]})

    found = problem(
        preview_pair(a_runtime(), a_trainjob(trainer={}, **override)), "ContainerWithoutImage"
    )

    assert "'nod'" in found.message
    assert "only node" in found.message


@pytest.mark.req("M129")
def test_what_the_merge_leaves_with_two_sources_is_found():
    init = a_container(
        "setup", env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    )
    runtime = a_runtime(
        a_job(pod={"initContainers": [init], "volumes": [{"name": "v", "emptyDir": {}}]})
    )
    override = an_override(
        {
            "initContainers": [{"name": "setup", "env": [{"name": "A", "value": "1"}]}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        }
    )

    preview = preview_pair(runtime, a_trainjob(trainer={}, **override))

    assert problem(preview, "EnvWithTwoSources").path == "node.initContainers[setup].env[A]"
    assert "emptyDir, persistentVolumeClaim" in problem(preview, "VolumeWithTwoSources").message


def test_a_mount_without_its_volume_is_found():
    override = an_override(
        {"containers": [{"name": "node", "volumeMounts": [{"name": "x", "mountPath": "/x"}]}]}
    )

    assert (
        "'x'"
        in problem(
            preview_pair(a_runtime(), a_trainjob(trainer={}, **override)), "VolumeMissing"
        ).message
    )


@pytest.mark.req("X7")
@pytest.mark.parametrize(
    ("command", "trainer", "codes"),
    [
        pytest.param(
            "python train.py",
            {"numNodes": 2},
            ["PetWithoutTorchrun"],
            id="plain python on two nodes",
        ),
        pytest.param("torchrun train.py", {"numNodes": 2}, [], id="torchrun"),
        pytest.param(
            "python -m torch.distributed.run t.py", {"numNodes": 2}, [], id="torchrun as a module"
        ),
        pytest.param(
            "export RANK=$PET_NODE_RANK; python t.py",
            {"numNodes": 2, "numProcPerNode": 1},
            [],
            id="translated",
        ),
        pytest.param(
            "export RANK=$PET_NODE_RANK; python t.py",
            {"numNodes": 2, "resourcesPerNode": {"requests": {"cpu": "4"}}},
            ["PetWithoutTorchrun"],
            id="translated, but four processes promised",
        ),
        pytest.param(
            "torchrun t.py",
            {"numProcPerNode": 1, "resourcesPerNode": {"limits": {"nvidia.com/gpu": "8"}}},
            ["GpusWithoutProcesses"],
            id="eight GPUs and one process",
        ),
    ],
)
def test_processes_and_command_are_held_against_each_other(command, trainer, codes):
    trainjob = a_trainjob(trainer={**trainer, "command": ["bash", "-c", command]})

    preview = preview_pair(a_runtime(), trainjob)

    assert [each.code for each in preview.problems] == codes
    assert not preview.is_refused


def test_a_torch_job_without_spec_trainer_is_warned_of():
    assert problem(preview_pair(a_runtime(), a_trainjob()), "NoTrainer").severity == "warning"


@pytest.mark.req("M134")
def test_a_ttl_on_the_job_set_is_warned_of():
    template = {"spec": {"replicatedJobs": [a_job()], "ttlSecondsAfterFinished": 5}}

    found = problem(
        preview_pair(a_runtime(template=template), a_trainjob(trainer={"command": ["torchrun"]})),
        "JobSetTtl",
    )

    assert found.severity == "warning"


@pytest.mark.parametrize(
    ("resources", "code"),
    [
        ({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}, "RequestAboveLimit"),
        ({"requests": {"nvidia.com/gpu": "1"}}, "LimitMissing"),
        ({"limits": {"cpu": "-1"}}, "FieldValueInvalid"),
    ],
)
def test_resources_that_a_pod_cannot_have_are_found(resources, code):
    trainer = {"command": ["torchrun"], "resourcesPerNode": resources}

    assert code in [
        each.code for each in preview_pair(a_runtime(), a_trainjob(trainer=trainer)).problems
    ]


def test_defaults_are_filled_in_and_say_so():
    preview = preview_pair(a_runtime(), a_trainjob(trainer={"command": ["torchrun"]}))

    job_set = preview.objects[0]
    assert pod_of(job_set)["restartPolicy"] == "OnFailure"
    assert container_of(job_set)["ports"] == [{"containerPort": 29500, "protocol": "TCP"}]
    assert job_set["spec"]["suspend"] is False
    assert job_set["spec"]["network"] == {
        "enableDNSHostnames": True,
        "publishNotReadyAddresses": True,
    }
    assert preview.provenance[f"{POD}/restartPolicy"] == "default"
    assert preview.provenance["/0/spec/suspend"] == "default"
    assert preview.provenance[f"{POD}/containers/0/command/0"] == "spec.trainer.command"
    assert preview.provenance[f"{POD}/containers/0/ports/0/protocol"] == "default"


def test_repeated_keys_are_refused_like_the_crd_does():
    trainjob = a_trainjob(
        trainer={"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}
    )

    assert (
        problem(preview_pair(a_runtime(), trainjob), "FieldValueDuplicate").path
        == "spec.trainer.env[1]"
    )


@pytest.mark.parametrize("name", ["A=B", "", "A\x00"])
def test_a_variable_that_cannot_be_one_is_refused(name):
    found = problem(
        preview_pair(a_runtime(), a_trainjob(trainer={"env": [{"name": name}]})),
        "FieldValueInvalid",
    )

    assert found.path == "spec.trainer.env[0].name"


def test_another_kind_is_not_taken_for_a_trainjob():
    codes = [each.code for each in preview_pair(a_trainjob(), a_runtime()).problems]

    assert codes.count("FieldValueNotSupported") == 2


def test_a_job_of_a_user_names_the_fields_of_the_request():
    spec = parse_job_spec(
        {
            "user": "user123",
            "namespace": "user-123",
            "framework": "pytorch",
            "nodes": 2,
            "max_restarts": 5,
            "resources": {"gpus": 1},
            "env": [{"name": "EPOCHS", "value": "10"}],
            "code": {"inline": "print()"},
            "command": "torchrun train.py",
        }
    )

    preview = preview_job(spec, a_runtime(name="pytorch-simple"), Platform())

    assert preview.problems == ()
    origins = preview.provenance
    assert origins["/0/spec/failurePolicy/maxRestarts"] == "form: max_restarts"
    assert origins[f"{POD}/containers/0/resources/limits/nvidia.com~1gpu"] == "form: resources.gpus"
    assert origins[f"{POD}/containers/0/env/0/value"] == "form: env[0].value"
    assert origins[f"{POD}/containers/0/command/2"] == "form: command"
    assert origins[f"{POD}/containers/0/env/1/value"] == "mlPolicy.torch"


@pytest.mark.parametrize("version", ["2.1", "2.2", "2.3"])
def test_jobs_that_share_a_runtime_that_was_read_once_are_what_they_are_alone(version):
    """What is kept between jobs must not be changed by any of them."""
    platform = Platform(trainer_version=version)
    shared = a_runtime(name="pytorch-simple")
    known = read_runtime(shared, version)
    requests = [
        {"nodes": 4, "env": [{"name": "A", "value": "1"}], "labels": {"a": "b"}},
        {"resources": {"gpus": 2, "memory": "1Gi"}, "node_selector": {"disk": "ssd"}},
        {"volumes": [{"name": "d", "claim": "d", "mount_path": "/d"}], "suspend": True},
    ]
    for request in [*requests, *requests]:
        base = {"user": "ann", "namespace": "team", "name": "j", "framework": "pytorch"}
        spec = parse_job_spec({**base, "command": "python train.py", **request})
        alone = preview_job(spec, a_runtime(name="pytorch-simple"), platform)

        rendered = render(spec, shared, platform)
        found = outcome_of(rendered, known)

        assert rendered.runtime is shared
        assert (found.objects, found.problems) == (alone.objects, alone.problems)
        assert found.provenance() == alone.provenance


@pytest.mark.parametrize(
    ("version", "codes"), [("2.1", []), ("2.2", []), ("2.3", ["ManagedElsewhere"])]
)
def test_a_job_that_is_left_to_another_controller_is_told_where_the_trainer_does_so(version, codes):
    job = a_trainjob(trainer={}, managedBy="kueue.x-k8s.io/multikueue")

    problems = preview_pair(a_runtime(), job, version).problems

    assert [p.code for p in problems if p.path == "spec.managedBy"] == codes
