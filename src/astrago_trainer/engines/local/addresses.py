"""The names and addresses of a job's pods on one machine. Every pod is this machine; its names lead to it."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def pod_name(plan: Json, group: Json, index: int) -> str:
    return f"{plan['name']}-{group['name']}-0-{index}"


def full_name(plan: Json, pod: str) -> str:
    return f"{pod}.{plan['subdomain']}.{plan['namespace']}.svc.cluster.local"


def addresses(plan: Json, *, has_view: bool) -> dict[str, str]:
    """Every pod -> its address: one of its own, as far as names can be given to them."""
    pods = [pod_name(plan, group, n) for group in plan["groups"] for n in range(group["count"])]
    if not has_view:
        return dict.fromkeys(pods, "127.0.0.1")
    return {pod: f"127.77.{n // 250}.{n % 250 + 1}" for n, pod in enumerate(pods)}


def names(plan: Json, where: dict[str, str]) -> dict[str, str]:
    """Every name of every pod -> its address."""
    return {
        name: address
        for pod, address in where.items()
        for name in (full_name(plan, pod), f"{pod}.{plan['subdomain']}", pod)
    }


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
    pods = [pod_name(plan, group, index) for index in range(group["count"])]
    hosts = [full_name(plan, pod) if has_view else "127.0.0.1" for pod in pods]
    pairs = zip(hosts, others, strict=False)
    env.setdefault("TF_ADDRESSES", ",".join(f"{host}:{port}" for host, port in pairs))


def write_hosts(path: str, named: dict[str, str]) -> None:
    """The machine's own names, then those of the pods."""
    try:
        with open("/etc/hosts", encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        lines = ["127.0.0.1 localhost", "::1 localhost"]
    lines += [f"{where} {name}" for name, where in named.items()]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
