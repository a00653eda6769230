"""`astrago install` before it meets a cluster: what it prints, and what it refuses in words."""

from __future__ import annotations

import argparse
import sys

import pytest

from astrago_trainer.cli.install_page import blocker_lines, next_steps
from astrago_trainer.cli.terminal import Terminal
from astrago_trainer.install.manifests import Installation, installation_objects
from astrago_trainer.install.server_state import Blocker
from astrago_trainer.manifests import parse_documents

from .conftest import Astrago


def test_the_yaml_is_printed_and_reads_back(astrago: Astrago) -> None:
    result = astrago("install")
    assert result.code == 0, result.err
    assert parse_documents(result.out.encode(), "-") == installation_objects(Installation())


def test_options_reach_the_objects(astrago: Astrago) -> None:
    result = astrago(
        *("install", "--namespace", "ml", "--image", "r/a:2", "--storage", "none"),
        *("--set", "ASTRAGO_SIGNUP=open"),
    )
    wanted = Installation("ml", "r/a:2", "none", settings={"ASTRAGO_SIGNUP": "open"})
    assert parse_documents(result.out.encode(), "-") == installation_objects(wanted)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "ASTRAGO_SINGUP=open"], "Did you mean ASTRAGO_SIGNUP?"),
        (["--set", "ASTRAGO_SIGNUP=maybe"], "must be one of off, open"),
        (["--set", "ASTRAGO_AUTH=off"], "without authentication"),
        (
            ["--set", "ASTRAGO_AUTH=off", "--set", "ASTRAGO_HOST=127.0.0.1"],
            "would have the server's rights",
        ),
        (["--set", "ASTRAGO_NAMESPACES=kube-system"], "own namespaces"),
        (["--set", "ASTRAGO_NAMESPACE_SELECTOR=a in (b)"], "ASTRAGO_NAMESPACE_SELECTOR"),
        (["--storage", "lots"], "--storage"),
        (["--apply", "--kubeconfig", "/nowhere"], "no cluster is configured"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_done(
    astrago: Astrago, arguments: list[str], said: str
) -> None:
    result = astrago("install", *arguments)
    assert result.code == 1
    assert said in result.err
    assert not result.out


def test_a_setting_without_a_value_is_wrong_usage(astrago: Astrago) -> None:
    assert astrago("install", "--set", "ASTRAGO_SIGNUP").code == 2


def test_what_blocks_the_server_is_told_with_its_log_and_the_commands() -> None:
    options = argparse.Namespace(namespace="astrago-system", wait=180.0)
    blocker = Blocker(
        "start",
        "the server ended with exit code 1",
        ("kubectl logs x",),
        True,
        ("no \x1b[31mfile",),
    )
    lines = list(blocker_lines([blocker], options, Terminal(sys.stdout)))
    assert lines == [
        "The server does not answer:",
        "start      the server ended with exit code 1",
        "           | no \\x1b[31mfile",
        "           → kubectl logs x",
    ]
    unknown = list(blocker_lines([], options, Terminal(sys.stdout)))
    assert "does not answer after 180 s" in unknown[0]
    assert "kubectl -n astrago-system describe pods" in unknown[1]


def test_the_next_commands_lead_to_the_first_job() -> None:
    said = "\n".join(next_steps("ml", Terminal(sys.stdout)))
    order = ["port-forward", "admin-token", "astrago login", "tenants create", "astrago run"]
    places = [said.index(each) for each in order]
    assert places == sorted(places)
