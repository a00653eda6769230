"""The request bodies of the first API, in both forms."""

from __future__ import annotations

import json
from typing import Any

import pytest

from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.core.leniency import MOST_WARNINGS
from astrago_trainer.core.seeds import FlatBody, NestedBody, read_seed_body, seed_body_to_job_spec
from unit.core.builders import PYTORCH_IMAGE

# M54 as written there; its "…" for the image is filled in from M37.
SAMPLE = (
    '{"user_id":"user123","namespace":"user-123","framework":"pytorch","training_code":'
    '"print(\'hi\')","image":"' + PYTORCH_IMAGE + '","num_nodes":2,"cpu_request":"2",'
    '"cpu_limit":"4","memory_request":"8Gi","memory_limit":"16Gi","gpu_count":1,"command":'
    '"python /workspace/scripts/train.py","env_vars":[{"name":"EPOCHS","value":"10"}],'
    '"volumes":[{"name":"dataset","pvc":"user123-dataset-pvc","mountPath":"/data",'
    '"readOnly":true}]}'
)


def a_nested_body(**config: Any) -> dict[str, Any]:
    return {
        "user_id": "user123",
        "namespace": "user-123",
        "framework": "pytorch",
        "training_code": "import torch\n",
        "config": {
            "num_nodes": 2,
            "gpu_per_node": 1,
            "cpu_per_node": 4,
            "memory_per_node": "16Gi",
            **config,
        },
    }


def a_flat_body(**changes: Any) -> dict[str, Any]:
    return json.loads(SAMPLE) | changes


def problems_of(body: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidRequest) as caught:
        seed_body_to_job_spec(body)
    return [(problem.path, problem.code) for problem in caught.value.problems]


@pytest.mark.req("M52", "M53", "M54", "X3", "X11")
def test_the_flat_sample_becomes_a_job() -> None:
    spec = seed_body_to_job_spec(json.loads(SAMPLE))
    assert spec.model_dump(mode="json", exclude_defaults=True) == {
        "user": "user123",
        "namespace": "user-123",
        "framework": "pytorch",
        "code": {"inline": "print('hi')"},
        "image": PYTORCH_IMAGE,
        "nodes": 2,
        "resources": {
            "cpu": {"request": "2", "limit": "4"},
            "memory": {"request": "8Gi", "limit": "16Gi"},
            "gpus": 1,
        },
        "command": "python /workspace/scripts/train.py",
        "env": [{"name": "EPOCHS", "value": "10"}],
        "volumes": [
            {
                "name": "dataset",
                "claim": "user123-dataset-pvc",
                "mount_path": "/data",
                "read_only": True,
            }
        ],
    }


@pytest.mark.req("M21", "X3", "X8")
def test_the_nested_body_becomes_a_job_with_limits() -> None:
    spec = seed_body_to_job_spec(a_nested_body())
    assert spec.model_dump(mode="json", exclude_defaults=True) == {
        "user": "user123",
        "namespace": "user-123",
        "framework": "pytorch",
        "code": {"inline": "import torch\n"},
        "nodes": 2,
        "resources": {
            "cpu": {"request": "2", "limit": "4"},
            "memory": {"request": "8Gi", "limit": "16Gi"},
            "gpus": 1,
        },
    }


@pytest.mark.req("M18", "M21")
@pytest.mark.parametrize(
    ("cpu", "memory", "requests"),
    [
        (4, "16Gi", ("2", "8Gi")),
        ("2", "8Gi", (None, None)),
        ("2001m", "8193Mi", ("2", "8Gi")),
        (1, "512Mi", (None, None)),
    ],
)
def test_requests_of_the_nested_body_are_the_template_s_and_never_above_the_limit(
    cpu: Any, memory: str, requests: tuple[str | None, str | None]
) -> None:
    """Without a request Kubernetes reserves the limit."""
    spec = seed_body_to_job_spec(a_nested_body(cpu_per_node=cpu, memory_per_node=memory))
    found = spec.resources
    assert found.cpu is not None
    assert found.memory is not None
    assert (found.cpu.request, found.memory.request) == requests
    assert (found.cpu.limit, found.memory.limit) == (str(cpu), memory)


