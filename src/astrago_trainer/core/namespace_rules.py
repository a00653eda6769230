"""Which namespaces are meant: names and patterns with `*`, and labels. Pure.

Two decisions are written this way: what an installation may adopt, and where a backend may act. In both a pattern
never reaches the cluster's own namespaces: `kube-system` and its like are never meant, and reserved ones
(`default`, `kubeflow-system`, …) only by their full name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from astrago_trainer.core.errors import Problem
from astrago_trainer.core.names import MAX_LABEL, RESERVED_NAMESPACES

NEVER = "kube-"
MOST = 100
"""Names and patterns of one rule."""

_PATTERN = re.compile(r"[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?")
_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One part of a label selector."""

    key: str
    value: str | None
    """None: the label is there, whatever its value."""

    def holds(self, labels: Mapping[str, str]) -> bool:
        return labels.get(self.key) == self.value if self.value is not None else self.key in labels


@dataclass(frozen=True, slots=True)
class NamespaceRule:
    """What may be adopted. Without patterns and selector: every namespace that is not reserved."""

    patterns: tuple[str, ...] = ()
    selector: tuple[Requirement, ...] = ()

    @property
    def is_open(self) -> bool:
        return not self.patterns and not self.selector

    def allows(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Named by a pattern, or chosen by its labels."""
        if is_reserved(namespace):
            return is_named(namespace, self.patterns)
        if self.is_open or is_named(namespace, self.patterns):
            return True
        return bool(self.selector) and all(each.holds(labels) for each in self.selector)


def is_reserved(namespace: str) -> bool:
    """Whether only its full name means it."""
    return namespace.startswith(RESERVED_NAMESPACES)


def is_named(namespace: str, patterns: Iterable[str]) -> bool:
    """Whether one of the names and patterns means this namespace."""
    if namespace.startswith((NEVER, "-")):  # in paths `-` stands for all namespaces
        return False
    if is_reserved(namespace):
        return namespace in patterns
    return any(fnmatchcase(namespace, pattern) for pattern in patterns)


def split_patterns(text: str) -> tuple[str, ...]:
    """`user-*, team-a` as a list."""
    return tuple(filter(None, (each.strip() for each in text.split(","))))


def check_patterns(patterns: Iterable[str], *, path: str) -> list[Problem]:
    """Everything that is wrong with them."""
    given = list(patterns)
    problems = []
    if len(given) > MOST:
        message = f"must have at most {MOST} names and patterns; found {len(given)}."
        problems.append(Problem(path, "FieldValueTooMany", message))
    for each in given[:MOST]:
        if len(each) > MAX_LABEL or _PATTERN.fullmatch(each) is None:
            problems.append(
                Problem(
                    path,
                    "FieldValueInvalid",
                    f"must be names of namespaces, or patterns such as user-*; found {each[:80]!r}.",
                )
            )
        elif each.startswith(NEVER):
            message = f"{each!r}: no job runs in the cluster's own namespaces."
            problems.append(Problem(path, "FieldValueForbidden", message))
    return problems


def parse_selector(text: str) -> tuple[Requirement, ...]:
    """`team=ml,astrago`: labels that must all be there; raises ValueError that names the bad part."""
    found = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        key, equals, value = part.replace("==", "=", 1).partition("=")
        key, value = key.strip(), value.strip()
        if _KEY.fullmatch(key) is None or _VALUE.fullmatch(value) is None:
            raise ValueError(part)
        found.append(Requirement(key, value if equals else None))
    return tuple(found)
