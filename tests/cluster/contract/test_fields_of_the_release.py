"""One API version, three incompatible schemas: which fields each release of Trainer has."""

from __future__ import annotations

import pytest
from tests.cluster.contract.jobs import TORCH, a_node, a_runtime, a_trainjob

FIELDS = {
    "2.1": {"annotations", "labels", "podTemplateOverrides"},
    "2.2": {"activeDeadlineSeconds", "runtimePatches"},
    "2.3": {"activeDeadlineSeconds", "runtimePatches"},
}
"""Of `TrainJob.spec`, beside those that all of them have."""

COMMON = {"initializer", "managedBy", "runtimeRef", "suspend", "trainer"}

JOB_SETS = {"2.1": "v0.10.1", "2.2": "v2.2.1", "2.3": "v0.12.0"}
"""Tags of its image in the official manifests; that of 2.2 is the Trainer's own by mistake."""


@pytest.mark.req("M119", "M120")
def test_a_release_is_told_from_the_schema_of_its_trainjobs(api, version):
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/trainjobs.trainer.kubeflow.org"
    (schema,) = api.ask("GET", path).body["spec"]["versions"]

    spec = schema["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]

    assert schema["name"] == "v1alpha1"
    assert set(spec) == FIELDS[version] | COMMON


@pytest.mark.req("M120")
def test_each_release_comes_with_its_job_set(api, version):
    path = "/apis/apps/v1/deployments?fieldSelector=metadata.name%3Djobset-controller-manager"
    (deployment,) = api.ask("GET", path).body["items"]

    (manager,) = deployment["spec"]["template"]["spec"]["containers"]
    assert manager["image"].rpartition(":")[2] == JOB_SETS[version]


@pytest.mark.req("M120")
@pytest.mark.parametrize("word", ["auto", "cpu", "gpu"])
def test_a_word_for_the_number_of_processes_is_taken_by_2_1_alone(space, version, word):
    space.create(a_runtime(a_node("exit 0")))

    answer = space.try_create(a_trainjob(trainer={"numProcPerNode": word}), dryRun="All")

    if version == "2.1":
        assert answer.code == 201
    else:
        assert answer.code == 400
        assert "cannot unmarshal string" in answer.message


@pytest.mark.req("M120")
def test_another_word_for_the_number_of_processes_is_refused_everywhere(space, version):
    space.create(a_runtime(a_node("exit 0")))

    answer = space.try_create(a_trainjob(trainer={"numProcPerNode": "many"}))

    if version == "2.1":
        assert answer.code == 403
        assert answer.message.endswith(
            'spec.trainer.numProcPerNode: Invalid value: "many": '
            "must have an int value or [auto cpu gpu]"
        )
    else:
        assert answer.code == 400


@pytest.mark.req("M120")
def test_a_value_of_the_wrong_type_is_found_by_the_schema_or_by_the_webhook_before_it(
    space, version
):
    space.create(a_runtime(a_node("exit 0")))

    answer = space.try_create(a_trainjob(trainer={"numNodes": "two"}))

    if version == "2.1":
        assert answer.code == 422
        assert "spec.trainer.numNodes in body must be of type integer" in answer.message
    else:  # the webhook that fills in defaults comes first, and cannot read it
        assert answer.code == 400
        assert "cannot unmarshal string" in answer.message


@pytest.mark.req("M120")
def test_a_runtime_sets_the_number_of_processes_in_2_1_alone(space, version):
    policy = {**TORCH, "torch": {"numProcPerNode": "auto"}}

    answer = space.try_create(a_runtime(a_node("exit 0"), policy=policy))

    if version == "2.1":
        assert answer.code == 201
    else:
        assert answer.code == 400
        assert 'unknown field "spec.mlPolicy.torch.numProcPerNode"' in answer.message
