"""From objects to phase and reason: every row is a situation that a cluster was seen in."""

from __future__ import annotations

import pytest
from tests.engines.kubernetes.cases import (
    NOW,
    condition,
    ended,
    event,
    job,
    job_set,
    objects,
    pod,
    trainjob,
    waiting,
)

from astrago_trainer.engines.kubernetes.failures import Failure, failures_of
from astrago_trainer.engines.kubernetes.phase import JobObjects, is_ahead_of_pods, observe

UNSCHEDULABLE = {
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/3 nodes are available: 1 Insufficient memory, 2 Insufficient nvidia.com/gpu.",
        }
    ]
}
GATED = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}
LOST = {
    "conditions": [
        {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
        }
    ]
}
COLLECTED = {
    "conditions": [
        {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
        }
    ]
}
TWO = job_set(nodes=2)
CREATING = waiting("ContainerCreating")
INITIALIZING = waiting("PodInitializing")


def pending(**fields):
    return pod(0, fields.pop("state", CREATING), phase="Pending", **fields)


def about_pod(reason, message, second=2):
    return event(
        reason, message, kind="Pod", name="job-node-0-0-abcde-0", uid="node-0-0", second=second
    )


CASES = {
    "just made": (objects(), "Pending", "Accepted", "Trainer makes its JobSet"),
    "with a JobSet": (
        objects(None, job_set(), jobs=()),
        "Pending",
        "Accepted",
        "JobSet makes its Jobs",
    ),
    "with a Job": (objects(None, job_set()), "Pending", "PodsAreMade", ""),
    "the Trainer is down": (
        objects(trainjob(metadata={"creationTimestamp": "2025-12-31T23:59:00Z"})),
        "Queued",
        "ControllerNotResponding",
        "the Trainer controller has not made its JobSet in 65 s",
    ),
    "quota of the JobSet": (
        objects(
            events=(event("TrainJobResourcesCreationFailed", "x: exceeded quota: small, used: 1"),)
        ),
        "Queued",
        "QuotaExceeded",
        "waits for quota: exceeded quota: small, used: 1",
    ),
    "quota of the pods": (
        objects(
            None,
            job_set(),
            events=(event("FailedCreate", "pods is forbidden: exceeded quota: q", kind="Job"),),
        ),
        "Queued",
        "QuotaExceeded",
        "exceeded quota: q",
    ),
    "Pod Security": (
        objects(
            None,
            job_set(),
            events=(
                event("FailedCreate", 'pods "x" is forbidden: violates PodSecurity "baseline"'),
            ),
        ),
        "Pending",
        "PodSecurity",
        'violates PodSecurity "baseline"',
    ),
    "name too long": (
        objects(
            events=(event("TrainJobResourcesCreationFailed", "JobSet name is too long, pod names"),)
        ),
        "Pending",
        "NameTooLong",
        "shorter name",
    ),
    "webhook down": (
        objects(events=(event("TrainJobResourcesCreationFailed", 'failed calling webhook "v"'),)),
        "Pending",
        "WebhookUnavailable",
        "does not answer",
    ),
    "runtime gone": (
        objects(
            events=(event("TrainJobResourcesCreationFailed", 'trainingruntime "rt" not found'),)
        ),
        "Pending",
        "RuntimeNotFound",
        'trainingruntime "rt" not found',
    ),
    "a Job that is refused": (
        objects(
            None,
            job_set(),
            jobs=(),
            events=(event("JobCreationFailed", "Limit must be set", kind="JobSet"),),
        ),
        "Pending",
        "JobCreationFailed",
        "JobSet job cannot be made: Limit must be set",
    ),
    "no room": (
        objects(None, job_set(), pending(node="", status=UNSCHEDULABLE)),
        "Pending",
        "Unschedulable",
        "no node has room for rank 0: 0/3 nodes are available: 1 Insufficient memory",
    ),
    "a node is being provisioned": (
        objects(
            None,
            job_set(),
            pending(node="", status=UNSCHEDULABLE),
            events=(about_pod("Nominated", "Pod should schedule on: nodeclaim/gpu-x"),),
        ),
        "Pending",
        "NodeProvisioning",
        "nodeclaim/gpu-x",
    ),
    "gated": (
        objects(None, job_set(), pending(node="", status=GATED)),
        "Queued",
        "SchedulingGated",
        "",
    ),
    "being fetched": (
        objects(
            None, job_set(), pending(), events=(about_pod("Pulling", 'Pulling image "img:1"'),)
        ),
        "Pulling",
        "Pulling",
        "node n1 fetches the image img:1",
    ),
    "fetched": (
        objects(
            None,
            job_set(),
            pending(),
            events=(
                about_pod("Pulling", 'Pulling image "img:1"'),
                about_pod("Pulled", 'Successfully pulled image "img:1"', 3),
            ),
        ),
        "Pending",
        "ContainerCreating",
        "",
    ),
    "no such image": (
        objects(None, job_set(), pending(state=waiting("ErrImagePull", "img:1: not found"))),
        "Pulling",
        "ImageNotFound",
        "there is no image img:1; check name and tag",
    ),
    "private image, in back-off": (
        objects(
            None,
            job_set(),
            pending(state=waiting("ImagePullBackOff", 'Back-off pulling image "img:1"')),
            events=(about_pod("Failed", 'Failed to pull image "img:1": 401 Unauthorized'),),
        ),
        "Pulling",
        "ImagePullUnauthorized",
        "needs a pull secret",
    ),
    "no name of an image": (
        objects(None, job_set(), pending(state=waiting("InvalidImageName", "couldn't parse"))),
        "Pulling",
        "ImageNameInvalid",
        "'img:1' is no name of an image",
    ),
    "registry away": (
        objects(None, job_set(), pending(state=waiting("ErrImagePull", "dial tcp: i/o timeout"))),
        "Pulling",
        "ImagePullFailed",
        "i/o timeout",
    ),
    "ConfigMap of a volume missing": (
        objects(
            None,
            job_set(),
            pending(),
            events=(about_pod("FailedMount", 'MountVolume.SetUp: configmap "c" not found'),),
        ),
        "Pending",
        "ConfigMapMissing",
        'configmap "c" not found',
    ),
    "claim missing": (
        objects(
            None,
            job_set(),
            pending(),
            events=(about_pod("FailedMount", 'persistentvolumeclaim "d" not found'),),
        ),
        "Pending",
        "ClaimMissing",
        "",
    ),
    "mount failed": (
        objects(
            None, job_set(), pending(), events=(about_pod("FailedMount", "nfs: access denied"),)
        ),
        "Pending",
        "FailedMount",
        "nfs: access denied",
    ),
    "ConfigMap of a variable missing": (
        objects(
            None,
            job_set(),
            pending(state=waiting("CreateContainerConfigError", 'configmap "c" not found')),
        ),
        "Pending",
        "CreateContainerConfigError",
        "",
    ),
    "init container runs": (
        objects(
            None,
            job_set(),
            pending(state=INITIALIZING, init=[{"name": "git", "state": {"running": {}}}]),
        ),
        "Initializing",
        "InitContainerRunning",
        "init container git of rank 0 runs",
    ),
    "init container fails again and again": (
        objects(
            None,
            job_set(),
            pending(
                state=INITIALIZING,
                init=[{"name": "git", "state": waiting("CrashLoopBackOff", "back-off 10s")}],
                policy="OnFailure",
            ),
        ),
        "Initializing",
        "InitContainerFailed",
        "back-off 10s",
    ),
    "runs": (objects(None, TWO, pod(0), pod(1)), "Running", "", ""),
    "one of two runs": (
        objects(None, TWO, pod(0), pod(1, CREATING, phase="Pending")),
        "Pending",
        "ContainerCreating",
        "rank 1",
    ),
    "the first rank has ended well": (
        objects(None, TWO, pod(0, ended(0), phase="Succeeded"), pod(1)),
        "Running",
        "",
        "",
    ),
    "an initializer runs": (
        objects(
            None,
            job_set(
                jobs=[
                    {"name": "dataset-initializer"},
                    {"name": "node", "dependsOn": [{"name": "dataset-initializer"}]},
                ]
            ),
            pod(0, group="dataset-initializer"),
        ),
        "Initializing",
        "Preparing",
        "",
    ),
    "a rank failed, restarts are left": (
        objects(None, job_set(nodes=2, allowed=2), pod(0), pod(1, ended(1), phase="Failed")),
        "Restarting",
        "Error",
        "rank 1 ended with exit code 1; all ranks start again",
    ),
    "the next attempt is not there yet": (
        objects(None, job_set(nodes=2, restarts=1, allowed=2), pod(1, ended(1), is_going=True)),
        "Restarting",
        "Error",
        "restart 1 of 2 after rank 1 ended with exit code 1",
    ),
    "the next attempt runs": (
        objects(None, job_set(restarts=1, allowed=2), pod(0, attempt=1)),
        "Running",
        "",
        "",
    ),
    "a container starts again in place": (
        objects(
            None,
            job_set(),
            pod(0, waiting("CrashLoopBackOff", "back-off 10s"), policy="OnFailure", restarts=1),
        ),
        "Restarting",
        "CrashLoopBackOff",
        "",
    ),
    "suspended": (objects(trainjob(suspend=True), job_set()), "Suspended", "Suspended", ""),
    "suspended, and its pods still end": (
        objects(trainjob(suspend=True), job_set(), pod(0, is_going=True)),
        "Running",
        "Suspending",
        "1 of its pods have not ended",
    ),
    "resumed": (
        objects(
            None,
            job_set(condition("Suspended", "ResumeJobs", status="False"), allowed=2),
            pod(0, last=ended(143, second=8), restarts=1),
        ),
        "Running",
        "",
        "",
    ),
    "in a queue": (
        objects(trainjob(suspend=True, metadata={"labels": {"kueue.x-k8s.io/queue-name": "gpus"}})),
        "Queued",
        "InQueue",
        "queue gpus",
    ),
    "being deleted": (
        objects(trainjob(metadata={"deletionTimestamp": "2026-01-01T00:00:04Z"}), job_set()),
        "Deleting",
        "Deleting",
        "",
    ),
    "complete": (
        objects(trainjob(condition("Complete", "AllJobsCompleted", "well")), job_set()),
        "Complete",
        "AllJobsCompleted",
        "well",
    ),
    "failed by a signal": (
        objects(
            trainjob(condition("Failed", "FailedJobs")),
            job_set(),
            pod(0, ended(137), phase="Failed"),
        ),
        "Failed",
        "Error",
        "rank 0 ended with exit code 137 (SIGKILL)",
    ),
    "out of memory": (
        objects(
            trainjob(condition("Failed", "FailedJobs")),
            job_set(),
            pod(0, ended(137, reason="OOMKilled"), phase="Failed", limits={"memory": "2Gi"}),
        ),
        "Failed",
        "OOMKilled",
        "rank 0 used more memory than its limit of 2Gi and was killed",
    ),
    "the cause that the launcher wrote": (
        objects(
            trainjob(condition("Failed", "FailedJobs")),
            job_set(),
            pod(0, ended(1, message="ValueError: no data"), phase="Failed"),
        ),
        "Failed",
        "Error",
        "rank 0 ended with exit code 1: ValueError: no data",
    ),
    "all restarts used": (
        objects(
            trainjob(condition("Failed", "ReachedMaxRestarts")),
            job_set(restarts=2, allowed=2),
            pod(0, ended(3), phase="Failed", attempt=2),
        ),
        "Failed",
        "Error",
        "exit code 3; all 2 restarts are used up",
    ),
    "evicted": (
        objects(
            trainjob(condition("Failed", "FailedJobs")),
            job_set(),
            pod(0, {}, phase="Failed", status={"reason": "Evicted", "message": "disk pressure"}),
        ),
        "Failed",
        "Evicted",
        "rank 0 was evicted from node n1: disk pressure",
    ),
    "node lost": (
        objects(
            trainjob(condition("Failed", "FailedJobs")),
            job_set(),
            pod(0, ended(137), phase="Failed", status=LOST),
        ),
        "Failed",
        "NodeLost",
        "rank 0 was taken off node n1",
    ),
    "node deleted": (
        objects(None, job_set(allowed=1), pod(0, phase="Failed", status=COLLECTED)),
        "Restarting",
        "NodeLost",
        "rank 0 was taken off node n1: PodGC: node no longer exists; all ranks start again",
    ),
    "taken off a node that does not answer": (
        objects(None, job_set(allowed=1), pod(0, status=LOST, is_going=True)),
        "Restarting",
        "NodeLost",
        "rank 0 was taken off node n1: Taint manager: deleting due to NoExecute taint",
    ),
    "deadline of the TrainJob": (
        objects(trainjob(condition("Failed", "DeadlineExceeded", "x")), None),
        "Failed",
        "DeadlineExceeded",
        "longer than its deadline allows",
    ),
    "deadline of the Job": (
        objects(
            trainjob(condition("Failed", "FailedJobs")),
            job_set(),
            jobs=(job(condition("Failed", "DeadlineExceeded", "was active longer")),),
        ),
        "Failed",
        "DeadlineExceeded",
        "was active longer",
    ),
    "failed without a trace": (
        objects(trainjob(condition("Failed", "FailedJobs", "first failed job: x")), job_set()),
        "Failed",
        "FailedJobs",
        "first failed job: x",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_told(case):
    seen, phase, reason, words = CASES[case]

    told = observe(seen, now=NOW)

    assert (told.phase, told.reason) == (phase, reason)
    assert words in told.message


def test_a_job_without_trainjob_is_gone():
    assert observe(JobObjects(job_set=job_set()), now=NOW).is_gone


def test_the_first_cause_counts_and_not_what_followed_from_it():
    """Rank 0 was told to end because rank 2 had failed; the kubelet noted it first."""
    seen = objects(
        trainjob(condition("Failed", "FailedJobs")),
        job_set(nodes=3),
        pod(0, ended(143, second=6), phase="Failed"),
        pod(1, ended(137, second=9), phase="Failed", is_going=True),
        pod(2, ended(1, second=6), phase="Failed"),
    )
    assert observe(seen, now=NOW).message == "rank 2 ended with exit code 1"


def test_the_last_words_of_a_training_come_after_everything_else():
    seen = objects(
        trainjob(condition("Failed", "FailedJobs")),
        job_set(restarts=1, allowed=1),
        pod(0, ended(1, message="Traceback\nValueError: no data"), attempt=1, phase="Failed"),
    )
    assert observe(seen, now=NOW).message == (
        "rank 0 ended with exit code 1; all 1 restarts are used up: Traceback\nValueError: no data"
    )


def test_a_cause_outlives_its_pod():
    """With the default back-off limit all pods are deleted at the end."""
    past = [Failure("k", 0, 5.0, 1, "Error", "rank 1 ended with exit code 1")]
    seen = objects(trainjob(condition("Failed", "FailedJobs", "first failed job")), job_set())
    assert observe(seen, failures=past, now=NOW).message == "rank 1 ended with exit code 1"


def test_earlier_attempts_are_told_with_their_first_causes():
    """Of the newest ten; what became of attempt 8 nobody saw."""
    past = [
        Failure(
            f"{attempt} {rank}", attempt, 5.0, 143 if rank else 1, "Error", f"rank {rank} broke"
        )
        for attempt in range(12)
        for rank in (1, 0)
        if attempt != 8
    ]
    found = objects(None, job_set(restarts=12, allowed=20), pod(0, attempt=12))

    ended = observe(found, failures=past, now=NOW).ended

    assert [each.attempt for each in ended] == [2, 3, 4, 5, 6, 7, 9, 10, 11]
    assert {each.message for each in ended} == {"rank 0 broke"}


def test_pods_are_told_by_rank_with_what_became_of_them():
    seen = objects(
        None,
        job_set(nodes=2, restarts=1, allowed=3),
        pod(1, ended(7), phase="Failed", attempt=1),
        pod(0, attempt=1, restarts=2),
        pod(0, ended(0), attempt=0, is_going=True),
    )

    told = observe(seen, now=NOW)

    assert (told.attempt, told.max_restarts) == (1, 3)
    assert [(each.name, each.index, each.phase, each.exit_code) for each in told.pods] == [
        ("job-node-0-0", 0, "Running", None),
        ("job-node-0-1", 1, "Failed", 7),
    ]
    assert [each.restarts for each in told.pods] == [2, 0]


def test_a_pod_is_told_with_its_place_as_soon_as_it_has_one():
    seen = objects(
        None,
        job_set(nodes=3),
        pod(0, node="gpu-7", status={"podIP": "10.42.0.17"}),
        pod(1, CREATING, phase="Pending", node="gpu-8"),
        pod(2, CREATING, phase="Pending", node=""),
    )

    assert [(each.node, each.address) for each in observe(seen, now=NOW).pods] == [
        ("gpu-7", "10.42.0.17"),
        ("gpu-8", None),
        (None, None),
    ]


def test_of_two_that_failed_in_one_second_the_one_that_was_noticed_first_stays_the_cause():
    seen = objects(
        trainjob(condition("Failed", "FailedJobs")),
        job_set(nodes=2),
        pod(0, ended(3), phase="Failed"),
        pod(1, ended(3), phase="Failed"),
    )
    past = failures_of(pod(1, ended(3), phase="Failed"))
    assert observe(seen, failures=past, now=NOW).message == "rank 1 ended with exit code 3"


COMPLETE = trainjob(condition("Complete", "AllJobsCompleted"))
FAILED = trainjob(condition("Failed", "FailedJobs"))


@pytest.mark.parametrize(
    ("found", "is_ahead"),
    [
        (objects(COMPLETE, job_set()), True),
        (objects(COMPLETE, job_set(), pod(0, waiting("ContainerCreating"), phase="Pending")), True),
        (objects(COMPLETE, job_set(nodes=2), pod(0, ended(0), phase="Succeeded"), pod(1)), True),
        (objects(COMPLETE, job_set(), pod(0, ended(0), phase="Succeeded")), False),
        (objects(COMPLETE, job_set(restarts=1), pod(0, ended(1), phase="Failed")), True),
        (objects(COMPLETE, job_set(), pod(0, is_going=True)), False),
        (objects(FAILED, job_set()), True),
        (objects(FAILED, job_set(), pod(0, ended(3), phase="Failed")), False),
        (objects(FAILED, job_set(nodes=2), pod(0, ended(3), phase="Failed"), pod(1)), False),
        (objects(trainjob(condition("Failed", "DeadlineExceeded")), job_set()), False),
        (objects(trainjob(condition("Failed", "TrainingRuntimeNotSupported"))), False),
    ],
)
def test_an_end_is_ahead_of_pods_that_have_not_told_theirs(found, is_ahead):
    assert is_ahead_of_pods(found, observe(found, now=NOW)) is is_ahead
