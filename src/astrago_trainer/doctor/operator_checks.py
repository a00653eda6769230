"""Judges Kubernetes, Kubeflow Trainer and JobSet. Pure: facts to findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from astrago_trainer.doctor.cluster_facts import (
    OPERATORS,
    Answer,
    ClusterFacts,
    Trouble,
    operators_webhooks,
)
from astrago_trainer.doctor.findings import Finding, counted, listed, ok, warning, wrong
from astrago_trainer.install.prerequisites import (
    Operators,
    check_operators,
    jobset_commands,
    minor_of,
    trainer_commands,
)

Json = Mapping[str, Any]

_TRAINER_KINDS = ("trainjobs", "trainingruntimes", "clustertrainingruntimes")


def check_kubernetes(facts: ClusterFacts) -> Finding:
    found = str(facts.version["gitVersion"]) if isinstance(facts.version, Mapping) else ""
    # As an installation would: one rule for what is too old.
    too_old = [
        each for each in check_operators(Operators(found, "2.1", True)) if each.path == "Kubernetes"
    ]
    if too_old:
        return wrong("Kubernetes", too_old[0].message)
    if minor_of(found) is None:
        return warning("Kubernetes", f"{facts.server} does not say its version")
    return ok("Kubernetes", f"{found.removeprefix('v')} at {facts.server}")


def check_account(facts: ClusterFacts) -> Finding:
    if isinstance(facts.me, Trouble):
        return warning("account", f"the cluster does not say who you are: {facts.me.text}")
    return ok("account", f"you are {facts.me['status']['userInfo']['username']}")


def check_trainer(facts: ClusterFacts) -> Finding:
    if facts.dialect_trouble:
        return wrong("Trainer", facts.dialect_trouble, *trainer_commands())
    if missing := _missing(facts.trainer_kinds, _TRAINER_KINDS):
        return wrong(
            "Trainer", f"kinds are missing: {', '.join(missing)}", *_of_release(facts.dialect)
        )
    return ok("Trainer", f"{facts.dialect}, read off its schema{_image(facts, 'trainer')}")


def check_jobset(facts: ClusterFacts) -> Finding:
    if _missing(facts.jobset_kinds, ("jobsets",)):
        commands = jobset_commands(facts.dialect) if facts.dialect else ()
        return wrong("JobSet", "the cluster has none, and without it no job gets pods", *commands)
    return ok("JobSet", f"jobset.x-k8s.io/v1alpha2{_image(facts, 'jobset')}")


def check_controllers(facts: ClusterFacts) -> Finding:
    """Those that make JobSets and Jobs."""
    subject = "controllers"
    if isinstance(facts.operators, Trouble):
        return unread(subject, facts.operators)
    deployments = {
        each["metadata"]["name"]: each
        for each in facts.operators["items"]
        if _deployed(each, "trainer") or _deployed(each, "jobset")
    }
    if not deployments:
        return warning(
            subject,
            f"none are in the namespace {OPERATORS}; whether they run elsewhere was not looked at",
            "kubectl get deployments -A | grep -E 'trainer|jobset'",
        )
    down = [name for name, each in deployments.items() if not _is_available(each)]
    if down:
        return wrong(
            subject,
            f"{listed(down)} does not run: jobs are accepted and nothing happens"
            if len(down) == 1
            else f"{listed(down)} do not run: jobs are accepted and nothing happens",
            f"kubectl -n {OPERATORS} describe deployment {down[0]}",
        )
    return ok(subject, f"{listed(deployments)} run")


def check_webhooks(facts: ClusterFacts) -> Finding:
    """Whether they are there, with a certificate and a pod behind them."""
    subject = "webhooks"
    if not facts.dialect:
        return without_trainer(subject)
    if isinstance(facts.webhooks, Trouble):
        return unread(subject, facts.webhooks)
    hooks = operators_webhooks(facts.webhooks)
    if not hooks:
        return wrong(
            subject,
            "none stands before TrainJobs: mistakes are noticed too late, or never",
            *_of_release(facts.dialect),
        )
    bare = [str(each["name"]) for each in hooks if not each["clientConfig"].get("caBundle")]
    if bare:
        return wrong(
            subject,
            f"{listed(bare)} without the certificate of an authority (caBundle): no job can be created",
            f"kubectl -n {OPERATORS} rollout restart deployment",
        )
    empty = [
        f"{namespace}/{service}"
        for (namespace, service), answer in facts.endpoints.items()
        if isinstance(answer, Mapping) and not _has_ready(answer)
    ]
    if empty:
        return wrong(
            subject,
            f"no pod is ready behind {listed(empty)}: no job can be created",
            f"kubectl -n {empty[0].partition('/')[0]} get pods",
        )
    return ok(subject, f"{counted(len(hooks), 'webhook')} with certificates and ready pods")


def check_probe(facts: ClusterFacts) -> Finding:
    """The answer to a TrainJob whose runtime does not exist, sent as a dry run."""
    subject = "admission"
    probe = facts.probe
    if not facts.dialect:
        return without_trainer(subject)
    if not isinstance(probe, Trouble):
        return warning(
            subject,
            "a TrainJob whose runtime does not exist was accepted (dry run): the Trainer's webhook is not asked",
            *_of_release(facts.dialect),
        )
    if "admission webhook" in probe.text:
        return ok(subject, "the Trainer's webhook answers (dry run of a TrainJob)")
    if probe.is_forbidden:
        return warning(subject, f"it was not tried: {probe.text}")
    return wrong(
        subject,
        f"a TrainJob cannot be created (dry run): {probe.text}",
        f"kubectl -n {OPERATORS} get pods,endpointslices",
    )


def unread(subject: str, trouble: Trouble) -> Finding:
    """Nobody could look; that is no fault of the cluster's."""
    if trouble.is_forbidden:
        return warning(subject, f"your account may not look: {trouble.text}")
    return wrong(subject, f"cannot be read: {trouble.text}")


def without_trainer(subject: str) -> Finding:
    """One cause is told once."""
    return warning(subject, "not looked at, as long as the Trainer is missing")


def has_ready(slices: Answer) -> bool:
    return isinstance(slices, Mapping) and _has_ready(slices)


def _has_ready(slices: Json) -> bool:
    return any(
        (endpoint.get("conditions") or {}).get("ready")
        for each in slices["items"]
        for endpoint in each.get("endpoints") or ()
    )


def _missing(kinds: Answer, wanted: tuple[str, ...]) -> list[str]:
    if isinstance(kinds, Trouble):
        return list(wanted)
    there = {each["name"] for each in kinds.get("resources") or ()}
    return [each for each in wanted if each not in there]


def _deployed(deployment: Json, word: str) -> bool:
    return word in deployment["metadata"]["name"]


def _is_available(deployment: Json) -> bool:
    return bool((deployment.get("status") or {}).get("availableReplicas"))


def _image(facts: ClusterFacts, word: str) -> str:
    """What its Deployment says it runs, where one may look."""
    if isinstance(facts.operators, Trouble):
        return ""
    images = [
        str(container["image"]).rpartition("/")[2]
        for each in facts.operators["items"]
        if _deployed(each, word)
        for container in each["spec"]["template"]["spec"]["containers"]
    ]
    return f"; {images[0]}" if images else ""


def _of_release(dialect: str) -> list[str]:
    """The command that applies this release anew."""
    commands = trainer_commands()
    return [each for each in commands if f"ref=v{dialect}." in each] or commands
