"""The guide is true: every command of it runs on a real cluster, in order, and prints what the page says.

The pages use fixed names (namespaces `test-user`, `kubeflow-system` and `default`), so one follows the other.
"""

from __future__ import annotations

import pytest


@pytest.mark.req("M29", "M30", "M31", "M32", "M35", "M58", "M59", "M60", "M61")
@pytest.mark.req("X8", "X16", "X21", "X22")
def test_the_first_jobs(follow_page):
    follow_page("first-jobs.md")


@pytest.mark.req("M63", "M65", "M66", "M68", "M70", "M79", "X20")
def test_the_quick_start(follow_page):
    follow_page("quick-start.md")


@pytest.mark.req("M86", "M87", "M89", "M90", "M92", "M93", "M94", "M97")
def test_the_legacy_training_operator(follow_page, kubectl):
    if "pytorchjobs.kubeflow.org" not in kubectl("get", "crd", "-o", "name"):
        pytest.skip("the legacy operator is not installed: make cluster LEGACY=1")
    follow_page("legacy-training-operator.md")


@pytest.mark.req("M99", "M100", "M101", "M102", "M103", "M104", "M105", "M106", "M108", "M109")
@pytest.mark.req("M111", "M114", "M115", "M117", "M118")
@pytest.mark.seeds("S4-21")
def test_resilient_training(follow_page):
    follow_page("resilient-training.md")


@pytest.mark.req("M105", "M125", "M126", "M135", "X6")
def test_troubleshooting(follow_page):
    follow_page("troubleshooting.md")
