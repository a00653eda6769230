"""The administrator's settings: what they change, and everything that is refused about them at once."""

from __future__ import annotations

from typing import Any

import pytest

from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.core.platform import Platform, Preset
from astrago_trainer.core.platform_settings import check_runtimes, parse_platform_settings

from .builders import a_platform, a_platform_with_scripts

FULL: dict[str, Any] = {
    "frameworks": {
        "pytorch": {
            "runtime": "torch-here",
            "git_runtime": "torch-git",
            "image": "registry.example.org/torch:2.8",
            "images": ["registry.example.org/torch:2.8", "pytorch/pytorch:2.2.2"],
        },
        "horovod": {"git_runtime": "mpi-git"},
    },
    "presets": [{"name": "tiny", "cpu": 1, "memory": "2Gi"}],
    "allowed_host_paths": ["/mnt/data"],
    "limits": {"nodes": 8, "gpus_per_node": 4, "cpu_per_node": 64, "memory_per_node": "512Gi"},
    "defaults": {"ttl_seconds": 600, "max_restarts": 2},
}


def problems_of(**settings: Any) -> dict[str, tuple[str, str]]:
    with pytest.raises(InvalidRequest) as caught:
        parse_platform_settings(settings)
    return {each.path: (each.message, each.remedy) for each in caught.value.problems}


def test_an_empty_file_changes_nothing() -> None:
    assert parse_platform_settings({}).applied_to(Platform()) == Platform()
    before = a_platform_with_scripts()
    assert parse_platform_settings({}).applied_to(before) == before


@pytest.mark.req("M83")
def test_the_usual_presets_are_those_of_the_mock_up() -> None:
    sizes = [(each.name, each.gpus, each.cpu, each.memory) for each in Platform().presets]
    assert sizes == [
        ("small", 1, "4", "16Gi"),
        ("medium", 2, "8", "32Gi"),
        ("large", 4, "16", "64Gi"),
    ]


@pytest.mark.req("X23")
def test_every_field_changes_the_platform() -> None:
    before = a_platform(default_images={"tensorflow": "tf"})
    after = parse_platform_settings(FULL).applied_to(before)

    assert after.default_runtimes == {**before.default_runtimes, "pytorch": "torch-here"}
    assert after.git_runtimes == {
        "pytorch": "torch-git",
        "tensorflow": "tensorflow-runtime",
        "horovod": "mpi-git",
    }
    assert after.default_images == {
        "pytorch": "registry.example.org/torch:2.8",
        "tensorflow": "tf",
    }
    assert after.images == {"pytorch": ("registry.example.org/torch:2.8", "pytorch/pytorch:2.2.2")}
    assert after.presets == (Preset(name="tiny", gpus=0, cpu="1", memory="2Gi"),)
    assert after.allowed_host_paths == ("/mnt/data",)
    assert (after.max_nodes, after.max_gpus_per_node) == (8, 4)
    assert (after.max_cpu_per_node, after.max_memory_per_node) == ("64", "512Gi")
    assert (after.default_ttl_seconds, after.default_max_restarts) == (600, 2)
    assert after.trainer_version == before.trainer_version
    assert after.system_scripts == before.system_scripts


def test_no_presets_are_a_decision_too() -> None:
    assert parse_platform_settings({"presets": []}).applied_to(Platform()).presets == ()


def test_all_problems_come_at_once_with_what_was_expected_and_found() -> None:
    found = problems_of(
        framework={},
        frameworks={"pytorh": {}, "pytorch": {"imge": "x", "image": "Not An Image", "runtime": 5}},
        presets=[{"name": "a", "gpus": -1, "cpu": "x", "memory": 0}, {"cpu": 1, "memory": 1}],
        allowed_host_paths=["mnt", "/mnt/../etc"],
        limits={"node": 4},
        defaults={"max_restarts": "3", "ttl_seconds": -1},
    )
    assert found.keys() == {
        "framework",
        "frameworks.pytorh",
        "frameworks.pytorch.imge",
        "frameworks.pytorch.image",
        "frameworks.pytorch.runtime",
        "presets[0].gpus",
        "presets[0].cpu",
        "presets[0].memory",
        "presets[1].name",
        "allowed_host_paths[0]",
        "allowed_host_paths[1]",
        "limits.node",
        "defaults.max_restarts",
        "defaults.ttl_seconds",
    }
    assert found["framework"] == ("there is no such field.", "Did you mean frameworks?")
    assert found["frameworks.pytorh"][1] == "Did you mean pytorch?"
    assert found["frameworks.pytorch.imge"][1] == "Did you mean image?"
    assert found["limits.node"][1] == "Did you mean nodes?"
    assert found["presets[0].gpus"][0] == "must be at least 0; found -1."
    assert found["defaults.max_restarts"][0] == "must be a whole number; found '3'."


@pytest.mark.parametrize("value", [None, [], "text", 5, {"pytorch": None}])
def test_a_wrong_kind_of_value_is_refused(value: Any) -> None:
    assert list(problems_of(frameworks=value)) in (["frameworks"], ["frameworks.pytorch"])


def test_names_of_presets_are_unique_and_sizes_fit_the_limits() -> None:
    size = {"name": "a", "cpu": 8, "memory": "1Gi"}
    found = problems_of(
        presets=[size, {**size, "gpus": 3}, {**size, "name": "b", "memory": "2Ti"}],
        limits={"gpus_per_node": 2, "cpu_per_node": 4, "memory_per_node": "1Ti"},
    )
    assert found["presets[1].name"][0] == "must be unique; found 'a' twice."
    assert found["presets[1].gpus"][0] == "must be at most 2, the limit of this file; found 3."
    assert found["presets[0].cpu"][0] == "must be at most 4, the limit of this file; found 8."
    assert "presets[2].memory" in found


def test_runtimes_that_an_engine_does_not_have_are_named() -> None:
    settings = parse_platform_settings(FULL)
    known = ["torch-git", "torch-hero", "mpi-git"]
    (problem,) = check_runtimes(settings, known)
    assert problem.path == "frameworks.pytorch.runtime"
    assert "'torch-here'" in problem.message
    assert problem.remedy == "Did you mean torch-hero?"
    assert list(check_runtimes(settings, [*known, "torch-here"])) == []
