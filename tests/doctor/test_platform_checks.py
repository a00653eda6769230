"""What the doctor says of the administrator's file."""

from __future__ import annotations

import pytest

from astrago_trainer import catalogue
from astrago_trainer.doctor.findings import State
from astrago_trainer.doctor.platform_checks import check_platform, read_platform


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "platform.yaml"
    monkeypatch.setenv("ASTRAGO_PLATFORM", str(path))
    return path


def test_no_file_is_well(monkeypatch):
    monkeypatch.delenv("ASTRAGO_PLATFORM", raising=False)
    (found,) = check_platform(read_platform(catalogue.names()))
    assert (found.state, found.text) == (
        State.OK,
        "built-in defaults; ASTRAGO_PLATFORM names no file",
    )


def test_what_it_decides_is_shown(file):
    file.write_text(
        "frameworks: {pytorch: {runtime: pytorch-runtime, images: [a/b:1, a/b:2]}}\n"
        "presets: [{name: a, cpu: 1, memory: 1Gi}]\nallowed_host_paths: [/mnt]\n"
        "limits: {nodes: 4}\ndefaults: {max_restarts: 2}\n"
    )
    (found,) = check_platform(read_platform(catalogue.names()))
    assert found.state is State.OK
    assert found.text == (
        f"{file}: pytorch on pytorch-runtime, 2 images for pytorch, 1 preset, host paths /mnt, "
        "limit of nodes 4, max_restarts 2"
    )


def test_each_problem_is_a_finding(file):
    file.write_text("limits: {node: 4}\ndefaults: {ttl_seconds: no}\n")
    found = check_platform(read_platform(catalogue.names()))
    assert [each.state for each in found] == [State.WRONG, State.WRONG]
    assert "Did you mean nodes?" in found[0].text


def test_a_runtime_that_only_a_cluster_can_have_is_wrong_on_this_machine_alone(file):
    file.write_text("frameworks: {pytorch: {runtime: ours}}\n")
    assert check_platform(read_platform(catalogue.names()))[0].state is State.WRONG
    assert check_platform(read_platform(None))[0].state is State.OK
