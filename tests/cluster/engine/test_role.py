"""The engine under the role of M33 and nothing else, for the whole cluster: create, status, logs, delete."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from cluster.layout import Layout
from cluster.operators import Kubectl
from tests.cluster.contract.jobs import a_node, a_runtime, a_trainjob
from tests.engines.jobs import run, until, until_over

from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.engines.base import Effective, EngineUnavailable
from astrago_trainer.engines.kubernetes.credentials import Access, FixedToken
from astrago_trainer.engines.kubernetes.engine import KubernetesEngine

VERBS = ["create", "get", "list", "update", "patch", "delete"]
RULES = [
    {"apiGroups": [""], "resources": ["configmaps", "pods", "pods/log"], "verbs": VERBS},
    {
        "apiGroups": ["trainer.kubeflow.org"],
        "resources": ["trainjobs"],
        "verbs": [*VERBS, "watch"],
    },
]


@pytest.fixture
def limited(access: Access, kubectl: Kubectl, namespace: str) -> Iterator[Access]:
    """A service account with this role, from its token."""
    api = "rbac.authorization.k8s.io"
    name = f"m33-{namespace}"
    role = {"apiGroup": api, "kind": "ClusterRole", "name": name}
    made = [
        {"kind": "ClusterRole", "metadata": {"name": name}, "rules": RULES},
        {
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": role,
            "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": "backend"}],
        },
    ]
    kubectl("-n", namespace, "create", "serviceaccount", "backend")
    for each in made:
        kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": f"{api}/v1", **each}))
    token = kubectl("-n", namespace, "create", "token", "backend").strip()
    yield Access(access.server, _without_certificate(), FixedToken(token), {})
    for kind in ("clusterrole", "clusterrolebinding"):
        kubectl("delete", kind, name)


def _without_certificate() -> ssl.SSLContext:
    """Trusts the server as the kubeconfig does, and brings no certificate of an administrator."""
    config = yaml.safe_load(Layout.default().kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    if "certificate-authority-data" in cluster:
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    else:
        authority = Path(cluster["certificate-authority"]).read_text()
    return ssl.create_default_context(cadata=authority)


@pytest.mark.req("M33", "X18")
def test_the_role_alone_creates_tells_logs_and_deletes(limited, a_handle, space, tmp_path):
    runtime = a_runtime(a_node("echo said; sleep 3"), name="rt")
    space.create(runtime)  # by an administrator
    trainjob = a_trainjob("job", nodes=2)
    trainjob["spec"]["runtimeRef"]["name"] = "rt"
    engine = KubernetesEngine(tmp_path, access=limited)
    handle = a_handle()

    async def scenario():
        await engine.apply(handle, Effective({}, (trainjob,)))
        running = await until(engine, handle, lambda seen: seen.phase is Phase.RUNNING)
        over = await until_over(engine, handle)
        with pytest.raises(EngineUnavailable, match="role does not allow"):
            await engine.nodes()
        with pytest.raises(EngineUnavailable, match="role does not allow"):
            await engine.make_namespace("m33-other")
        await engine.stop(handle)
        return running, over

    running, over = run(engine, scenario)
    assert [pod.index for pod in running.pods] == [0, 1]
    assert (over.phase, over.message) == (Phase.COMPLETE, "jobset completed successfully")
    for rank in (0, 1):
        assert (engine.logs(handle) / f"logs/0/job-node-0-{rank}/node.log").read_text() == "said\n"
    assert space.list("trainjobs") == []
    space.until_gone("pods")
