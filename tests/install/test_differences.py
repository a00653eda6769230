"""What counts as a difference, and how it is shown."""

from __future__ import annotations

import pytest

from astrago_trainer.install.differences import diff_lines, first_difference, is_same

SHIPPED = {"spec": {"torch": {}, "list": [{"name": "a", "cpu": 4}], "text": "x"}}


@pytest.mark.parametrize(
    ("found", "where"),
    [
        (SHIPPED, ""),
        ({"spec": {**SHIPPED["spec"], "more": 1}, "status": {}}, ""),
        ({"spec": {**SHIPPED["spec"], "list": [{"name": "a", "cpu": "4", "new": 1}]}}, ""),
        ({"spec": {**SHIPPED["spec"], "text": "y"}}, "spec.text"),
        ({"spec": {"list": SHIPPED["spec"]["list"], "text": "x"}}, "spec.torch"),
        ({"spec": {**SHIPPED["spec"], "list": []}}, "spec.list"),
        ({"spec": {**SHIPPED["spec"], "list": [{"name": "b", "cpu": 4}]}}, "spec.list[0].name"),
        ({}, "spec"),
    ],
)
def test_what_the_cluster_lacks_is_named_by_its_path(found, where):
    assert first_difference(SHIPPED, found) == where


def test_a_diff_leaves_out_what_the_server_writes():
    before = {"metadata": {"name": "a", "uid": "1", "resourceVersion": "7"}, "data": {"x": "1"}}
    after = {"metadata": {"name": "a", "uid": "1", "resourceVersion": "8"}, "data": {"x": "2"}}
    lines = list(diff_lines(before, after, "ConfigMap a"))
    changed = [line for line in lines if line[0] in "+-" and line[:3] not in ("+++", "---")]
    assert changed == ['-  x: "1"', '+  x: "2"']
    assert not list(diff_lines(before, {**before, "status": {"now": 1}}, "ConfigMap a"))


def test_a_new_object_is_all_new():
    lines = list(diff_lines(None, {"metadata": {"name": "a"}}, "ConfigMap a"))
    assert lines[-2:] == ["+metadata:", "+  name: a"]


@pytest.mark.parametrize(
    ("metadata", "same"),
    [
        ({"finalizers": ["trainer.kubeflow.org/resource-in-use"]}, True),
        ({"annotations": {"deployment.kubernetes.io/revision": "2"}}, True),
        ({"annotations": {"mine": "2"}}, False),
        ({"labels": {"mine": "2"}}, False),
    ],
)
def test_what_controllers_write_is_no_change(metadata, same):
    before = {"metadata": {"name": "a"}, "status": {}}
    after = {"metadata": {"name": "a", **metadata}, "status": {"ready": 1}}
    assert is_same(before, after) is same
    assert (list(diff_lines(before, after, "a")) == []) is same
