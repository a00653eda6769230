"""Reads what a cluster has. Every question has an answer, refusals too; nothing is written, probes are dry runs."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from astrago_trainer.doctor.rights import (
    EVERYWHERE,
    IN_TENANTS,
    Right,
    account_groups,
    account_name,
    rights_of,
)
from astrago_trainer.engines.base import EngineRejected, EngineUnavailable
from astrago_trainer.engines.kubernetes.client import Forbidden, Refused
from astrago_trainer.engines.kubernetes.dialect import find_dialect
from astrago_trainer.engines.kubernetes.resources import TENANT
from astrago_trainer.install.cluster import InstallClient, name_of
from astrago_trainer.install.manifests import ACCOUNT, shipped_objects
from astrago_trainer.install.server_state import ServerState, read_server

Json = Mapping[str, Any]

OPERATORS = "kubeflow-system"
PROBE = "astrago-doctor-probe"
_AT_ONCE = 16
_MOST_TENANTS = 50
_TRAINER = "/apis/trainer.kubeflow.org/v1alpha1"
_JOBSET = "/apis/jobset.x-k8s.io/v1alpha2"
_REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
_REVIEWS = "/apis/authorization.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Trouble:
    """What was answered instead; status 0: nothing was."""

    status: int
    text: str

    @property
    def is_forbidden(self) -> bool:
        return self.status == 403

    @property
    def is_missing(self) -> bool:
        return self.status == 404


Answer = Json | Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    server: str
    namespace: str
    """Where our server is, or would be."""
    version: Answer
    me: Answer
    dialect: str
    dialect_trouble: str
    trainer_kinds: Answer
    jobset_kinds: Answer
    operators: Answer
    """Deployments beside the Trainer's."""
    webhooks: Answer
    """Validating and mutating ones, together."""
    endpoints: Mapping[tuple[str, str], Answer]
    """Namespace and service of a webhook -> its EndpointSlices."""
    probe: Answer
    """What a dry run of a TrainJob says, which refers to no runtime."""
    dns_service: Answer
    dns_endpoints: Answer
    daemon_sets: Answer
    is_resolved: bool | None
    """Whether names of the cluster resolve here; None outside of it."""
    runtimes: Answer
    installed: Mapping[tuple[str, str], Answer]
    """Kind and name of what is shipped beside the catalogue -> as the cluster has it."""
    rights_of_whom: str
    """The server's account, if it is known; else the rights are our own."""
    missing_rights: Sequence[Right]
    rights_trouble: str
    nodes: Answer
    storage_classes: Answer
    tenants: Answer
    accounts: Mapping[str, Answer] = field(default_factory=dict)
    """Tenant's namespace -> its default service account."""
    state: ServerState | None = None
    """Of the installed server; None where it may not be read."""
    unbound: Sequence[str] = ()
    """Tenants' namespaces in which the installed server's account has no role."""


