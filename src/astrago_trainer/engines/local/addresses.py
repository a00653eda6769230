"""The names and addresses of a job's pods on one machine. Every pod is this machine; its names lead to it."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def address(plan: Json, pod: Json, *, has_view: bool) -> str:
    """One of its own for each pod, as far as names can be given to them."""
    if not has_view:
        return "127.0.0.1"
    names = [each["name"] for group in plan["groups"] for each in group["pods"]]
    position = names.index(pod["name"])
    return f"127.77.{position // 250}.{position % 250 + 1}"


def full_name(plan: Json, pod: Json) -> str:
    return f"{pod['name']}.{plan['subdomain']}.{plan['namespace']}.svc.cluster.local"


def names(plan: Json, *, has_view: bool) -> dict[str, str]:
    """Every name of every pod -> its address."""
    found: dict[str, str] = {}
    for group in plan["groups"]:
        for pod in group["pods"]:
            short = f"{pod['name']}.{plan['subdomain']}"
            for name in (full_name(plan, pod), short, pod["name"]):
                found[name] = address(plan, pod, has_view=has_view)
    return found


def use_own_ports(
    env: dict[str, str], plan: Json, group: Json, ports: list[int], *, has_view: bool
) -> None:
    """Pods share this machine's ports, so two jobs, or two TensorFlow workers, cannot all have the usual one."""
    first, *others = ports
    if "PET_MASTER_PORT" in env:
        env["PET_MASTER_PORT"] = str(first)
    if "JAX_COORDINATOR_ADDRESS" in env:
        env["JAX_COORDINATOR_ADDRESS"] = (
            f"{env['JAX_COORDINATOR_ADDRESS'].rpartition(':')[0]}:{first}"
        )
    hosts = [full_name(plan, pod) if has_view else "127.0.0.1" for pod in group["pods"]]
    pairs = zip(hosts, others, strict=False)
    env.setdefault("TF_ADDRESSES", ",".join(f"{host}:{port}" for host, port in pairs))


def write_hosts(path: str, plan: Json, *, has_view: bool) -> None:
    """The machine's own names, then those of the pods."""
    lines = []
    try:
        with open("/etc/hosts", encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        lines = ["127.0.0.1 localhost", "::1 localhost"]
    lines += [f"{where} {name}" for name, where in names(plan, has_view=has_view).items()]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
