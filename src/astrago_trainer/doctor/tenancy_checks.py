"""Judges the installation and its tenants: rights, roles, policies, the server, namespaces. Pure: facts to findings."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from astrago_trainer import __version__
from astrago_trainer.doctor.cluster_facts import ClusterFacts, Trouble
from astrago_trainer.doctor.findings import Finding, counted, listed, ok, shortened, warning, wrong
from astrago_trainer.doctor.operator_checks import unread
from astrago_trainer.doctor.rights import IN_TENANTS
from astrago_trainer.install.adoption_policy import allow_adoption, rule_of
from astrago_trainer.install.differences import first_difference
from astrago_trainer.install.manifests import ACCOUNT, NAMESPACE, shipped_objects
from astrago_trainer.install.server_state import find_blockers

Json = Mapping[str, Any]

_ENFORCE = "pod-security.kubernetes.io/enforce"
_ROLES = ("ClusterRole", "ClusterRoleBinding")
_POLICIES = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")


def check_rights(facts: ClusterFacts) -> Finding:
    """Of the server's account if it is installed, else of whoever asks: that one would run the server."""
    whose = facts.rights_of_whom or "your account"
    if facts.rights_trouble:
        return warning("rights", f"those of {whose} were not looked at: {facts.rights_trouble}")
    if facts.missing_rights:
        return wrong(
            "rights",
            f"{whose} may not {listed(map(str, facts.missing_rights), 4)}",
            install_command(facts),
        )
    return ok("rights", f"{whose} has all that the server needs")


def check_roles(facts: ClusterFacts) -> Finding:
    return _as_shipped(
        facts, "roles", _ROLES, "the server cannot run in this cluster, nor take tenants in"
    )


def check_policies(facts: ClusterFacts) -> Finding:
    return _as_shipped(
        facts,
        "policies",
        _POLICIES,
        "what the API refuses (privileged pods, folders of nodes) the cluster would take from others",
    )


def check_server(facts: ClusterFacts) -> Finding:
    found = facts.installed.get(("Deployment", "astrago"), Trouble(404, ""))
    where = f"kubectl -n {facts.namespace}"
    if isinstance(found, Trouble):
        if not found.is_missing:
            return unread("server", found)
        return warning(
            "server", f"not installed in the namespace {facts.namespace}", install_command(facts)
        )
    image = str(found["spec"]["template"]["spec"]["containers"][0]["image"])
    if not (found.get("status") or {}).get("availableReplicas"):
        return wrong(
            "server",
            f"{facts.namespace}/astrago is not available ({image})",
            f"{where} describe pods -l app.kubernetes.io/name=astrago-trainer",
            f"{where} logs deployment/astrago",
        )
    tag = image.rpartition(":")[2]
    if tag != __version__:
        return warning(
            "server",
            f"{facts.namespace}/astrago runs {image}, this is astrago {__version__}",
            install_command(facts, "--diff"),
        )
    return ok("server", f"{facts.namespace}/astrago runs {image}")


def check_blockers(facts: ClusterFacts) -> list[Finding]:
    """What keeps the installed server from running: its claim, its image, its quota, its own end."""
    if facts.state is None:
        return []
    return [
        wrong(each.subject, "; ".join((each.text, *each.lines[-3:])), *each.fixes)
        for each in find_blockers(facts.state)
    ]


def check_tenants(facts: ClusterFacts) -> Finding:
    """Their namespaces enforce Pod Security, and their pods get no token of the cluster."""
    if isinstance(facts.tenants, Trouble):
        return unread("tenants", facts.tenants)
    tenants = facts.tenants["items"]
    lax = [
        name_of(each)
        for each in tenants
        if (each["metadata"].get("labels") or {}).get(_ENFORCE) not in ("baseline", "restricted")
    ]
    if lax:
        return warning(
            "tenants",
            f"Pod Security is not enforced in {listed(lax)}",
            f"kubectl label namespace {lax[0]} {_ENFORCE}=baseline --overwrite",
        )
    talking = [
        namespace
        for namespace, account in facts.accounts.items()
        if isinstance(account, Mapping) and account.get("automountServiceAccountToken") is not False
    ]
    if talking:
        return warning(
            "tenants",
            f"pods in {listed(talking)} get a token of the cluster",
            f"kubectl -n {talking[0]} patch serviceaccount default "
            """-p '{"automountServiceAccountToken": false}'""",
        )
    if facts.unbound:
        account = f"{facts.namespace}:{ACCOUNT}"
        return warning(
            "tenants",
            f"{facts.rights_of_whom} has no role in {listed(facts.unbound)}: no job can be made there",
            *(
                f"kubectl -n {facts.unbound[0]} create rolebinding {role} --clusterrole={role} "
                f"--serviceaccount={account}"
                for role in IN_TENANTS
            ),
        )
    if not tenants:
        return ok("tenants", "none yet; they are made at sign-up")
    return ok(
        "tenants", f"{counted(len(tenants), 'namespace')}, all with Pod Security, none with a token"
    )


def install_command(facts: ClusterFacts, verb: str = "--apply") -> str:
    """For a first installation with an image: none is published."""
    where = "" if facts.namespace == NAMESPACE else f" --namespace {facts.namespace}"
    found = facts.installed.get(("Deployment", "astrago"), Trouble(404, ""))
    is_first = isinstance(found, Trouble) and found.is_missing
    image = f" --image REGISTRY/astrago-trainer:{__version__}" if is_first else ""
    return f"astrago install {verb}{image}{where}"


def name_of(found: Json) -> str:
    return str(found["metadata"]["name"])


def _settings(facts: ClusterFacts) -> dict[str, str]:
    """Variables of the installed server."""
    found = facts.installed.get(("Deployment", "astrago"), Trouble(404, ""))
    if isinstance(found, Trouble):
        return {}
    variables = found["spec"]["template"]["spec"]["containers"][0].get("env") or ()
    return {each["name"]: str(each.get("value", "")) for each in variables}


def _as_shipped(facts: ClusterFacts, subject: str, kinds: tuple[str, ...], meaning: str) -> Finding:
    """Whether everything of these kinds is there, and as this release has it."""
    missing, changed = [], []
    shipped = [each for each in shipped_objects(facts.namespace) if each["kind"] in kinds]
    with suppress(ValueError):  # somebody has set a selector that no server starts with
        allow_adoption(shipped, rule_of(_settings(facts)))
    for each in shipped:
        title = f"{each['kind']} {name_of(each)}"
        found = facts.installed.get((each["kind"], name_of(each)), Trouble(404, ""))
        if isinstance(found, Trouble):
            if not found.is_missing:
                return unread(subject, found)
            missing.append(title)
        elif where := first_difference(each, found):
            changed.append(f"{title} ({shortened(where)})")
    if len(missing) == len(shipped):
        return warning(subject, f"none are installed: {meaning}", install_command(facts))
    if missing:
        return wrong(subject, f"{listed(missing, 3)} missing: {meaning}", install_command(facts))
    if changed:
        return warning(
            subject,
            f"not as this release has them: {listed(changed, 3)}",
            install_command(facts, "--diff"),
        )
    return ok(subject, f"all {len(shipped)} are as this release has them")