async def read_cluster(client: InstallClient, server: str, namespace: str) -> ClusterFacts:
    """Raises EngineUnavailable when the API server cannot be asked at all."""
    version = await client.get("/version")
    reader = _Reader(client)
    read = reader.read
    (
        me, trainer_kinds, jobset_kinds, operators, validating, mutating, dns_service, dns_endpoints,
        daemon_sets, runtimes, nodes, storage_classes, tenants,
    ) = await asyncio.gather(
        reader.ask(client.review("/apis/authentication.k8s.io/v1/selfsubjectreviews", _WHO)),
        read(_TRAINER),
        read(_JOBSET),
        read(f"/apis/apps/v1/namespaces/{OPERATORS}/deployments"),
        read(f"{_REGISTRATION}/validatingwebhookconfigurations"),
        read(f"{_REGISTRATION}/mutatingwebhookconfigurations"),
        read("/api/v1/namespaces/kube-system/services/kube-dns"),
        reader.endpoints("kube-system", "kube-dns"),
        read("/apis/apps/v1/daemonsets"),
        read(f"{_TRAINER}/clustertrainingruntimes"),
        read("/api/v1/nodes"),
        read("/apis/storage.k8s.io/v1/storageclasses"),
        read("/api/v1/namespaces", labelSelector=TENANT),
    )  # fmt: skip
    dialect, dialect_trouble = await _dialect(client)
    webhooks = _joined(validating, mutating)
    names = _tenant_names(tenants)
    found = await _installed(reader, namespace)
    is_installed = isinstance(found.get(("ServiceAccount", ACCOUNT)), Mapping)
    is_me = _name_of(me) == account_name(namespace)
    whom = account_name(namespace) if is_installed or is_me else ""
    unbound = await _unbound(reader, whom, names)
    # Rights in tenants' namespaces are bound at sign-up: before the first one there is no place to ask about.
    bound = [each for each in names if each not in unbound]
    place = "default" if not whom else bound[0] if bound else ""
    missing, rights_trouble = await _rights(reader, "" if is_me else whom, namespace, place)
    return ClusterFacts(
        server=server,
        namespace=namespace,
        version=version,
        me=me,
        dialect=dialect,
        dialect_trouble=dialect_trouble,
        trainer_kinds=trainer_kinds,
        jobset_kinds=jobset_kinds,
        operators=operators,
        webhooks=webhooks,
        endpoints={
            (place, service): await reader.endpoints(place, service)
            for place, service in webhook_services(webhooks)
        },
        probe=await reader.ask(_probe(client, names[0] if names else "default")),
        dns_service=dns_service,
        dns_endpoints=dns_endpoints,
        daemon_sets=daemon_sets,
        is_resolved=await _is_resolved(),
        runtimes=runtimes,
        installed=found,
        rights_of_whom=whom,
        missing_rights=missing,
        rights_trouble=rights_trouble,
        nodes=nodes,
        storage_classes=storage_classes,
        tenants=tenants,
        accounts={
            each: await read(f"/api/v1/namespaces/{each}/serviceaccounts/default") for each in names
        },
        state=await _server_state(client, namespace),
        unbound=unbound,
    )


async def _server_state(client: InstallClient, namespace: str) -> ServerState | None:
    try:
        return await read_server(client, namespace)
    except (EngineRejected, EngineUnavailable):
        return None


def webhook_services(webhooks: Answer) -> list[tuple[str, str]]:
    """Namespace and name of the services behind the webhooks of Trainer and JobSet."""
    return sorted(
        {
            (str(service["namespace"]), str(service["name"]))
            for hook in operators_webhooks(webhooks)
            if (service := hook["clientConfig"].get("service"))
        }
    )


def operators_webhooks(webhooks: Answer) -> list[Json]:
    """Those that stand before TrainJobs, runtimes and JobSets."""
    if isinstance(webhooks, Trouble):
        return []
    groups = {"trainer.kubeflow.org", "jobset.x-k8s.io"}
    return [
        hook
        for each in webhooks["items"]
        for hook in each.get("webhooks") or ()
        if any(groups & set(rule.get("apiGroups") or ()) for rule in hook.get("rules") or ())
    ]


_WHO = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


class _Reader:
    """Some questions at a time, every refusal an answer."""

    def __init__(self, client: InstallClient) -> None:
        self.client = client
        self._turn = asyncio.Semaphore(_AT_ONCE)

    async def read(self, path: str, **query: str) -> Answer:
        return await self.ask(self.client.get(path, **query))

    async def endpoints(self, namespace: str, service: str) -> Answer:
        path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        return await self.read(path, labelSelector=f"kubernetes.io/service-name={service}")

    async def ask(self, question: Awaitable[Answer]) -> Answer:
        async with self._turn:
            try:
                return await question
            except Forbidden as error:
                # Said for the server's own role, where it is the caller's.
                return Trouble(403, str(error).partition("bind it: ")[2] or str(error))
            except Refused as error:
                return Trouble(error.status, str(error))
            except (EngineRejected, EngineUnavailable) as error:
                return Trouble(0, str(error))


