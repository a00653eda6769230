"""Laws of render: inputs stay, the same input gives the same bytes, text arrives as it was sent."""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.core.names import check_trainjob_name
from astrago_trainer.core.render import Rendered, render
from astrago_trainer.core.render.command import literal
from astrago_trainer.core.spec import parse_job_spec
from unit.core.builders import (
    a_git_runtime,
    a_platform,
    a_platform_with_scripts,
    a_request,
    a_runtime,
    a_tensorflow_runtime,
    an_mpi_runtime,
)

Json = dict[str, Any]

RUNTIMES = [
    ("pytorch", a_runtime()),
    ("pytorch", a_git_runtime()),
    ("tensorflow", a_tensorflow_runtime()),
    ("horovod", an_mpi_runtime(has_launcher_as_node=False)),
    ("horovod", an_mpi_runtime(has_launcher_as_node=True)),
]

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
keys = st.from_regex(r"[a-z]{1,8}", fullmatch=True)
labels = st.dictionaries(keys, st.from_regex(r"[a-z0-9]{0,8}", fullmatch=True), max_size=4)
amounts = st.sampled_from(["1", "500m", "2", "1.5", "4Gi", "1e3"])
variables = st.dictionaries(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}Q", fullmatch=True), texts, max_size=4
).map(lambda table: [{"name": name, "value": value} for name, value in table.items()])
volumes = st.dictionaries(keys, st.sampled_from(["claim", "secret", "config_map"]), max_size=3).map(
    lambda table: [
        {"name": f"{name}-v", kind: "some", "mount_path": f"/mnt/{name}"}
        for name, kind in table.items()
    ]
)
requests = st.fixed_dictionaries(
    {},
    optional={
        "nodes": st.integers(1, 200),
        "env": variables,
        "volumes": volumes,
        "labels": labels,
        "annotations": st.dictionaries(keys, texts, max_size=3),
        "node_selector": labels,
        "resources": st.fixed_dictionaries(
            {}, optional={"cpu": amounts, "memory": amounts, "gpus": st.integers(0, 8)}
        ),
        "shared_memory": st.sampled_from(["1Gi", "64Gi"]),
        "command": texts.map(lambda text: f"x{text}"),
        "max_restarts": st.integers(0, 20),
        "suspend": st.booleans(),
        "working_dir": st.sampled_from(["/a b", "/data/$(X)"]),
        "checkpoints": st.sampled_from(["/checkpoints", "/data/$(X)"]),
        "resume_from": st.sampled_from(["/data/old/step-7"]),
        "code": st.dictionaries(keys, texts, min_size=1).map(
            lambda table: {"files": {"train.py": "", **{f"p/{k}": v for k, v in table.items()}}}
        ),
    },
)
cases = st.tuples(st.sampled_from(RUNTIMES), requests, st.sampled_from(["2.1", "2.2", "2.3"]))


def bytes_of(rendered: Rendered) -> str:
    parts = [rendered.objects, rendered.runtime, dict(rendered.sources)]
    return json.dumps([*parts, [str(problem) for problem in rendered.problems]])