def test_values_of_another_type_are_converted_and_unknown_fields_ignored_with_a_warning() -> None:
    body = a_flat_body(
        num_nodes="2",
        gpu_count=1.0,
        cpu_request=2,
        priority="high",
        env_vars=[{"name": "EPOCHS", "value": 10, "note": ""}],
        volumes=[{"name": "d", "pvc": "d", "mountPath": "/d", "readOnly": "true", "size": "1Gi"}],
    )
    spec, warnings = read_seed_body(body)
    assert (spec.nodes, spec.resources.gpus, spec.env[0].value) == (2, 1, "10")
    assert spec.volumes[0].read_only is True
    assert {(each.path, each.code, each.severity) for each in warnings} == {
        ("num_nodes", "value-converted", "warning"),
        ("gpu_count", "value-converted", "warning"),
        ("priority", "field-ignored", "warning"),
        ("env_vars[0].value", "value-converted", "warning"),
        ("env_vars[0].note", "field-ignored", "warning"),
        ("volumes[0].readOnly", "value-converted", "warning"),
        ("volumes[0].size", "field-ignored", "warning"),
    }
    assert all("10" not in each.message for each in warnings)
    assert read_seed_body(a_flat_body())[1] == ()


@pytest.mark.parametrize("value", ["yes", "on", 1, "1", "TRUE", True])
def test_flags_are_read_as_pydantic_reads_them(value: Any) -> None:
    volume = {"name": "d", "pvc": "d", "mountPath": "/d", "readOnly": value}
    spec, warnings = read_seed_body(a_flat_body(volumes=[volume]))
    assert spec.volumes[0].read_only is True
    assert len(warnings) == (value is not True)


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"num_nodes": "two"}, "num_nodes"),
        ({"num_nodes": 1.5}, "num_nodes"),
        ({"num_nodes": None}, "num_nodes"),
        ({"user_id": 5}, "user_id"),
        ({"training_code": 5}, "training_code"),
        ({"volumes": [{"name": "d", "pvc": "d", "mountPath": "/d", "readOnly": "maybe"}]}, "volumes[0].readOnly"),
        ({"env_vars": [{"name": "A", "value": True}]}, "env_vars[0].value"),
    ],
)  # fmt: skip
def test_what_pydantic_would_not_convert_is_refused(changes: dict[str, Any], path: str) -> None:
    assert path in [each for each, _ in problems_of(a_flat_body(**changes))]


def test_many_unknown_fields_make_few_warnings() -> None:
    many = {f"x{index}": index for index in range(1000)} | {"\ud800" + "y" * 1000: 1}
    _, warnings = read_seed_body(a_flat_body(**many))
    assert len(warnings) == MOST_WARNINGS + 1
    assert warnings[-1].message.startswith("951 more fields")
    _, (one,) = read_seed_body(a_flat_body(**{"\ud800" + "y" * 1000: 1}))
    assert len(one.path.encode()) <= 100


@pytest.mark.req("M52")
def test_variables_and_volumes_may_be_left_out() -> None:
    body = a_flat_body()
    del body["env_vars"], body["volumes"]
    spec = seed_body_to_job_spec(body)
    assert (spec.env, spec.volumes) == ((), ())


@pytest.mark.req("M46", "M53")
def test_volumes_are_writable_unless_said_otherwise() -> None:
    volume = {"name": "models", "pvc": "user123-models-pvc", "mountPath": "/models"}
    spec = seed_body_to_job_spec(a_flat_body(volumes=[volume]))
    assert spec.volumes[0].read_only is False


@pytest.mark.req("M44", "M28")
@pytest.mark.parametrize("framework", ["jax", "PyTorch", "", None, 1])
@pytest.mark.parametrize("body", [a_flat_body(), a_nested_body()], ids=["flat", "nested"])
def test_an_unknown_framework_is_refused(body: dict[str, Any], framework: Any) -> None:
    assert [path for path, _ in problems_of(body | {"framework": framework})] == ["framework"]


