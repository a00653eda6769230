"""What admission refuses, in the words and with the HTTP code of the running API server.

The operator's webhook answers 403, which is no lack of rights; the schema of the CRD answers 422.
"""

from __future__ import annotations

import pytest
from tests.cluster.contract.jobs import PLAIN, SHELL_IMAGE, a_node, a_runtime, a_trainjob

from builders import a_patch, an_override, container_of, env_of, pod_of

WEBHOOK = 'admission webhook "validator.trainjob.trainer.kubeflow.org" denied the request: '
OVERRIDES = {"2.1": "podTemplateOverrides", "2.2": "runtimePatches", "2.3": "runtimePatches"}


@pytest.mark.req("M125")
def test_the_runtime_must_exist_first(space):
    answer = space.try_create(a_trainjob())

    assert answer.code == 403
    assert answer.body["reason"] == "Forbidden"
    assert answer.message.startswith(WEBHOOK + "spec.runtimeRef: Invalid value: ")
    assert answer.message.endswith(
        'TrainingRuntime.trainer.kubeflow.org "rt" not found: '
        "specified trainingRuntime must be created before the TrainJob is created"
    )


@pytest.mark.req("M125")
def test_the_kind_of_the_runtime_is_the_cluster_wide_one_unless_named(space):
    space.create(a_runtime(a_node("exit 0")))
    trainjob = a_trainjob()
    trainjob["spec"]["runtimeRef"] = {"name": "rt"}

    answer = space.try_create(trainjob)

    assert answer.code == 403
    assert answer.message.startswith(WEBHOOK + "spec.RuntimeRef: Invalid value: ")
    assert answer.message.endswith(
        'ClusterTrainingRuntime.trainer.kubeflow.org "rt" not found: '
        "specified clusterTrainingRuntime must be created before the TrainJob is created"
    )


@pytest.mark.req("M125")
def test_a_reference_to_something_else_is_not_supported(space):
    trainjob = a_trainjob()
    trainjob["spec"]["runtimeRef"]["kind"] = "ConfigMap"

    answer = space.try_create(trainjob)

    assert answer.code == 403
    assert answer.message == WEBHOOK + "unsupported runtime: ConfigMap.trainer.kubeflow.org"


@pytest.mark.req("M126", "M38")
def test_env_of_the_node_container_is_refused_in_an_override(space, version):
    space.create(a_runtime(a_node("exit 0")))
    env = [{"name": "EPOCHS", "value": "3"}]
    override = an_override({"containers": [{"name": "node", "env": env}]}, version)

    answer = space.try_create(a_trainjob(**override))

    assert answer.code == 403
    assert answer.message.startswith(f"{WEBHOOK}spec.{OVERRIDES[version]}: Invalid value: ")
    assert answer.message.endswith(
        ": must not have envs for the dataset-initializer, model-initializer, node containers"
    )


@pytest.mark.req("M126")
def test_env_of_an_init_container_is_accepted_in_an_override(space, version):
    prepare = {"name": "prepare", "image": SHELL_IMAGE}
    space.create(a_runtime(a_node("exit 0", pod={"initContainers": [prepare]})))
    env = [{"name": "WORKERS", "value": "3"}]
    override = an_override({"initContainers": [{"name": "prepare", "env": env}]}, version)

    space.create(a_trainjob(suspend=True, **override))
    pod = pod_of(space.until_one("jobsets", "job"))

    assert pod["initContainers"][0]["env"] == env


RESERVED = [
    "PET_NNODES",
    "PET_NPROC_PER_NODE",
    "PET_NODE_RANK",
    "PET_MASTER_ADDR",
    "PET_MASTER_PORT",
]


@pytest.mark.req("M127")
def test_variables_of_torchrun_are_refused_when_the_number_of_processes_is_set(space):
    space.create(a_runtime(a_node("exit 0")))
    env = [{"name": name, "value": "x"} for name in RESERVED]

    answer = space.try_create(a_trainjob(trainer={"env": env, "numProcPerNode": 1}))

    assert answer.code == 403
    assert answer.message.startswith(WEBHOOK + "spec.trainer.env: Invalid value: ")
    assert answer.message.endswith(
        f"must not have reserved envs, invalid envs configured: [{' '.join(sorted(RESERVED))}]"
    )


@pytest.mark.req("M127")
def test_variables_of_torchrun_pass_2_1_when_the_number_of_processes_is_not_set(space, version):
    space.create(a_runtime(a_node("exit 0")))
    env = [{"name": "PET_NNODES", "value": "7"}]

    answer = space.try_create(a_trainjob(suspend=True, trainer={"env": env}))

    if version == "2.1":  # and the user's value wins
        container = container_of(space.until_one("jobsets", "job"))
        assert env_of(container)["PET_NNODES"] == "7"
    else:
        assert answer.code == 403
        assert answer.message.endswith("invalid envs configured: [PET_NNODES]")


