"""Kubeconfigs as people have them, and credentials that change while we run."""

from __future__ import annotations

import asyncio
import base64
import json
import stat

import httpx
import pytest
import trustme
import yaml

from astrago_trainer.engines.base import EngineUnavailable
from astrago_trainer.engines.kubernetes.credentials import (
    find_access,
    in_cluster_access,
    kubeconfig_access,
)


def kubeconfig(folder, user, server="http://api.test:8080", **cluster):
    path = folder / "config"
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def requests(access, *codes, between=lambda: None):
    """The Authorization headers that a server sees which answers with these codes."""
    seen = []

    def answer(request):
        seen.append(request.headers.get("Authorization"))
        between()
        return httpx.Response(codes[len(seen) - 1])

    async def ask():
        transport = httpx.MockTransport(answer)
        async with httpx.AsyncClient(auth=access.auth, transport=transport) as client:
            while len(seen) < len(codes):
                await client.get("http://api.test/")

    asyncio.run(ask())
    return seen


def program(folder, text):
    path = folder / "plugin"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_token_is_sent(tmp_path):
    access = kubeconfig_access(kubeconfig(tmp_path, {"token": "secret"}))
    assert access.server == "http://api.test:8080"
    assert requests(access, 200) == ["Bearer secret"]


def test_a_token_file_is_read_again_when_the_token_is_refused(tmp_path):
    token = tmp_path / "token"
    token.write_text("old\n")
    access = kubeconfig_access(kubeconfig(tmp_path, {"tokenFile": "token"}))

    seen = requests(access, 401, 200, between=lambda: token.write_text("new\n"))

    assert seen == ["Bearer old", "Bearer new"]


def test_a_plugin_is_asked_once_while_its_token_is_good_and_again_when_it_is_refused(tmp_path):
    ca = trustme.CA()
    authority = base64.b64encode(ca.cert_pem.bytes()).decode()
    answer = {"status": {"token": "t$n", "expirationTimestamp": "2999-01-01T00:00:00Z"}}
    text = json.dumps(answer).replace('"', '\\"')
    program(tmp_path, f'echo x >> {tmp_path}/runs; n=$(wc -l < {tmp_path}/runs); echo "{text}"')
    user = {"exec": {"command": "./plugin", "apiVersion": "client.authentication.k8s.io/v1beta1"}}
    path = kubeconfig(
        tmp_path, user, server="https://api.test", **{"certificate-authority-data": authority}
    )

    seen = requests(kubeconfig_access(path), 200, 200, 401, 200)

    assert seen == ["Bearer t1", "Bearer t1", "Bearer t1", "Bearer t2"]


def test_a_plugin_whose_token_has_expired_is_asked_before_the_request(tmp_path):
    answer = {"status": {"token": "t", "expirationTimestamp": "2001-01-01T00:00:00Z"}}
    program(tmp_path, f"echo x >> {tmp_path}/runs; echo '{json.dumps(answer)}'")
    path = kubeconfig(tmp_path, {"exec": {"command": "./plugin"}}, server="https://api.test")

    requests(kubeconfig_access(path), 200, 200)

    assert (tmp_path / "runs").read_text() == "x\nx\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [("echo no login >&2; exit 3", "ended with 3: no login"), ("echo hello", "no ExecCredential")],
)
def test_a_plugin_that_fails_says_why(tmp_path, text, words):
    program(tmp_path, text)
    path = kubeconfig(tmp_path, {"exec": {"command": "./plugin"}}, server="https://api.test")
    with pytest.raises(EngineUnavailable, match=words):
        requests(kubeconfig_access(path), 200)


def test_a_plugin_that_is_not_installed_is_named_with_its_hint(tmp_path):
    user = {"exec": {"command": "no-such-plugin", "installHint": "Install it from here."}}
    path = kubeconfig(tmp_path, user, server="https://api.test")
    with pytest.raises(
        EngineUnavailable, match=r"no-such-plugin cannot be run.*Install it from here"
    ):
        requests(kubeconfig_access(path), 200)


def test_a_client_certificate_is_loaded_from_files_beside_the_kubeconfig(tmp_path):
    ca = trustme.CA()
    client = ca.issue_cert("someone@example.com")
    ca.cert_pem.write_to_path(tmp_path / "ca.crt")
    client.private_key_pem.write_to_path(tmp_path / "me.key")
    client.cert_chain_pems[0].write_to_path(tmp_path / "me.crt")
    user = {"client-certificate": "me.crt", "client-key": "me.key"}
    path = kubeconfig(
        tmp_path, user, server="https://api.test", **{"certificate-authority": "ca.crt"}
    )

    access = kubeconfig_access(path)

    assert access.tls is not None
    assert access.tls.get_ca_certs()
    assert requests(access, 200) == [None]


def test_inside_a_cluster_the_account_of_the_pod_is_used(tmp_path, monkeypatch):
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.crt")
    (tmp_path / "token").write_text("pod")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")

    access = in_cluster_access(tmp_path)

    assert access.server == "https://[fd00::1]:443"
    assert requests(access, 200) == ["Bearer pod"]


def test_without_a_configuration_it_is_said_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(EngineUnavailable, match="Set KUBECONFIG"):
        find_access()


def test_whose_rights_a_kubeconfig_gives_is_known(tmp_path):
    path = kubeconfig(tmp_path, {"token": "t"})
    config = yaml.safe_load(path.read_text())
    config["contexts"][0]["context"]["namespace"] = "team-a"
    path.write_text(yaml.safe_dump(config))
    access = kubeconfig_access(path)
    assert (access.context, access.user, access.namespace) == ("c", "u", "team-a")
    assert not access.is_in_cluster
