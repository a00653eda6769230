"""Lets the server's policy allow what its rule for namespaces allows: rights of its own where it adopts. Pure.

The role for sign-up could bind roles everywhere; the policy `astrago-server-writes` holds it to tenants' namespaces.
A rule in the settings (ASTRAGO_NAMESPACES, ASTRAGO_NAMESPACE_SELECTOR) opens it for role bindings in the namespaces
that the rule means, and for nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from astrago_trainer.core.names import RESERVED_NAMESPACES
from astrago_trainer.core.namespace_rules import NamespaceRule, parse_selector, split_patterns

Json = dict[str, Any]

POLICY = "astrago-server-writes"


def rule_of(settings: Mapping[str, str]) -> NamespaceRule:
    """Of the server's variables; they have been checked."""
    return NamespaceRule(
        split_patterns(settings.get("ASTRAGO_NAMESPACES", "")),
        parse_selector(settings.get("ASTRAGO_NAMESPACE_SELECTOR", "")),
    )


def allow_adoption(objects: Iterable[Json], rule: NamespaceRule) -> None:
    """Changes the policy among the objects; without a rule it stays as shipped."""
    if rule.is_open:
        return
    for each in objects:
        if (each["kind"], each["metadata"]["name"]) == ("ValidatingAdmissionPolicy", POLICY):
            first = each["spec"]["validations"][0]
            allowed = f"request.resource.resource == 'rolebindings' && ({rule_expression(rule)})"
            first["expression"] = f"{first['expression']} || ({allowed})"


def rule_expression(rule: NamespaceRule) -> str:
    """The rule as CEL. Names, keys and values were checked: none of them can end a string."""
    names = [each for each in rule.patterns if "*" not in each]
    patterns = [each for each in rule.patterns if "*" in each]
    wide = [f"request.namespace.matches('^{_regex(each)}$')" for each in patterns]
    if rule.selector:
        labels = "namespaceObject.metadata.?labels.orValue({})"
        wide.append(
            " && ".join(
                f"'{each.key}' in {labels}"
                + ("" if each.value is None else f" && {labels}['{each.key}'] == '{each.value}'")
                for each in rule.selector
            )
        )
    parts = [f"request.namespace == '{each}'" for each in names]
    if wide:
        reserved = ", ".join(f"'{each}'" for each in RESERVED_NAMESPACES)
        chosen = " || ".join(f"({each})" for each in wide)
        parts.append(f"![{reserved}].exists(p, request.namespace.startsWith(p)) && ({chosen})")
    return " || ".join(f"({each})" for each in parts)


def _regex(pattern: str) -> str:
    return ".*".join(re.escape(part).replace("\\-", "-") for part in pattern.split("*"))
