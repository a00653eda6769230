"""Namespaces that somebody else made: found, and used with as few changes as possible."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from astrago_trainer.engines.base import EngineRejected, FoundNamespace
from astrago_trainer.engines.kubernetes.client import Forbidden, Refused
from astrago_trainer.engines.kubernetes.engine import KubernetesEngine
from astrago_trainer.engines.kubernetes.namespaces import adopt_namespace, find_namespace
from astrago_trainer.engines.kubernetes.resources import TENANT
from astrago_trainer.engines.kubernetes.tenants import TenantPolicy

SERVER = "system:serviceaccount:astrago-system:astrago"


class Cluster:
    """Answers as an API server does, for one namespace."""

    def __init__(
        self,
        found: dict[str, Any] | Exception | None = None,
        *,
        may: bool = False,
        trouble: Exception | None = None,
    ) -> None:
        self.found = found
        self.may = may
        self.trouble = trouble
        self.applied: list[tuple[str, str]] = []

    async def find(self, _resource: object, _namespace: str, _name: str) -> Any:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    async def review(self, path: str, _question: object) -> Any:
        if "selfsubjectreviews" in path:
            return {"status": {"userInfo": {"username": SERVER}}}
        return {"status": {"allowed": self.may}}

    async def apply(self, manifest: dict[str, Any], namespace: str) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.applied.append((manifest["kind"], manifest["metadata"]["name"]))


def a_namespace(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "user-1", **metadata}}


@pytest.mark.parametrize(
    ("cluster", "found"),
    [
        (Cluster(None), None),
        (Cluster(a_namespace()), FoundNamespace({})),
        (
            Cluster(a_namespace(labels={TENANT: "user-1"})),
            FoundNamespace({TENANT: "user-1"}, is_tenants=True),
        ),
        (
            Cluster(a_namespace(labels={TENANT: "other"}, deletionTimestamp="now")),
            FoundNamespace({TENANT: "other"}, is_leaving=True),
        ),
        (Cluster(Forbidden("no"), may=True), FoundNamespace({})),
    ],
)
def test_a_namespace_is_found_as_it_is(cluster, found):
    assert asyncio.run(find_namespace(cluster, "user-1")) == found


def test_one_that_may_neither_be_read_nor_used_is_not_found():
    with pytest.raises(Forbidden):
        asyncio.run(find_namespace(Cluster(Forbidden("no")), "user-1"))


def test_where_jobs_can_run_nothing_is_changed():
    cluster = Cluster(may=True)
    asyncio.run(adopt_namespace(cluster, "user-1", TenantPolicy(quota={"pods": "1"})))
    assert cluster.applied == []


def test_where_they_cannot_only_the_servers_rights_are_added():
    cluster = Cluster()
    asyncio.run(adopt_namespace(cluster, "user-1", TenantPolicy(quota={"pods": "1"})))
    assert cluster.applied == [
        ("RoleBinding", "trainjob-backend-role"),
        ("RoleBinding", "astrago-job-runtimes"),
    ]


@pytest.mark.parametrize(
    "trouble",
    [Forbidden("cannot bind"), Refused("refused by policy", code=422, reason="Invalid")],
)
def test_a_right_that_cannot_be_taken_is_told_with_the_commands(trouble):
    with pytest.raises(EngineRejected) as error:
        asyncio.run(adopt_namespace(Cluster(trouble=trouble), "user-1", TenantPolicy()))
    said = str(error.value)
    assert "namespace 'user-1' exists in the cluster but is not adopted" in said
    assert str(trouble) in said
    assert "kubectl label namespace user-1 trainer.astrago.io/tenant=user-1" in said
    assert "--set ASTRAGO_NAMESPACES=user-1" in said
    assert "--serviceaccount=astrago-system:astrago" in said


def test_with_a_persons_rights_no_role_is_bound():
    cluster = Cluster()
    with pytest.raises(EngineRejected, match="may not run jobs in the namespace 'user-1'"):
        asyncio.run(adopt_namespace(cluster, "user-1", TenantPolicy(roles=())))
    assert cluster.applied == []


def test_an_engine_of_some_namespaces_refuses_others(tmp_path):
    engine = KubernetesEngine(tmp_path, namespaces=["team-a"])
    with pytest.raises(EngineRejected, match="ASTRAGO_NAMESPACES='team-a,user-1'"):
        asyncio.run(engine.find_namespace("user-1"))
