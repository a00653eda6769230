"""Adding to the lists of a container the way the controller does: replace what has the same key, else append."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from astrago_trainer.core.merge.origins import Origin, Origins
from astrago_trainer.core.merge.schema import printed_once

Json = dict[str, Any]


def upsert(items: list[Json], item: Json, key: str) -> None:
    """Put `item` where the first element with the same key stands, else at the end."""
    value = item.get(key)
    for index, present in enumerate(items):
        if present.get(key) == value:
            items[index] = item
            return
    items.append(item)


def upsert_all(items: list[Json], added: Iterable[Json], key: str) -> None:
    """`upsert` for each of `added`, in time linear in both: a job may bring thousands of variables."""
    positions: dict[Any, int] = {}
    for index, item in enumerate(items):
        positions.setdefault(item.get(key), index)
    for item in added:
        at = positions.setdefault(item.get(key), len(items))
        if at < len(items):
            items[at] = item
        else:
            items.append(item)


def upsert_port(items: list[Json], port: Json) -> None:
    """Ports are the same when number or name agree, and two ports without a name agree in it."""
    for index, present in enumerate(items):
        if present.get("containerPort") == port.get("containerPort") or present.get(
            "name"
        ) == port.get("name"):
            items[index] = port
            return
    items.append(port)


def resettle(container: Json) -> None:
    """The controller lays each list over itself once more, which changes lists whose keys repeat."""
    for name, key in (("env", "name"), ("volumeMounts", "mountPath")):
        resettle_list(container, name, key)
    ports = container.get("ports")
    if ports is not None and len(ports) > 1:
        for port in list(ports):
            upsert_port(ports, port)


def resettle_list(holder: Json, name: str, key: str) -> None:
    items = holder.get(name)
    if items is not None and len(items) > 1 and len({item.get(key) for item in items}) < len(items):
        upsert_all(items, list(items), key)


def set_env(container: Json, entries: Iterable[tuple[Json, Origin]], origins: Origins) -> None:
    """Upsert environment variables, each marked with its origin."""
    env = container.setdefault("env", [])
    upsert_all(env, (origins.mark(entry, origin) for entry, origin in entries), "name")
    if not env:
        del container["env"]


def env_value(name: str, value: str) -> Json:
    """A variable with a plain value."""
    return {"name": name, "value": value}


def env_field(name: str, field_path: str) -> Json:
    """A variable whose value Kubernetes takes from the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field_path}}}


def job_env(entries: list[Json] | None, path: str) -> list[tuple[Json, Origin]]:
    """The variables of a TrainJob as the controller copies them, which is not everything a variable can hold."""
    result = []
    for index, entry in enumerate(entries or ()):
        where = f"{path}[{index}]"
        result.append((_copied(entry), Origin(where, where)))
    return result


def _copied(entry: Json) -> Json:
    source = entry.get("valueFrom")
    if source is None:
        return {"name": entry["name"], "value": entry.get("value", "")}
    copied: Json = {}
    if "fieldRef" in source:
        copied["fieldRef"] = {"fieldPath": source["fieldRef"]["fieldPath"]}
    if "resourceFieldRef" in source:
        reference = source["resourceFieldRef"]
        copied["resourceFieldRef"] = {
            "containerName": reference.get("containerName", ""),
            "resource": reference["resource"],
            "divisor": printed_once(reference["divisor"]),
        }
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if kind in source:
            reference = source[kind]
            copied[kind] = {"key": reference["key"], "name": reference.get("name", "")}
            if "optional" in reference:
                copied[kind]["optional"] = reference["optional"]
    return {"name": entry["name"], "valueFrom": copied}
