"""Which runtimes a service offers: the catalogue's, or what its engine has installed."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from astrago_trainer import catalogue
from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.service.runtimes import Runtimes


class Installed:
    """The one thing that is asked of an engine here."""

    def __init__(self, found: dict[str, Mapping[str, Any]] | None) -> None:
        self.found = found

    def runtimes(self) -> Mapping[str, Mapping[str, Any]] | None:
        return self.found


def as_stored(name: str) -> dict[str, Any]:
    """With what the API server adds."""
    manifest = copy.deepcopy(catalogue.load_runtime(name))
    spec = manifest["spec"]["template"]["spec"]
    manifest["spec"]["template"]["metadata"] = {}
    spec["replicatedJobs"][0]["groupName"] = "default"
    if "failurePolicy" in spec:
        spec["failurePolicy"].setdefault("restartStrategy", "Recreate")
    if "torch" in manifest["spec"].get("mlPolicy", {}):
        manifest["spec"]["mlPolicy"]["torch"] = {"numProcPerNode": "auto"}
    return manifest


@pytest.mark.parametrize("name", catalogue.names())
def test_one_that_is_as_shipped_is_the_shipped_one(name):
    runtimes = Runtimes(Installed({name: as_stored(name)}))
    assert runtimes(name) == catalogue.load_runtime(name)
    assert runtimes(name) is runtimes(name), "compiled once"
    assert runtimes.entry(name) == catalogue.get_runtime(name)


def test_one_that_was_changed_is_the_changed_one():
    changed = as_stored("pytorch-simple")
    pod = changed["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    pod["spec"]["nodeSelector"] = {"pool": "training"}
    engine = Installed({"pytorch-simple": as_stored("pytorch-simple")})
    runtimes = Runtimes(engine)
    assert "nodeSelector" not in str(runtimes("pytorch-simple"))
    engine.found = {"pytorch-simple": changed}
    assert runtimes("pytorch-simple") is changed
    assert runtimes.entry("pytorch-simple").about == catalogue.get_runtime("pytorch-simple").about


def test_one_that_nobody_installed_is_refused_with_those_there_are():
    runtimes = Runtimes(
        Installed({"house": as_stored("pytorch-simple") | {"metadata": {"name": "house"}}})
    )
    with pytest.raises(InvalidRequest) as refused:
        runtimes("pytorch-simple")
    (problem,) = refused.value.problems
    assert (problem.path, problem.code) == ("runtime", "unknown-runtime")
    assert problem.message == "there is no runtime 'pytorch-simple' on this cluster."
    assert problem.remedy == "It has house."
    assert [each.name for each in runtimes.entries()] == ["house"]
    assert "cluster" in runtimes.entries()[0].summary


def test_where_none_is_installed_the_remedy_is_to_install_them():
    with pytest.raises(InvalidRequest) as refused:
        Runtimes(Installed({}))("pytorch-simple")
    assert "astrago install" in refused.value.problems[0].remedy


def test_while_it_is_not_known_what_is_installed_the_catalogue_holds():
    assert Runtimes(Installed(None))("pytorch-simple") == catalogue.load_runtime("pytorch-simple")
    assert [each.name for each in Runtimes(Installed(None)).entries()] == list(catalogue.names())