@pytest.mark.req("M28", "M56")
def test_every_missing_field_is_named_in_the_form_that_was_meant() -> None:
    assert [path for path, _ in problems_of({})] == [
        "user_id",
        "namespace",
        "framework",
        "training_code",
        "image",
        "num_nodes",
        "cpu_request",
        "cpu_limit",
        "memory_request",
        "memory_limit",
        "gpu_count",
        "command",
    ]
    assert [path for path, _ in problems_of({"config": {}})] == [
        "user_id",
        "namespace",
        "framework",
        "training_code",
        "config.num_nodes",
        "config.gpu_per_node",
        "config.cpu_per_node",
        "config.memory_per_node",
    ]


@pytest.mark.req("M28", "M56")
def test_all_problems_carry_the_paths_of_the_flat_body() -> None:
    problems = problems_of(
        a_flat_body(
            user_id="User123",
            training_code="",
            image="not an image",
            num_nodes=0,
            cpu_request="8",
            memory_limit="much",
            gpu_count=-1,
            command=" ",
            env_vars=[{"name": "EPOCHS", "value": "1"}, {"name": "RANK", "value": "0"}],
            volumes=[
                {"name": "dataset", "pvc": "Data", "mountPath": "data"},
                {"name": "x", "pvc": "x", "mountPath": "/x", "path": "/y"},
            ],
        )
    )
    assert sorted(problems) == [
        ("command", "FieldValueRequired"),
        ("cpu_request", "FieldValueInvalid"),
        ("env_vars[1].name", "FieldValueForbidden"),
        ("gpu_count", "FieldValueInvalid"),
        ("image", "FieldValueInvalid"),
        ("memory_limit", "FieldValueInvalid"),
        ("num_nodes", "FieldValueInvalid"),
        ("training_code", "FieldValueRequired"),
        ("user_id", "FieldValueInvalid"),
        ("volumes[0].mountPath", "FieldValueInvalid"),
        ("volumes[0].pvc", "FieldValueInvalid"),
    ]


@pytest.mark.req("M28", "M56")
def test_all_problems_carry_the_paths_of_the_nested_body() -> None:
    body = a_nested_body(num_nodes=0, gpu_per_node="one", cpu_per_node="x", memory_per_node="-1")
    assert sorted(problems_of(body)) == [
        ("config.cpu_per_node", "FieldValueInvalid"),
        ("config.gpu_per_node", "FieldValueTypeInvalid"),
        ("config.memory_per_node", "FieldValueInvalid"),
        ("config.num_nodes", "FieldValueInvalid"),
    ]


def test_a_field_of_the_other_form_is_ignored_with_a_warning() -> None:
    spec, (warning,) = read_seed_body(a_nested_body() | {"image": PYTORCH_IMAGE})
    assert spec.image is None
    assert (warning.path, warning.code) == ("image", "field-ignored")


def test_a_script_that_is_too_large_is_told_its_size() -> None:
    with pytest.raises(InvalidRequest) as caught:
        seed_body_to_job_spec(a_nested_body() | {"training_code": "x" * 1_048_577})
    assert caught.value.problems == (
        Problem(
            "training_code",
            "FieldValueTooLong",
            "must have at most 1048576 bytes (1 MiB, what a ConfigMap holds); found 1048577.",
            "Put the code into a git repository and give its address in code.git.",
        ),
    )


@pytest.mark.parametrize("body", [None, [], "x", 3], ids=repr)
def test_what_is_no_object_is_refused(body: Any) -> None:
    assert problems_of(body) == [("", "FieldValueTypeInvalid")]


@pytest.mark.req("M21", "M52")
def test_openapi_names_the_required_fields() -> None:
    assert NestedBody.model_json_schema()["required"] == [
        "user_id",
        "namespace",
        "framework",
        "training_code",
        "config",
    ]
    optional = set(FlatBody.model_json_schema()["properties"]) - set(
        FlatBody.model_json_schema()["required"]
    )
    assert optional == {"env_vars", "volumes"}
