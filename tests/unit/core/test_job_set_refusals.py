"""What JobSet would refuse is told beforehand. Each case was refused by the real one (tests/cluster)."""

from __future__ import annotations

import pytest

from astrago_trainer.core.preview import preview_pair
from builders import a_container, a_job, a_runtime, a_trainjob

TWICE = [{"containerPort": 80}, {"containerPort": 80}]
MOUNTED = [{"name": "v", "mountPath": "/a"}, {"name": "w", "mountPath": "/a"}]
VOLUMES = [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]


def with_template(**fields):
    runtime = a_runtime()
    runtime["spec"]["template"]["spec"] |= fields
    return runtime


def with_labels(labels):
    runtime = a_runtime()
    runtime["spec"]["template"]["metadata"] = {"labels": labels}
    return runtime


@pytest.mark.parametrize(
    ("runtime", "path"),
    [
        pytest.param(
            with_labels({"team": "a b"}), "JobSet.metadata.labels[team]", id="label value"
        ),
        pytest.param(
            with_labels({"$x": "1"}), "JobSet.metadata.labels[$x]", id="name of a label"
        ),
        pytest.param(
            a_runtime(a_job(pod={"containers": [a_container(ports=TWICE)]})),
            "node.containers[node].ports",
            id="port twice",
        ),
        pytest.param(
            a_runtime(
                a_job(pod={"containers": [a_container(volumeMounts=MOUNTED)], "volumes": VOLUMES})
            ),
            "node.containers[node].volumeMounts",
            id="mount path twice",
        ),
        pytest.param(
            with_template(coordinator={"replicatedJob": "other"}),
            "runtime…coordinator.replicatedJob",
            id="coordinator that does not exist",
        ),
        pytest.param(
            with_template(
                failurePolicy={
                    "rules": [{"action": "FailJobSet", "targetReplicatedJobs": ["other"]}]
                }
            ),
            "runtime…failurePolicy.rules.targetReplicatedJobs",
            id="failure rule for a job that does not exist",
        ),
        pytest.param(
            a_runtime({**a_job(), "groupName": "0"}),
            "runtime…replicatedJobs[0].groupName",
            id="group that is no DNS label",
        ),
        pytest.param(
            with_template(managedBy="nobody"), "runtime…managedBy", id="manager without a domain"
        ),
        pytest.param(
            a_runtime(a_job(pod={"volumes": [{"name": "v", "projected": {}}]})),
            "runtime….replicatedJobs[0].template.spec.template.spec.volumes[0].projected.sources",
            id="a list that is written as null",
        ),
    ],
)  # fmt: skip
def test_a_refusal_of_job_set_is_foreseen(runtime, path):
    problems = preview_pair(runtime, a_trainjob(trainer={"numNodes": 2}), "2.1").problems

    assert [problem.path for problem in problems if problem.code == "JobSetRefused"] == [path]


def test_nothing_is_said_of_what_job_set_takes():
    runtime = with_labels({"example.org/team": "Vision_1.2", "empty": ""})
    runtime["spec"]["template"]["spec"] |= {
        "managedBy": "kueue.x-k8s.io/multikueue",
        "coordinator": {"replicatedJob": "node"},
    }

    problems = preview_pair(runtime, a_trainjob(trainer={"numNodes": 2}), "2.1").problems

    assert [problem for problem in problems if problem.code == "JobSetRefused"] == []


@pytest.mark.parametrize(("version", "paths"), [("2.2", ["node.schedulingGroup"]), ("2.3", [])])
def test_a_field_that_the_trainer_knows_and_its_job_set_does_not_is_foreseen(version, paths):
    runtime = a_runtime(a_job(pod={"schedulingGroup": {"podGroupName": "g"}}))

    problems = preview_pair(runtime, a_trainjob(trainer={"numNodes": 2}), version).problems

    assert [problem.path for problem in problems if problem.code == "JobSetRefused"] == paths
