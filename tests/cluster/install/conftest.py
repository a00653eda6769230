"""Our server inside the cluster, installed by `astrago install` under exactly the shipped roles; taken away at the end.

These tests share one installation, whose roles and policies are the cluster's: they run in one process.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import ssl
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from cluster.holder import Holder
from cluster.images import bring
from cluster.layout import API_PORT, NODE_IP, Layout
from cluster.operators import Kubectl
from cluster.server_image import USER, server_image
from tests import patient
from tests.cluster.api import PATIENCE, Api, Space

from astrago_trainer.client import TrainerClient
from astrago_trainer.install.manifests import IMAGE, NAMESPACE
from astrago_trainer.manifests import parse_documents

Json = dict[str, Any]

ASTRAGO = str(Path(sys.executable).with_name("astrago"))


@dataclass(slots=True)
class Tenant:
    """Somebody who has signed up."""

    user: str
    namespace: str
    token: str
    address: str

    def client(self) -> TrainerClient:
        return TrainerClient(self.address, token=self.token, namespace=self.namespace)


@dataclass(slots=True)
class Installed:
    """The running installation."""

    address: str
    output: str
    """Of the command that made it."""
    kubectl: Kubectl
    namespaces: list[str] = field(default_factory=list)

    def sign_up(self) -> Tenant:
        user = f"tester{uuid.uuid4().int % 10**9}"
        answer = patient.post(
            f"{self.address}/api/v1/signup", json={"user": user}, timeout=PATIENCE
        )
        assert answer.status_code == 201, answer.text
        body = answer.json()
        self.namespaces.append(body["namespace"])
        return Tenant(user, body["namespace"], body["token"]["secret"], self.address)

    def until_it_answers(self) -> None:
        """kube-proxy learns of a new pod a little later than the pod is ready, and tells nobody."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                patient.get(f"{self.address}/readyz", timeout=1).raise_for_status()
                return
            except httpx.HTTPError:
                assert time.monotonic() < end, f"no answer from {self.address}"


def astrago(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The program, as an administrator types it."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("ASTRAGO_")
    }
    environment |= {"KUBECONFIG": str(Layout.default().kubeconfig), "COLUMNS": "80", **variables}
    return subprocess.run(
        [ASTRAGO, *arguments], capture_output=True, text=True, env=environment, timeout=PATIENCE
    )


ADOPTED = "test-adopt-"
"""Begins the names of namespaces that this installation may adopt."""
OPTIONS = (
    *("--image", IMAGE, "--storage-class", ""),
    *("--set", "ASTRAGO_SIGNUP=open", "--set", f"ASTRAGO_NAMESPACES={ADOPTED}*"),
)


@pytest.fixture(scope="session")
def installed(kubectl: Kubectl, version: str) -> Iterator[Installed]:
    layout = Layout.default()
    bring(Holder(layout), [server_image()])
    folder = layout.root / "volumes" / uuid.uuid4().hex[:8]
    volume = _volume(folder)
    kubectl("apply", "-f", "-", stdin=json.dumps(volume))
    found = Installed("", "", kubectl)
    try:
        done = astrago("install", "--apply", *OPTIONS)
        found.output = done.stdout
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"The server answers in the namespace {NAMESPACE}." in done.stdout
        address = kubectl(
            "-n", NAMESPACE, "get", "service/astrago", "-o", "jsonpath={.spec.clusterIP}"
        )
        found.address = f"http://{address}"
        found.until_it_answers()
        yield found
    finally:
        for namespace in found.namespaces:
            kubectl("delete", "namespace", namespace, "--ignore-not-found")
        kubectl("delete", "--ignore-not-found", "-f", "-", stdin=made_by(found.output))
        kubectl("delete", "persistentvolume", volume["metadata"]["name"], "--ignore-not-found")
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # another run has one there
            folder.parent.rmdir()


@pytest.fixture(scope="session")
def tenant(installed: Installed) -> Tenant:
    return installed.sign_up()


@pytest.fixture(scope="session")
def tenant_space(api: Api, tenant: Tenant) -> Space:
    return Space(api, tenant.namespace)


@pytest.fixture(scope="session")
def as_server(installed: Installed) -> Iterator[httpx.Client]:
    """The API server, asked as our own service account with a token of its own."""
    token = installed.kubectl("-n", NAMESPACE, "create", "token", "astrago").strip()
    trusted = ssl.create_default_context(cafile=str(Layout.default().pki / "ca.crt"))
    with httpx.Client(
        base_url=f"https://{NODE_IP}:{API_PORT}",
        verify=trusted,
        headers={"Authorization": f"Bearer {token}"},
        timeout=PATIENCE,
    ) as client:
        yield client


def a_kubeconfig(path: Path, token: str) -> Path:
    authority = (Layout.default().pki / "ca.crt").read_bytes()
    cluster = {
        "server": f"https://{NODE_IP}:{API_PORT}",
        "certificate-authority-data": base64.b64encode(authority).decode(),
    }
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": token}}],
    }
    path.write_text(json.dumps(config))
    return path


def made_by(output: str) -> str:
    """What the installation has made; what was there before, such as runtimes, stays."""
    objects = parse_documents(astrago("install", *OPTIONS).stdout.encode(), "-")
    lines = output.splitlines()
    made = [
        each
        for each in objects
        if any(
            line.split()[:3] == ["created", each["kind"], each["metadata"]["name"]]
            for line in lines
        )
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": made})


def _volume(folder: Path) -> Json:
    """The cluster provisions none; a folder of the machine stands in, writable for the server's user."""
    folder.mkdir(parents=True)
    user, _, group = USER.partition(":")
    os.chown(folder, int(user), int(group))
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"astrago-{folder.name}"},
        "spec": {
            "capacity": {"storage": "20Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": NAMESPACE, "name": "astrago-data"},
            "hostPath": {"path": str(folder), "type": "Directory"},
        },
    }
