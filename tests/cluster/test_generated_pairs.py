"""Generated pairs on the real operator: the JobSet that is stored is the previewed one, with its defaults."""

from __future__ import annotations

import copy
import time

import pytest
from tests.cluster.api import PATIENCE, Json, Space
from tests.cluster.repair import repaired
from tests.oracle.generate import make_pair

from astrago_trainer.core.preview import preview_pair

PAIRS = 50
SEEDS = range(5000, 5200)
API_VERSION = "trainer.kubeflow.org/v1alpha1"


@pytest.mark.req("M82", "M119", "M129")
def test_the_job_sets_of_generated_pairs_are_the_previewed_ones(space, version):
    found = [_acceptable_pair(space, seed, version) for seed in SEEDS]
    # Without objects: admission lets the pair pass, and then the operator crashes on it.
    pairs = [pair for pair in found if pair and preview_pair(*pair, version).objects]
    for _, trainjob in pairs:
        space.create(trainjob)
    outcomes = _outcomes(space, {trainjob["metadata"]["name"] for _, trainjob in pairs})

    equal, different, unforeseen = [], {}, {}
    for runtime, trainjob in pairs:
        name = trainjob["metadata"]["name"]
        preview = preview_pair(runtime, trainjob, version)
        stored = outcomes[name]
        if isinstance(stored, str):
            if not any(problem.code == "JobSetRefused" for problem in preview.problems):
                unforeseen[name] = stored
        elif _compared(preview.objects[0]) != _compared(stored):
            different[name] = (_compared(preview.objects[0]), _compared(stored))
        else:
            equal.append(name)

    assert different == {}
    assert unforeseen == {}
    assert len(equal) >= PAIRS, "the seeds do not give enough pairs that the operator takes"


def _acceptable_pair(space: Space, seed: int, version: str) -> tuple[Json, Json] | None:
    """The pair of the seed in this namespace, suspended, without what the API server refuses."""
    pair = copy.deepcopy(make_pair(seed, version))
    name = f"pair-{seed}"
    metadata = {"name": name, "namespace": space.name}
    runtime = {**pair["runtime"], "kind": "TrainingRuntime", "metadata": metadata}
    (runtime.get("spec") or {}).pop("podGroupPolicy", None)  # no gang scheduler is installed
    runtime = repaired(space, {**runtime, "apiVersion": API_VERSION})
    if runtime is None:
        return None
    space.create(runtime)
    trainjob = {**pair["trainJob"], "apiVersion": API_VERSION, "kind": "TrainJob"}
    reference = {"kind": "TrainingRuntime", "name": name}
    spec = {**trainjob["spec"], "suspend": True, "runtimeRef": reference}
    spec.pop("managedBy", None)  # 2.3 leaves such a job to the other controller
    trainjob = repaired(space, {**trainjob, "metadata": metadata, "spec": spec})
    return None if trainjob is None else (runtime, trainjob)


def _outcomes(space: Space, names: set[str]) -> dict[str, Json | str]:
    """Each job's JobSet, or why there is none: the operator tells that in an event only.

    Asked again until all are told of; two kinds of objects cannot be watched at once.
    """
    failed = "reason=TrainJobResourcesCreationFailed"
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        events = space.list("events", fieldSelector=failed)
        found = {event["involvedObject"]["name"]: event["message"] for event in events}
        found |= {each["metadata"]["name"]: each for each in space.list("jobsets")}
        if names <= found.keys():
            return found
        time.sleep(0.2)
    raise AssertionError(f"nothing is told of {sorted(names - found.keys())}")


def _compared(job_set: Json) -> Json:
    """With the variables of each container sorted: XGBoost's plugin and another take their turns at random."""
    spec = copy.deepcopy(job_set["spec"])
    for job in spec.get("replicatedJobs", ()):
        pod = job["template"]["spec"]["template"]["spec"]
        for container in (*pod.get("initContainers", ()), *pod.get("containers", ())):
            if any(each["name"].startswith("DMLC_") for each in container.get("env", ())):
                container["env"].sort(key=lambda variable: variable["name"])
    metadata = job_set["metadata"]
    labels, annotations = metadata.get("labels"), metadata.get("annotations")
    return {"spec": spec, "labels": labels, "annotations": annotations}