def shuffled(value: Any) -> Any:
    """The same data with every object's keys in the opposite order."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return [shuffled(each) for each in value] if isinstance(value, list) else value


@given(cases)
@settings(max_examples=100, deadline=None)
def test_inputs_stay_as_they_were(case: Any) -> None:
    (framework, runtime), changes, version = case
    request, template = a_request(framework=framework, **changes), copy.deepcopy(runtime)
    before = copy.deepcopy(request)
    spec = parse_job_spec(request)
    dumped = spec.model_dump()
    rendered = render(spec, template, a_platform(trainer_version=version))
    rendered.trainjob["metadata"]["labels"]["changed"] = "later"
    assert (request, template, spec.model_dump()) == (before, runtime, dumped)


@given(cases)
@settings(max_examples=100, deadline=None)
def test_the_same_input_gives_the_same_bytes_in_any_order(case: Any) -> None:
    (framework, runtime), changes, version = case
    platform = a_platform_with_scripts(trainer_version=version)
    request = a_request(framework=framework, **changes)
    one = render(parse_job_spec(request), runtime, platform)
    two = render(parse_job_spec(shuffled(request)), runtime, platform)
    assert bytes_of(one) == bytes_of(two)


@given(cases)
@settings(max_examples=100, deadline=None)
def test_what_is_rendered_hangs_together(case: Any) -> None:
    (framework, runtime), changes, version = case
    request = a_request(framework=framework, **changes)
    rendered = render(parse_job_spec(request), runtime, a_platform(trainer_version=version))
    assert check_trainjob_name(rendered.trainjob["metadata"]["name"]) == []
    assert rendered.objects[-1] is rendered.trainjob
    leaves = dict(leaves_of(rendered.trainjob))
    assert set(rendered.sources) <= set(leaves)
    assert not [path for path, value in leaves.items() if value is None]
    for pod in pods_of(rendered.trainjob):
        volumes_there = [each["name"] for each in pod.get("volumes", ())]
        mounts = [each for box in pod.get("containers", ()) for each in box["volumeMounts"]]
        assert len(set(volumes_there)) == len(volumes_there)
        assert [each["name"] for each in mounts] == volumes_there
        assert len({each["mountPath"] for each in mounts}) == len(mounts)


def leaves_of(value: Any, path: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        return [
            leaf
            for key, inner in value.items()
            for leaf in leaves_of(inner, f"{path}.{key}" if path else key)
        ]
    if isinstance(value, list) and value:
        return [
            leaf
            for index, inner in enumerate(value)
            for leaf in leaves_of(inner, f"{path}[{index}]")
        ]
    return [(path, value)]


def pods_of(trainjob: Json) -> list[Json]:
    spec = trainjob["spec"]
    if "podTemplateOverrides" in spec:
        return [each["spec"] for each in spec["podTemplateOverrides"]]
    return [
        job["template"]["spec"]["template"]["spec"]
        for patch in spec.get("runtimePatches", ())
        for job in patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    ]


def expanded(text: str, variables: dict[str, str]) -> str:
    """What the kubelet makes of a command, argument or value (its `expansion.Expand`)."""
    result, position = "", 0
    while position < len(text):
        char, rest = text[position], text[position + 1 :]
        if char != "$" or not rest:
            result, position = result + char, position + 1
        elif rest[0] == "$":
            result, position = f"{result}$", position + 2
        elif rest[0] == "(" and ")" in rest:
            name = rest[1 : rest.index(")")]
            result += variables.get(name, f"$({name})")
            position += 2 + rest.index(")")
        else:
            result, position = result + char + rest[0], position + 2
    return result


@given(
    st.lists(st.sampled_from([*"$()ABab_ \n", "$(A)", "$(b)", "$$"])).map("".join) | texts,
    st.dictionaries(st.sampled_from(["A", "b", "AB", "_"]), st.just("REPLACED")),
)
@settings(max_examples=300)
def test_kubernetes_hands_on_what_was_written(text: str, variables: dict[str, str]) -> None:
    assert expanded(literal(text, variables), variables) == text


HOSTILE = [
    "$(touch canary)",
    "`touch canary`",
    "; touch canary",
    "' ; touch canary ; '",
    '" ; touch canary ; "',
    "\n touch canary\n",
    "&& touch canary",
    "| touch canary",
    "${IFS}touch canary",
    "--",
    "-c",
    "-",
    "",
    "*",
    "~",
    "\\",
    "é\u202e",
]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize("value", HOSTILE, ids=ascii)
def test_no_value_of_a_user_is_read_by_the_shell(value: str, tmp_path: Any) -> None:
    """T6: arguments, variables and folders reach the program byte for byte."""
    show = ["env", "printf", "%s\\0"]
    env = [{"name": "VALUE", "value": value}]
    request = a_request(argv=[*show, value, "end"], env=env, working_dir=str(tmp_path))
    trainer = render(parse_job_spec(request), a_runtime(), a_platform()).trainjob["spec"]["trainer"]
    environment = {each["name"]: expanded(each["value"], {}) for each in trainer["env"]}
    line = [expanded(each, environment) for each in (*trainer["command"], *trainer["args"])]
    done = subprocess.run(
        line,
        env={"PATH": "/usr/bin:/bin", **environment},
        cwd="/",
        capture_output=True,
        timeout=10,
        check=True,
    )
    assert done.stdout.decode().split("\0") == [value, "end", ""]
    assert environment["VALUE"] == value
    assert list(tmp_path.iterdir()) == []


@given(st.from_regex(r"[A-Za-z0-9_.][A-Za-z0-9_./-]{0,20}", fullmatch=True))
@settings(max_examples=100)
def test_an_entry_point_in_the_command_is_one_plain_word(name: str) -> None:
    request = a_request(code={"files": {name: ""}, "entrypoint": name})
    try:
        spec = parse_job_spec(request)
    except InvalidRequest:  # a path such as a//b
        return
    script = render(spec, a_runtime(), a_platform()).trainjob["spec"]["trainer"]["command"][2]
    last = script.rsplit("\n\n", 1)[1]
    assert re.fullmatch(r"python /workspace/scripts/[A-Za-z0-9_./-]+", last)
