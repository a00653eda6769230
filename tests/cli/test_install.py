"""`astrago install` before it meets a cluster: what it prints, and what it refuses in words."""

from __future__ import annotations

import pytest

from astrago_trainer.install.manifests import Installation, installation_objects
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
