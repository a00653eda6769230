"""The five documents on a real cluster: every command of them, in order, with what they promise.

The documents use fixed names (namespaces `test-user`, `kubeflow-system` and `default`), so one follows the other.
"""

from __future__ import annotations

import pytest


@pytest.mark.req("M29", "M30", "M31", "M32", "M137")
def test_the_backend_integration_guide(replayed):
    replayed("S0")


@pytest.mark.req("M58", "M59", "M61")
def test_the_guide_from_the_form_to_the_trainjob(replayed):
    replayed("S1")


@pytest.mark.req("M66", "M70")
def test_the_quick_start_of_the_overview(replayed):
    replayed("S2")


@pytest.mark.req("M86", "M87", "M89", "M90")
def test_the_workshop_on_the_legacy_operator(replayed):
    replayed("S3")


@pytest.mark.req("M100", "M101", "M102", "M103", "M111", "M113", "M114", "X13", "X15")
def test_the_workshop_on_trainer_v2(replayed):
    replayed("S4")
