"""The server's policy allows role bindings where the rule for namespaces allows adoption."""

from __future__ import annotations

import pytest

from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.install.adoption_policy import POLICY, rule_expression, rule_of
from astrago_trainer.install.manifests import Installation, installation_objects, shipped_objects


def policy(objects):
    (found,) = [
        each
        for each in objects
        if (each["kind"], each["metadata"]["name"]) == ("ValidatingAdmissionPolicy", POLICY)
    ]
    return found


def test_without_a_rule_the_policy_is_as_shipped():
    assert policy(installation_objects(Installation())) == policy(shipped_objects())


def test_a_rule_opens_the_policy_for_role_bindings_alone():
    settings = {"ASTRAGO_NAMESPACES": "default,user-*", "ASTRAGO_NAMESPACE_SELECTOR": "team=ml"}
    shipped = policy(shipped_objects())["spec"]["validations"]
    made = policy(installation_objects(Installation(settings=settings)))["spec"]["validations"]
    assert made[1:] == shipped[1:]
    first = made[0]["expression"]
    assert first.startswith(shipped[0]["expression"])
    assert "|| (request.resource.resource == 'rolebindings' && (" in first
    assert "request.namespace == 'default'" in first


def test_patterns_and_labels_never_mean_reserved_namespaces():
    found = rule_expression(rule_of({"ASTRAGO_NAMESPACES": "team-a,user-*-x"}))
    assert found == (
        "(request.namespace == 'team-a') || "
        "(!['kube-', 'kubeflow', 'astrago', 'default'].exists(p, request.namespace.startsWith(p))"
        " && ((request.namespace.matches('^user-.*-x$'))))"
    )
    by_label = rule_expression(rule_of({"ASTRAGO_NAMESPACE_SELECTOR": "team=ml,astrago"}))
    labels = "namespaceObject.metadata.?labels.orValue({})"
    assert f"('team' in {labels} && {labels}['team'] == 'ml' && 'astrago' in {labels})" in by_label
    assert by_label.startswith("(![")


@pytest.mark.parametrize(
    "settings",
    [{"ASTRAGO_NAMESPACES": "a' || true || 'b"}, {"ASTRAGO_NAMESPACE_SELECTOR": "a=b' || true"}],
)
def test_what_is_no_name_never_reaches_the_policy(settings):
    with pytest.raises(InvalidRequest):
        installation_objects(Installation(settings=settings))