@pytest.mark.req("M128", "M105")
def test_an_override_of_an_unknown_job_is_refused(space, version):
    space.create(a_runtime(a_node("exit 0")))
    override = an_override({"nodeSelector": {"disk": "ssd"}}, version, job="worker")

    answer = space.try_create(a_trainjob(**override))

    what = "targetJob" if version == "2.1" else "replicated job"
    if version == "2.3":  # the patch adds the job to the runtime before anybody looks
        assert answer.code == 201
    else:
        assert answer.code == 403
        assert answer.message.endswith(
            f": must not have {what} that doesn't exist in the runtime job template"
        )


@pytest.mark.req("M119")
def test_the_owner_of_a_patch_must_look_like_a_domain(space, version):
    if version == "2.1":
        pytest.skip("2.1 has no patches")
    space.create(a_runtime(a_node("exit 0")))
    patch = a_patch({"nodeSelector": {"disk": "ssd"}}, manager="me")

    answer = space.try_create(a_trainjob(runtimePatches=[patch]))

    assert answer.code == 403
    assert 'spec.runtimePatches.manager: Invalid value: "me": ' in answer.message
    assert answer.message.endswith('must be a domain-prefixed path (such as "acme.io/foo")')


@pytest.mark.req("M125", "M130")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"runtimeRef": {"name": "other"}}, {"2.1": "runtimeRef is immutable"}),
        ({"managedBy": "kueue.x-k8s.io/multikueue"}, {"2.1": "ManagedBy value is immutable"}),
    ],
    ids=["runtime", "manager"],
)
def test_runtime_and_manager_cannot_be_changed(space, version, change, words):
    space.create(a_runtime(a_node("exit 0")))
    space.create(a_trainjob(suspend=True))

    answer = space.try_patch("trainjobs", "job", {"spec": change})

    assert answer.code == 422
    assert words.get(version, "field is immutable") in answer.message


@pytest.mark.req("M130")
@pytest.mark.parametrize("suspended", [False, True])
def test_the_trainer_cannot_be_changed_from_2_2_on(space, version, suspended):
    space.create(a_runtime(a_node("sleep 3600"), policy=PLAIN))
    space.create(a_trainjob(suspend=suspended))
    before = space.until_one("jobsets", "job")

    answer = space.try_patch("trainjobs", "job", {"spec": {"trainer": {"image": "other:1"}}})

    if version == "2.1":  # accepted, and without effect
        assert answer.code == 200
        space.settle()
        assert space.get("jobsets", "job")["spec"] == before["spec"]
    else:
        assert answer.code == 422
        assert answer.message.endswith('spec.trainer: Invalid value: "object": field is immutable')


@pytest.mark.req("M130")
def test_overrides_are_changed_only_while_a_job_is_suspended(space, version):
    space.create(a_runtime(a_node("sleep 3600")))
    space.create(
        a_trainjob(**an_override({"nodeSelector": {"kubernetes.io/os": "linux"}}, version))
    )
    space.until_one("jobsets", "job", lambda job_set: _active(job_set) == 1)
    change = an_override({"nodeSelector": {"disk": "ssd"}}, version)

    running = space.try_patch("trainjobs", "job", {"spec": change})
    suspending = space.try_patch("trainjobs", "job", {"spec": {"suspend": True, **change}})
    space.patch("trainjobs", "job", {"spec": {"suspend": True}})
    space.until_one("jobsets", "job", lambda job_set: _active(job_set) == 0)
    suspended = space.try_patch("trainjobs", "job", {"spec": change})

    field = OVERRIDES[version]
    name = field[0].upper() + field[1:]
    when = "suspended" if version == "2.1" else "suspended before or after the update"
    assert running.code == 403
    assert running.message == (
        f"{WEBHOOK}spec.{field}: Forbidden: {name} can only be modified when the TrainJob is {when}"
    )
    assert suspending.code == 403
    assert suspending.message == (
        f"{WEBHOOK}spec.{field}: Forbidden: "
        f"{name} cannot be modified when the JobSet's ReplicatedJob node is still active"
    )
    assert suspended.code == 200


@pytest.mark.req("M128")
@pytest.mark.parametrize(
    ("pod", "job", "words"),
    [
        ({}, {"replicas": 2}, "replicas: Invalid value: 2: always must be 1"),
        (
            {"containers": [{"name": "main", "image": "i"}]},
            {},
            "must contain the required container for the ancestor: trainer",
        ),
    ],
    ids=["two replicas", "container not called node"],
)
def test_a_runtime_that_trainer_could_not_use_is_refused(space, pod, job, words):
    node = {**a_node("exit 0", pod=pod), **job}

    answer = space.try_create(a_runtime(node))

    assert answer.code == 403
    assert 'webhook "validator.trainingruntime.trainer.kubeflow.org"' in answer.message
    assert words in answer.message


def _active(job_set) -> int:
    (status,) = job_set.get("status", {}).get("replicatedJobsStatus", [{"active": -1}])
    return int(status["active"])
