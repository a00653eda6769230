"""An installation that cannot run names what blocks it, before it is applied or while it waits; the doctor does too.

Runs before the tests that share one installation (files run by name): roles and policies are the cluster's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from cluster.holder import Holder
from cluster.images import bring
from cluster.layout import Layout
from cluster.operators import Kubectl
from cluster.server_image import server_image
from tests.cluster.install.conftest import astrago, made_by

from astrago_trainer.install.manifests import IMAGE, NAMESPACE

NOWHERE = "registry.invalid/astrago-trainer:0.1.0"


@pytest.fixture
def outputs(kubectl: Kubectl, version: str) -> Iterator[list[str]]:
    """What commands of the test said; what they created is taken away."""
    there = kubectl("get", "namespace", NAMESPACE, "--ignore-not-found", "-o", "name")
    assert not there, f"{there} is there: this test needs a cluster without an installation"
    said: list[str] = []
    yield said
    kubectl("delete", "--ignore-not-found", "-f", "-", stdin=made_by("\n".join(said)))


def findings() -> dict[str, dict[str, object]]:
    done = astrago("doctor", "--engine", "kubernetes", "--json")
    return {each["subject"]: each for each in json.loads(done.stdout)["findings"]}


def without_classes(kubectl: Kubectl) -> None:
    assert not kubectl("get", "storageclass", "-o", "name"), "this test is about their absence"


def test_without_a_storage_class_nothing_is_applied_and_the_way_out_is_named(
    outputs: list[str], kubectl: Kubectl
):
    without_classes(kubectl)
    done = astrago("install", "--apply", "--image", IMAGE)
    outputs.append(done.stdout)
    assert done.returncode == 1
    assert "the cluster has no storage class" in done.stderr
    assert "--storage none" in done.stderr
    assert "--force" in done.stderr
    assert not kubectl("get", "namespace", NAMESPACE, "--ignore-not-found", "-o", "name")


def test_a_claim_that_waits_is_named_by_install_and_doctor(outputs: list[str], kubectl: Kubectl):
    without_classes(kubectl)
    done = astrago("install", "--apply", "--force", "--image", NOWHERE, "--wait", "120")
    outputs.append(done.stdout)
    assert done.returncode == 1, done.stdout
    assert "objects:" in done.stdout
    assert f"the claim {NAMESPACE}/astrago-data is Pending" in " ".join(done.stderr.split())
    assert "no storage class is set" in " ".join(done.stderr.split())
    assert "--storage-class NAME" in done.stderr
    claim = findings()["claim"]
    assert claim["state"] == "wrong"
    assert f"{NAMESPACE}/astrago-data is Pending" in str(claim["text"])


def test_an_image_that_cannot_be_pulled_is_named_by_install_and_doctor(outputs: list[str]):
    done = astrago("install", "--apply", "--storage", "none", "--image", NOWHERE, "--wait", "150")
    outputs.append(done.stdout)
    assert done.returncode == 1, done.stdout
    assert f"the image {NOWHERE} cannot be pulled" in " ".join(done.stderr.split())
    assert "astrago install --apply --image REGISTRY/astrago-trainer:" in done.stderr
    image = findings()["image"]
    assert image["state"] == "wrong"
    assert NOWHERE in str(image["text"])


@pytest.mark.req("M29")
def test_a_server_that_ends_is_reported_with_its_last_log_lines_and_the_next_try_answers(
    outputs: list[str],
):
    bring(Holder(Layout.default()), [server_image()])
    basis = ("install", "--apply", "--storage", "none", "--image", IMAGE)
    broken = astrago(*basis, "--set", "ASTRAGO_TENANTS=/etc/astrago/none.json", "--wait", "150")
    outputs.append(broken.stdout)
    assert broken.returncode == 1, broken.stdout
    said = " ".join(broken.stderr.split())
    assert "the server ended with exit code" in said
    assert "/etc/astrago/none.json: No such file or directory" in said

    done = astrago(*basis)
    outputs.append(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The server answers in the namespace astrago-system." in done.stdout
    for command in ("port-forward", "astrago login", "astrago tenants create", "astrago run"):
        assert command in done.stderr
    assert not {"claim", "image", "start"} & set(findings())
