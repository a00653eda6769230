"""Why an installed server does not run, from what the cluster says of its parts."""

from __future__ import annotations

from typing import Any

import pytest

from astrago_trainer.install.server_state import (
    ServerState,
    _newest_pods,
    find_blockers,
    image_fixes,
)

IMAGE = "astrago-trainer:0.1.0"


def a_deployment(*, ready: bool = False, claim: bool = True, **status: Any) -> dict[str, Any]:
    volume = {"persistentVolumeClaim": {"claimName": "astrago-data"}} if claim else {"emptyDir": {}}
    counts = {"updatedReplicas": 1, "availableReplicas": 1} if ready else {"unavailableReplicas": 1}
    return {
        "metadata": {
            "name": "astrago",
            "generation": 2,
            "annotations": {"deployment.kubernetes.io/revision": "2"},
        },
        "spec": {
            "replicas": 1,
            "template": {
                "spec": {
                    "containers": [{"image": IMAGE}],
                    "volumes": [{"name": "data", **volume}],
                }
            },
        },
        "status": {"observedGeneration": 2, **counts, **status},
    }


def a_pod(container: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    shown = {"containerStatuses": [container]} if container else {}
    return {
        "metadata": {"name": "astrago-x", "namespace": "astrago-system", "labels": {}},
        "status": {**shown, **status},
    }


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason, "message": message}}, **more}


def a_claim(phase: str = "Pending", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "astrago-data"}, "spec": spec, "status": {"phase": phase}}


def an_event(reason: str, message: str) -> dict[str, Any]:
    about = {"kind": "PersistentVolumeClaim", "name": "astrago-data"}
    return {"reason": reason, "message": message, "involvedObject": about}


def state(*pods: dict[str, Any], deployment: Any = None, **parts: Any) -> ServerState:
    return ServerState("astrago-system", deployment or a_deployment(), pods, **parts)


def test_a_server_that_runs_has_no_blockers():
    found = state(deployment=a_deployment(ready=True), claim=a_claim("Bound"))
    assert found.is_ready
    assert find_blockers(found) == []
    assert find_blockers(ServerState("astrago-system", None)) == []


def test_a_deployment_that_nobody_has_seen_yet_is_not_ready():
    old = a_deployment(ready=True)
    old["status"]["observedGeneration"] = 1
    assert not state(deployment=old).is_ready


def test_a_claim_that_nobody_serves_is_named_with_why_and_is_final():
    said = "no persistent volumes available for this claim and no storage class is set"
    unscheduled = {
        "type": "PodScheduled",
        "status": "False",
        "message": "pod has unbound immediate PersistentVolumeClaims",
    }
    found = find_blockers(
        state(
            a_pod(conditions=[unscheduled]),
            claim=a_claim(),
            events=[an_event("FailedBinding", said)],
        )
    )
    (claim,) = found  # what follows from it is not repeated
    assert (claim.subject, claim.is_final) == ("claim", True)
    assert "astrago-system/astrago-data is Pending" in claim.text
    assert said in claim.text
    assert any("--storage-class NAME" in each for each in claim.fixes)
    assert any("--storage none" in each for each in claim.fixes)


@pytest.mark.parametrize(
    ("claim", "events", "is_final", "said"),
    [
        (a_claim(), [], False, "the default storage class"),
        (a_claim(storageClassName="fast"), [], False, "the storage class 'fast'"),
        (a_claim(storageClassName=""), [], False, "a volume without a storage class"),
        (
            a_claim(storageClassName="fast"),
            [an_event("ProvisioningFailed", 'storageclass "fast" not found')],
            True,
            "not found",
        ),
        (
            a_claim(storageClassName="fast"),
            [an_event("ProvisioningFailed", "quota of the cloud")],
            False,
            "quota of the cloud",
        ),
    ],
)
def test_a_claim_says_what_it_waits_for(claim, events, is_final, said):
    (found,) = find_blockers(state(claim=claim, events=events))
    assert said in found.text
    assert found.is_final is is_final


def test_a_claim_that_the_server_does_not_use_blocks_nothing():
    assert find_blockers(state(deployment=a_deployment(claim=False), claim=a_claim())) == []


@pytest.mark.parametrize(
    ("reason", "is_final"),
    [
        ("ErrImagePull", False),
        ("ImagePullBackOff", True),
        ("InvalidImageName", True),
        ("ErrImageNeverPull", True),
    ],
)
def test_an_image_that_cannot_be_pulled_is_named_with_the_option_for_another(reason, is_final):
    pod = a_pod(waiting(reason, "pull access denied\n"))
    (found,) = find_blockers(state(pod, claim=a_claim("Bound")))
    assert (found.subject, found.is_final) == ("image", is_final)
    assert f"the image {IMAGE} cannot be pulled ({reason}): pull access denied" in found.text
    assert found.fixes == image_fixes("astrago-system")
    assert "docker push" in found.fixes[0]
    assert "astrago install --apply --image REGISTRY/" in found.fixes[1]


def test_a_crash_is_told_with_its_last_lines():
    ended = {"terminated": {"exitCode": 1, "reason": "Error"}}
    pod = a_pod(waiting("CrashLoopBackOff", lastState=ended))
    (found,) = find_blockers(state(pod, log=["reading", "ASTRAGO_PORT must be a number"]))
    assert (found.subject, found.is_final) == ("start", True)
    assert "exit code 1" in found.text
    assert found.lines[-1] == "ASTRAGO_PORT must be a number"
    killed = a_pod({"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}})
    (found,) = find_blockers(state(killed))
    assert (found.is_final, "exit code 137, OOMKilled" in found.text) == (False, True)


def test_a_quota_that_refuses_the_pod_is_named():
    said = 'pods "astrago-x" is forbidden: exceeded quota: small, requested: cpu=100m'
    failure = {"type": "ReplicaFailure", "status": "True", "message": said}
    (found,) = find_blockers(state(deployment=a_deployment(conditions=[failure])))
    assert (found.subject, found.is_final) == ("quota", True)
    assert "exceeded quota: small" in found.text


def test_no_node_and_a_slow_start_are_no_reason_to_stop_waiting():
    full = {"type": "PodScheduled", "status": "False", "message": "Insufficient memory"}
    (found,) = find_blockers(state(a_pod(conditions=[full])))
    assert (found.subject, found.is_final) == ("node", False)
    starting = a_pod({"state": {"running": {}}})
    (found,) = find_blockers(state(starting))
    assert (found.subject, found.is_final) == ("start", False)


def test_only_pods_of_the_newest_revision_count():
    def a_set(revision: str, hash_: str) -> dict[str, Any]:
        annotations = {"deployment.kubernetes.io/revision": revision}
        return {"metadata": {"annotations": annotations, "labels": {"pod-template-hash": hash_}}}

    def labelled(hash_: str, **more: Any) -> dict[str, Any]:
        return {"metadata": {"labels": {"pod-template-hash": hash_}, **more}}

    new = labelled("new")
    pods = [labelled("old"), new, labelled("new", deletionTimestamp="now")]
    assert _newest_pods(a_deployment(), [a_set("1", "old"), a_set("2", "new")], pods) == [new]
