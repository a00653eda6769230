"""What is told of a job whose JobSet may not be read: its pods tell most of it."""

from __future__ import annotations

import pytest
from tests.engines.kubernetes.cases import NOW, ended, objects, pod, trainjob, waiting

from astrago_trainer.engines.kubernetes.phase import observe


@pytest.mark.req("M33")
@pytest.mark.parametrize(
    ("pods", "phase", "attempt"),
    [
        ((pod(0), pod(1)), "Running", 0),
        ((pod(0), pod(1, waiting("ContainerCreating"), phase="Pending")), "Pending", 0),
        ((pod(0, attempt=2), pod(1, attempt=2), pod(0, ended(1), is_going=True)), "Running", 2),
    ],
)
def test_pods_tell_what_runs(pods, phase, attempt):
    seen = observe(objects(trainjob(), None, *pods), now=NOW)
    assert (seen.phase, seen.attempt) == (phase, attempt)


def test_before_there_are_pods_nothing_is_guessed():
    assert observe(objects(trainjob(), None), now=NOW).reason == "Accepted"
