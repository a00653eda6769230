"""What must be there before us is named, with the command that brings it."""

from __future__ import annotations

import pytest
from cluster.pins import PROFILES

from astrago_trainer.core.platform import TRAINER_VERSIONS
from astrago_trainer.install.prerequisites import (
    JOBSET_RELEASES,
    RELEASES,
    Operators,
    check_operators,
    minor_of,
    trainer_commands,
)


def test_a_cluster_with_all_of_it_is_fine():
    assert check_operators(Operators("v1.34.4", "2.1", True)) == []


@pytest.mark.req("M100")
def test_without_a_trainer_there_is_a_command_for_each_release():
    (problem, jobset) = check_operators(Operators("v1.34.4", "", False))
    assert problem.path == "Kubeflow Trainer"
    for tag in RELEASES.values():
        assert tag in problem.remedy
    assert "manifests/overlays/manager?ref=v2.1.0" in problem.remedy
    assert len(trainer_commands()) == len(RELEASES)
    assert jobset.remedy == "It comes with the Trainer."


def test_without_jobset_the_one_of_the_trainers_release_is_named():
    (problem,) = check_operators(Operators("v1.34.4", "2.2", False))
    assert "/v0.11.1/manifests.yaml" in problem.remedy


def test_an_old_cluster_has_no_admission_policies():
    (problem,) = check_operators(Operators("v1.29.9-eks-1", "2.1", True))
    assert "1.30 or later" in problem.message


@pytest.mark.parametrize(
    ("version", "minor"), [("v1.34.4", 34), ("v1.31.0-eks-1", 31), ("", None), ("what", None)]
)
def test_the_minor_version_is_read(version, minor):
    assert minor_of(version) == minor


def test_the_releases_are_those_that_tests_run_against():
    assert tuple(RELEASES) == tuple(TRAINER_VERSIONS) == tuple(JOBSET_RELEASES)
    for name, profile in PROFILES.items():
        assert RELEASES[name] == f"v{profile.trainer}"
        assert JOBSET_RELEASES[name] == f"v{profile.jobset}"
