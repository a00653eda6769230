"""One runtime in plain words: what a job on it gets without asking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from astrago_trainer.cli.terminal import Terminal, clean, cut
from astrago_trainer.manifests.writing import scalar

if TYPE_CHECKING:
    from astrago_trainer.catalogue import RuntimeEntry

Json = Mapping[str, Any]

_ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
_POLICIES = {
    "torch": "torch: Trainer sets PET_* for torchrun in the container node",
    "mpi": "mpi: Trainer makes an ssh key and a hostfile for mpirun",
    "jax": "jax: Trainer sets JAX_* in the container node",
    "xgboost": "xgboost: Trainer sets DMLC_* in the container node",
}
_PLAIN = "none: Trainer sets numNodes and the variables of the job only"


def runtime_page(entry: RuntimeEntry, manifest: Json, terminal: Terminal) -> Iterator[str]:
    """The lines of the page."""
    from textwrap import wrap

    yield terminal.paint(f"{entry.name} · {entry.framework} · {manifest['kind']}", "bold")
    yield from wrap(clean(entry.about), terminal.width)
    spec = manifest["spec"]
    template = spec["template"]["spec"]
    yield ""
    yield _fact("nodes", f"{entry.nodes}, unless the job says otherwise")
    yield _fact("ML policy", _policy(spec.get("mlPolicy") or {}))
    yield _fact("success", _success(template))
    yield _fact("restarts", _restarts(template))
    for job in template["replicatedJobs"]:
        yield ""
        yield from (cut(line, terminal.width) for line in _job(job, terminal))
    yield ""
    script = ", --script its train.py" if entry.has_script else ""
    yield f"-o yaml prints the manifest, --sample a TrainJob{script}."


def _fact(name: str, text: str) -> str:
    return f"{name:<14}{clean(text)}"


def _policy(policy: Json) -> str:
    return next((text for name, text in _POLICIES.items() if name in policy), _PLAIN)


def _success(template: Json) -> str:
    policy = template.get("successPolicy") or {}
    jobs = ", ".join(policy.get("targetReplicatedJobs", ()))
    which = "any pod" if policy.get("operator") == "Any" else "all pods"
    return f"when {which}{f' of {jobs}' if jobs else ''} ended well"


def _restarts(template: Json) -> str:
    policy = template.get("failurePolicy")
    if not policy:
        return "none of the group; see the back-off limit of each job"
    return f"all pods together, at most {policy.get('maxRestarts', 0)} times"


def _job(job: Json, terminal: Terminal) -> Iterator[str]:
    spec = job["template"]["spec"]
    pod = spec["template"]["spec"]
    step = (job["template"].get("metadata") or {}).get("labels", {}).get(_ANCESTOR)
    yield terminal.paint(f"job {job['name']}{f', the {step}' if step else ''}", "bold")
    yield _fact(
        "  pods", f"restartPolicy {pod.get('restartPolicy', 'OnFailure')}, {_backoff(spec)}"
    )
    yield _fact("  TTL", _ttl(spec))
    for depends in job.get("dependsOn", ()):
        yield _fact("  starts", f"when {depends['name']} is {depends['status']}")
    for container in pod.get("initContainers", ()):
        yield from _container("init", container)
    for container in pod["containers"]:
        yield from _container("container", container)
    for volume in pod.get("volumes", ()):
        yield _fact("  volume", f"{volume['name']} ({_source(volume)})")


def _backoff(spec: Json) -> str:
    limit = spec.get("backoffLimit")
    return "backoffLimit 6 (default)" if limit is None else f"backoffLimit {limit}"


def _ttl(spec: Json) -> str:
    seconds = spec.get("ttlSecondsAfterFinished")
    return "none" if seconds is None else f"pods are removed {seconds} s after their end"


def _container(kind: str, container: Json) -> Iterator[str]:
    yield _fact(f"  {kind}", f"{container['name']}  {container.get('image', 'no image')}")
    for variable in container.get("env", ()):
        yield _fact("    env", f"{variable['name']} = {_variable(variable)}")
    for part, amounts in (container.get("resources") or {}).items():
        yield _fact(f"    {part}", ", ".join(f"{name} {amounts[name]}" for name in amounts))
    for mount in container.get("volumeMounts", ()):
        mode = ", read only" if mount.get("readOnly") else ""
        yield _fact("    mount", f"{mount['mountPath']} from {mount['name']}{mode}")
    command = [*container.get("command", ()), *container.get("args", ())]
    if command:
        lines = sum(part.count("\n") + 1 for part in command)
        shown = " ".join(scalar(part) for part in command if "\n" not in part)
        script = f" and a script of {lines} lines" if any("\n" in part for part in command) else ""
        yield _fact("    command", f"{shown}{script}")


def _variable(variable: Json) -> str:
    if "valueFrom" not in variable:
        return scalar(str(variable.get("value", "")))
    return f"from {scalar(variable['valueFrom'])}"


def _source(volume: Json) -> str:
    return next((name for name in volume if name != "name"), "emptyDir")