async def _dialect(client: InstallClient) -> tuple[str, str]:
    try:
        return await find_dialect(client), ""
    except (EngineRejected, EngineUnavailable) as error:
        return "", str(error)


async def _installed(reader: _Reader, namespace: str) -> dict[tuple[str, str], Answer]:
    shipped = [
        each for each in shipped_objects(namespace) if each["kind"] != "ClusterTrainingRuntime"
    ]

    async def find(wanted: Json) -> Answer:
        found = await reader.client.find_like(wanted)
        return Trouble(404, "not there") if found is None else found

    answers = await asyncio.gather(*(reader.ask(find(each)) for each in shipped))
    return {
        (each["kind"], name_of(each)): answer for each, answer in zip(shipped, answers, strict=True)
    }


async def _unbound(reader: _Reader, whom: str, tenants: Sequence[str]) -> list[str]:
    """Of an account that nobody may look for, none; without one, none either."""
    if not whom:
        return []
    role = IN_TENANTS[0]
    path = "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings/" + role
    answers = await asyncio.gather(*(reader.read(path.format(each)) for each in tenants))
    return [
        tenant for tenant, answer in zip(tenants, answers, strict=True) if not _binds(answer, whom)
    ]


def _binds(binding: Answer, whom: str) -> bool:
    if isinstance(binding, Trouble):
        return not binding.is_missing
    return any(
        whom == f"system:serviceaccount:{each.get('namespace')}:{each['name']}"
        for each in binding.get("subjects") or ()
    )


async def _rights(
    reader: _Reader, whom: str, namespace: str, place: str
) -> tuple[list[Right], str]:
    """What is missing, of the server's account where there is one, else of us; and why nobody could tell."""
    questions = [(right, "") for right in rights_of(EVERYWHERE)]
    questions += [(right, place) for right in rights_of(IN_TENANTS)] if place else []
    kind = "SubjectAccessReview" if whom else "SelfSubjectAccessReview"
    who = {"user": whom, "groups": account_groups(namespace)} if whom else {}
    answers = await asyncio.gather(
        *(
            reader.ask(
                reader.client.review(
                    f"{_REVIEWS}/{kind.lower()}s",
                    {
                        "apiVersion": "authorization.k8s.io/v1",
                        "kind": kind,
                        "spec": {"resourceAttributes": right.attributes(where), **who},
                    },
                )
            )
            for right, where in questions
        )
    )
    for answer in answers:
        if isinstance(answer, Trouble):
            return [], answer.text
    return [
        right
        for (right, _), answer in zip(questions, answers, strict=True)
        if not isinstance(answer, Trouble) and not answer["status"]["allowed"]
    ], ""


async def _probe(client: InstallClient, namespace: str) -> Json:
    """Only the webhooks can refuse it for its runtime: whoever hears that has reached them."""
    trainjob = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": PROBE},
        "spec": {"runtimeRef": {"name": PROBE}},
    }
    return await client.try_create(f"{_TRAINER}/namespaces/{namespace}/trainjobs", trainjob)


async def _is_resolved() -> bool | None:
    if "KUBERNETES_SERVICE_HOST" not in os.environ:
        return None
    loop = asyncio.get_running_loop()
    try:
        await loop.getaddrinfo("kubernetes.default.svc", 443, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return True


def _name_of(me: Answer) -> str:
    return "" if isinstance(me, Trouble) else str(me["status"]["userInfo"]["username"])


def _joined(*answers: Answer) -> Answer:
    """Lists as one; a refusal of any counts for all."""
    items: list[Json] = []
    for each in answers:
        if isinstance(each, Trouble):
            return each
        items += each["items"]
    return {"items": items}


def _tenant_names(tenants: Answer) -> list[str]:
    if isinstance(tenants, Trouble):
        return []
    return sorted(each["metadata"]["name"] for each in tenants["items"])[:_MOST_TENANTS]
