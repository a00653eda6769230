"""The environment of a container as Kubernetes would make it: references, `$(NAME)`, what a pod knows of itself."""

from __future__ import annotations

import re
from typing import Any

Json = dict[str, Any]

_REFERENCE = re.compile(r"\$(\$|\([^()]*\))")
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


def expand(text: str, known: dict[str, str]) -> str:
    """`$(NAME)` by its value, `$$` by `$`; a name that is not known stays as it is written."""

    def value(found: re.Match[str]) -> str:
        if found[1] == "$":
            return "$"
        return known.get(found[1][1:-1], found[0])

    return _REFERENCE.sub(value, text)


def field_value(path: str, pod: Json) -> str:
    """What the downward API gives for a path; empty for what a machine without Kubernetes does not have."""
    found = _SUBSCRIPT.fullmatch(path)
    if found:
        return str(pod[found[1]].get(found[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        pairs = pod[path.partition(".")[2]]
        return "".join(f'{key}="{pairs[key]}"\n' for key in sorted(pairs))
    plain = {
        "metadata.name": pod["name"],
        "metadata.namespace": pod["namespace"],
        "metadata.uid": pod["uid"],
        "spec.nodeName": pod["node"],
        "spec.serviceAccountName": pod["service_account"],
        "status.podIP": pod["address"],
        "status.podIPs": pod["address"],
        "status.hostIP": pod["address"],
        "status.hostIPs": pod["address"],
    }
    return str(plain.get(path, ""))


def container_env(entries: list[Json], pod: Json, before: dict[str, str]) -> dict[str, str]:
    """In the order given: a value may refer to the ones before it, and the later of two with one name wins."""
    env = dict(before)
    told: dict[str, str] = {}
    for entry in entries:
        if "field" in entry:
            value = field_value(entry["field"], pod)
        elif entry.get("literal"):
            value = entry["value"]
        else:
            value = expand(entry["value"], told)
        told[entry["name"]] = env[entry["name"]] = value
    return env
