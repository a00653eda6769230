"""The rights that the server needs, read off the shipped roles: what is installed is what is asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from astrago_trainer.install.manifests import ACCOUNT, shipped_objects

EVERYWHERE = ("astrago-reader", "astrago-signup")
IN_TENANTS = ("trainjob-backend-role", "astrago-job-runtimes")


class Right(NamedTuple):
    verb: str
    group: str
    resource: str
    """With its part: `pods/log`."""
    name: str
    """Of the one object that is meant; empty for all."""

    def __str__(self) -> str:
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {kind}{f' {self.name}' if self.name else ''}"

    def attributes(self, namespace: str) -> dict[str, str]:
        """As an access review has it."""
        resource, _, part = self.resource.partition("/")
        return {
            "verb": self.verb,
            "group": self.group,
            "resource": resource,
            "subresource": part,
            "namespace": namespace,
            "name": self.name,
        }


def rights_of(roles: Iterable[str]) -> list[Right]:
    wanted = set(roles)
    return [
        right
        for each in shipped_objects()
        if each["kind"] == "ClusterRole" and each["metadata"]["name"] in wanted
        for rule in each["rules"]
        for right in _rights(rule)
    ]


def account_name(namespace: str) -> str:
    """The server's service account as the API server names it."""
    return f"system:serviceaccount:{namespace}:{ACCOUNT}"


def account_groups(namespace: str) -> list[str]:
    return [
        "system:serviceaccounts",
        f"system:serviceaccounts:{namespace}",
        "system:authenticated",
    ]


def _rights(rule: dict[str, list[str]]) -> Iterator[Right]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                for name in rule.get("resourceNames", [""]):
                    yield Right(verb, group, resource, name)
