"""What an installation may decide, and what it may not."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from pathlib import Path

import pytest

from astrago_trainer.engines.kubernetes import credentials
from astrago_trainer.server import cluster
from astrago_trainer.server.cluster import opened_cluster, read_tenants
from astrago_trainer.server.notifying import read_notifications
from astrago_trainer.server.settings import BadSettings, ServerSettings, read_settings

ROOT = Path(__file__).parents[2]


TRUSTED = {"AUTH": "tokens", "LOCAL_USERS": "trusted"}


def test_the_command_line_comes_before_the_environment():
    found = read_settings(
        {"ASTRAGO_PORT": "9000", "ASTRAGO_DATA": "/x", "ASTRAGO_SEND_SECONDS": "2.5"}, port=9001
    )
    assert (found.port, found.data, found.send_seconds) == (9001, Path("/x"), 2.5)


@pytest.mark.parametrize(
    ("variables", "word"),
    [
        ({"HOST": "0.0.0.0"}, "ASTRAGO_AUTH=tokens"),
        ({"HOST": "::"}, "ASTRAGO_AUTH=tokens"),
        ({"HOST": "example.org"}, "ASTRAGO_AUTH=tokens"),
        ({"PORT": "http"}, "number"),
        ({"PORT": "70000"}, "65535"),
        ({"AUTH": "none"}, "off, tokens"),
        ({"ENGINE": "docker"}, "local, kubernetes"),
        ({"ENGINE": "kubernetes", "HOST": "0.0.0.0"}, "with your rights. Set ASTRAGO_AUTH=tokens"),
        ({"AUTH": "tokens"}, "ASTRAGO_LOCAL_USERS=trusted"),
        ({"AUTH": "tokens", "SIGNUP": "open"}, "ASTRAGO_ENGINE=kubernetes"),
        ({"AUTH": "tokens", "HOST": "0.0.0.0", "SIGNUP": "open"}, "LOCAL_USERS=trusted"),
        ({"LOCAL_USERS": "friends"}, "separate, trusted; found 'friends'"),
        ({"NAMESPACES": "user-*,Bad Name"}, "ASTRAGO_NAMESPACES must be names .* 'Bad Name'"),
        ({"NAMESPACES": "kube-system"}, "own namespaces"),
        ({"NAMESPACE_SELECTOR": "team in (ml)"}, "team=ml,astrago; found 'team in"),
        ({"TRAINER": "2.0"}, "auto, 2.1, 2.2, 2.3"),
        ({"OIDC_ISSUER": "https://id.example"}, "ASTRAGO_AUTH=tokens"),
        ({"OIDC_ISSUER": "https://id.example", **TRUSTED}, "OIDC_AUDIENCE"),
        ({"OIDC_ISSUER": "http://id.example", "OIDC_AUDIENCE": "a", **TRUSTED}, "https"),
    ],
)
def test_what_would_be_unsafe_or_senseless_is_refused(variables, word):
    given = {f"ASTRAGO_{name}": value for name, value in variables.items()}
    with pytest.raises(BadSettings, match=word):
        read_settings({"ASTRAGO_DATA": "/x", **given})


@pytest.mark.parametrize(
    "more", [{"ASTRAGO_ENGINE": "kubernetes"}, {"ASTRAGO_LOCAL_USERS": "trusted"}]
)
def test_beyond_loopback_with_tokens_is_fine(more):
    found = read_settings(
        {"ASTRAGO_DATA": "/x", "ASTRAGO_HOST": "0.0.0.0", "ASTRAGO_AUTH": "tokens", **more}
    )
    assert not found.is_local_only


def test_the_image_starts_with_its_own_settings():
    text = (Path(__file__).parents[2] / "Dockerfile").read_text(encoding="utf-8")
    (line,) = (line for line in text.splitlines() if line.startswith("ENV ASTRAGO_DATA"))
    found = read_settings(dict(word.split("=") for word in line.split()[1:]))
    assert (found.engine, found.auth) == ("kubernetes", "tokens")


def test_a_cluster_that_is_not_there_is_told_at_the_start(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    settings = ServerSettings(data=tmp_path, engine="kubernetes", auth="tokens")

    async def start():
        async with opened_cluster(settings):
            raise AssertionError

    with pytest.raises(BadSettings, match="Set KUBECONFIG"):
        asyncio.run(start())


@pytest.mark.parametrize(
    ("may_list", "context_namespace", "listed", "watched"),
    [
        (True, "", "", None),
        (True, "team-a", "user-*", None),
        (False, "team-a", "", ["team-a"]),
        (False, "team-a", "x,user-*,y", ["x", "y"]),
    ],
)
def test_without_tokens_a_persons_rights_are_used_as_far_as_they_reach(
    tmp_path, monkeypatch, may_list, context_namespace, listed, watched
):
    found = own_rights(tmp_path, monkeypatch, may_list, context_namespace, listed)
    rights, namespaces = asyncio.run(found)
    assert (rights.user, rights.context) == ("kim", "dev")
    assert rights.namespace == (context_namespace or "default")
    assert namespaces == watched


def test_an_account_that_sees_no_namespace_is_told_what_to_name(tmp_path, monkeypatch):
    with pytest.raises(BadSettings, match="ASTRAGO_NAMESPACES=team-a"):
        asyncio.run(own_rights(tmp_path, monkeypatch, False, "", "user-*"))


def own_rights(tmp_path, monkeypatch, may_list, context_namespace, listed):
    async def who(_client):
        return "kim"

    async def may(*_question):
        return may_list

    monkeypatch.setattr(cluster, "who_am_i", who)
    monkeypatch.setattr(cluster, "may_i", may)
    access = credentials.Access(
        "http://127.0.0.1:1",
        None,
        credentials.Auth(),
        {},
        context="dev",
        namespace=context_namespace,
    )
    settings = ServerSettings(data=tmp_path, engine="kubernetes", namespaces=listed)
    return cluster._own_rights(settings, access)


def test_a_cluster_without_tokens_is_fine_on_loopback():
    found = read_settings({"ASTRAGO_DATA": "/x", "ASTRAGO_ENGINE": "kubernetes"})
    assert (found.is_local_only, found.has_auth, found.namespace_rule.is_open) == (
        True,
        False,
        True,
    )


def test_in_a_pod_a_server_without_tokens_does_not_start(tmp_path, monkeypatch):
    """There the rights are the server's own, in all tenants' namespaces."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr(credentials, "ACCOUNT", tmp_path)
    access = credentials.Access(
        "https://10.0.0.1", None, credentials.Auth(), {}, is_in_cluster=True
    )
    monkeypatch.setattr(credentials, "in_cluster_access", lambda: access)
    settings = ServerSettings(data=tmp_path, engine="kubernetes")

    async def start():
        async with opened_cluster(settings):
            raise AssertionError

    with pytest.raises(BadSettings, match="Set ASTRAGO_AUTH=tokens"):
        asyncio.run(start())


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "JSON"),
        ('{"quotas": {}}', "quotas"),
        ('{"pod_security": "privileged"}', "baseline"),
        ('{"networks": ["10.0.0.1/8"]}', "networks"),
    ],
)
def test_a_file_of_tenants_is_checked(tmp_path, text, word):
    path = tmp_path / "tenants.json"
    path.write_text(text)
    with pytest.raises(BadSettings, match=word):
        read_tenants(path)


