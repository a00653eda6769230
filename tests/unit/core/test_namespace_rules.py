"""Names, patterns and labels that mean namespaces; a pattern never reaches the cluster's own."""

from __future__ import annotations

import pytest

from astrago_trainer.core.namespace_rules import (
    MOST,
    NamespaceRule,
    Requirement,
    check_patterns,
    is_named,
    parse_selector,
    split_patterns,
)


@pytest.mark.parametrize(
    ("namespace", "patterns", "is_meant"),
    [
        ("user-123", ("user-*",), True),
        ("user-123", ("team-a", "user-123"), True),
        ("user-123", ("*",), True),
        ("users", ("user-*",), False),
        ("my-user-1", ("user-*",), False),
        ("user-123", (), False),
        ("kube-system", ("*", "kube-system", "kube-*"), False),
        ("default", ("*", "default*"), False),
        ("default", ("*", "default"), True),
        ("kubeflow-system", ("kubeflow-*",), False),
        ("kubeflow-system", ("kubeflow-system",), True),
        ("-", ("*", "-"), False),
    ],
)
def test_what_a_pattern_means(namespace, patterns, is_meant):
    assert is_named(namespace, patterns) is is_meant


def test_a_rule_without_content_allows_all_that_is_not_reserved():
    rule = NamespaceRule()
    assert rule.allows("user-123", {})
    for reserved in ("default", "kube-system", "kubeflow-system", "astrago-system"):
        assert not rule.allows(reserved, {"team": "ml"})


def test_a_rule_allows_by_name_or_by_labels():
    rule = NamespaceRule(("team-a", "default"), parse_selector("team=ml, astrago"))
    assert rule.allows("team-a", {})
    assert rule.allows("default", {})
    assert rule.allows("other", {"team": "ml", "astrago": "yes", "more": "x"})
    assert not rule.allows("other", {"team": "ml"})
    assert not rule.allows("other", {"team": "web", "astrago": ""})
    # A label on a reserved namespace is no decision for it.
    assert not rule.allows("kubeflow-system", {"team": "ml", "astrago": "yes"})


def test_a_selector_is_labels_with_commas_between():
    assert parse_selector("") == ()
    assert parse_selector("example.org/team==ml,astrago") == (
        Requirement("example.org/team", "ml"),
        Requirement("astrago", None),
    )
    for bad in ("team in (a)", "=x", "team=a b", "!team", "team!=a", "x" * 3 + "'=1"):
        with pytest.raises(ValueError, match=r"."):
            parse_selector(bad)


def test_everything_wrong_with_patterns_is_found():
    assert split_patterns(" user-*, team-a ,,") == ("user-*", "team-a")
    assert check_patterns(["user-*", "*", "a"], path="p") == []
    problems = check_patterns(["User", "a b", "kube-system", "x'", "[a]", "a" * 64], path="p")
    assert [each.code for each in problems].count("FieldValueInvalid") == 5
    assert [each.code for each in problems].count("FieldValueForbidden") == 1
    assert check_patterns(["a"] * (MOST + 1), path="p")[0].code == "FieldValueTooMany"
