"""The webhook's refusals in its own words: field, type and detail."""

from __future__ import annotations

import pytest

from astrago_trainer.core.merge import merge
from builders import a_job, a_patch, a_runtime, a_trainjob, an_override

ENVS = "must not have envs for the dataset-initializer, model-initializer, node containers"
RESERVED = "must not have reserved envs, invalid envs configured: [PET_NNODES]"


def refusals(runtime, trainjob, version="2.1"):
    outcome = merge(runtime, trainjob, version)
    assert outcome.objects == ()
    return [(problem.path, problem.code, problem.message) for problem in outcome.problems]


@pytest.mark.req("M126")
@pytest.mark.parametrize(
    ("version", "path"),
    [
        ("2.1", "spec.podTemplateOverrides"),
        ("2.2", "spec.runtimePatches"),
        ("2.3", "spec.runtimePatches"),
    ],
)
def test_env_in_an_override_of_node_is_refused(version, path):
    override = an_override(
        {"containers": [{"name": "node", "env": [{"name": "EPOCHS", "value": "1"}]}]}, version
    )

    assert refusals(a_runtime(), a_trainjob(trainer={}, **override), version) == [
        (path, "FieldValueInvalid", ENVS)
    ]


@pytest.mark.req("M127")
def test_reserved_variables_are_refused_in_2_1_only_beside_num_proc_per_node():
    env = [{"name": "PET_NNODES", "value": "9"}]

    assert merge(a_runtime(), a_trainjob(trainer={"env": env})).problems == ()
    expected = [("spec.trainer.env", "FieldValueInvalid", RESERVED)]
    assert refusals(a_runtime(), a_trainjob(trainer={"env": env, "numProcPerNode": 1})) == expected
    assert refusals(a_runtime(), a_trainjob(trainer={"env": env}), "2.2") == expected


@pytest.mark.req("M125")
@pytest.mark.parametrize(
    ("ref", "path", "text"),
    [
        pytest.param(
            {"name": "other"},
            "spec.RuntimeRef",
            'clustertrainingruntimes.trainer.kubeflow.org "other" not found: '
            "specified clusterTrainingRuntime must be created before the TrainJob is created",
            id="another name",
        ),
        pytest.param(
            {"kind": "TrainingRuntime"},
            "spec.runtimeRef",
            'trainingruntimes.trainer.kubeflow.org "rt" not found: '
            "specified trainingRuntime must be created before the TrainJob is created",
            id="the namespaced kind",
        ),
        pytest.param(
            {"kind": "Runtime"},
            "spec.runtimeRef",
            "unsupported runtime: Runtime.trainer.kubeflow.org",
            id="no kind",
        ),
    ],
)
def test_a_runtime_that_is_not_there_is_refused(ref, path, text):
    trainjob = a_trainjob()
    trainjob["spec"]["runtimeRef"].update(ref)

    assert refusals(a_runtime(), trainjob) == [(path, "FieldValueInvalid", text)]


@pytest.mark.req("M105", "M128")
def test_an_unknown_target_job_is_refused():
    text = "must not have targetJob that doesn't exist in the runtime job template"
    override = an_override({"serviceAccountName": "x"}, job="trainer")

    assert refusals(a_runtime(), a_trainjob(**override)) == [
        ("spec.podTemplateOverrides", "FieldValueInvalid", text)
    ]


def test_all_refusals_come_at_once():
    override = an_override({"containers": [{"name": "node", "env": [{"name": "A"}]}]})
    trainjob = a_trainjob(trainer={"numProcPerNode": "many"}, initializer={"model": {}}, **override)

    assert [path for path, _, _ in refusals(a_runtime(), trainjob)] == [
        "spec.runtimeRef",
        "spec.podTemplateOverrides",
        "spec.trainer.numProcPerNode",
    ]


@pytest.mark.parametrize(
    ("manager", "code"),
    [
        pytest.param("", "FieldValueRequired", id="none"),
        pytest.param("plain", "FieldValueInvalid", id="no domain"),
        pytest.param("Example.com/x", "FieldValueInvalid", id="upper case"),
        pytest.param("example.com/a b", "FieldValueInvalid", id="a space"),
    ],
)
def test_the_manager_of_a_patch_must_be_a_domain_prefixed_path(manager, code):
    trainjob = a_trainjob(trainer={}, runtimePatches=[a_patch({}, manager=manager)])

    assert [(path, kind) for path, kind, _ in refusals(a_runtime(), trainjob, "2.2")] == [
        ("spec.runtimePatches.manager", code)
    ]


def test_volcano_refuses_an_empty_queue_and_an_unknown_priority_class():
    template = {
        "metadata": {"annotations": {"scheduling.volcano.sh/queue-name": ""}},
        "spec": {"replicatedJobs": [a_job(pod={"priorityClassName": "high"})]},
    }
    runtime = a_runtime(podGroupPolicy={"volcano": {}}, template=template)

    found = refusals(runtime, a_trainjob(trainer={}))
    known = merge(runtime, a_trainjob(trainer={}), priority_classes={"high"})

    assert [path for path, _, _ in found] == [
        "spec.annotations[scheduling.volcano.sh/queue-name]",
        "spec.templateSpec.priorityClassName",
    ]
    assert len(known.problems) == 1


@pytest.mark.parametrize("value", ["two", 2.5, True, 2**31, []])
def test_what_does_not_fit_its_type_is_told_with_its_path(value):
    found = refusals(a_runtime(), a_trainjob(trainer={"numNodes": value}))

    assert [(path, code) for path, code, _ in found] == [
        ("spec.trainer.numNodes", "FieldValueTypeInvalid")
    ]


def test_every_misfit_is_told_not_only_the_first():
    trainjob = a_trainjob(
        trainer={
            "numNodes": "2",
            "env": [{"name": 1}],
            "resourcesPerNode": {"limits": {"cpu": "x"}},
        }
    )

    assert [path for path, _, _ in refusals(a_runtime(), trainjob)] == [
        "spec.trainer.numNodes",
        "spec.trainer.env[0].name",
        "spec.trainer.resourcesPerNode.limits[cpu]",
    ]