def test_what_tenants_get_is_read_from_the_file(tmp_path):
    path = tmp_path / "tenants.json"
    path.write_text('{"quota": {"requests.cpu": "8"}, "networks": ["10.1.0.0/16"]}')
    policy = read_tenants(path).policy()
    assert (policy.quota, policy.networks) == ({"requests.cpu": "8"}, ("10.1.0.0/16",))
    assert (read_tenants(None).policy().pod_security, policy.has_internet) == ("baseline", True)


def test_every_setting_is_documented():
    text = (ROOT / "docs/server.md").read_text(encoding="utf-8")
    for field in fields(ServerSettings):
        assert f"`ASTRAGO_{field.name.upper()}`" in text, field.name


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "JSON"),
        ('{"target": []}', "target"),
        ('{"targets": [{"namespace": "a", "target": {"kind": "webhook", "url": "http://10.0.0.1"}}]}', "not sent"),
        ('{"targets": [{"namespace": "a", "target": {"kind": "mail", "address": "a@b.org"}}]}', "mail"),
        ('{"mail": {"host": "h", "sender": "s", "port": "hunter2"}}', "mail.port"),
    ],
)  # fmt: skip
def test_a_file_of_notifications_is_checked_and_never_repeated(tmp_path, text, word):
    path = tmp_path / "notify.json"
    path.write_text(text)
    with pytest.raises(BadSettings, match=word) as error:
        read_notifications(path)
    assert "hunter2" not in str(error.value)


def test_targets_are_those_of_the_namespace_and_of_everybody(tmp_path):
    path = tmp_path / "notify.json"
    path.write_text(
        '{"targets": [{"namespace": "a", "target": {"kind": "slack", "url": "https://a.example/x"}},'
        ' {"namespace": "*", "target": {"kind": "slack", "url": "https://b.example/x"}}]}'
    )
    found = read_notifications(path)
    assert [each.url for each in found.targets_of("a")] == [
        "https://a.example/x",
        "https://b.example/x",
    ]
    assert [each.url for each in found.targets_of("b")] == ["https://b.example/x"]
