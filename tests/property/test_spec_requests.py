"""Laws of reading requests: any JSON is answered, problems name real places, nothing is changed."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.core.seeds import FlatBody, NestedBody, SeedConfig, seed_body_to_job_spec
from astrago_trainer.core.spec import JobSpec, parse_job_spec
from unit.core.builders import a_request

texts = st.text(st.characters(codec=None), max_size=20)
numbers = st.integers() | st.floats() | st.integers(15_000, 16_000).map(lambda bits: 1 << bits)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def bodies_with(names: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects that have the fields of a form, with anything in them."""
    return st.dictionaries(st.sampled_from(names) | texts, json_values, max_size=8)


nested = bodies_with(list(NestedBody.model_fields)).flatmap(
    lambda body: st.builds(
        lambda config: body | {"config": config},
        json_values | bodies_with(list(SeedConfig.model_fields)),
    )
)
seed_bodies = json_values | nested | bodies_with(list(FlatBody.model_fields))


@given(seed_bodies)
@settings(max_examples=200)
def test_any_json_as_a_seed_body_is_a_job_or_problems(body: Any) -> None:
    before = copy.deepcopy(body)
    problems = problems_of(seed_body_to_job_spec, body)
    assert all(problem.message and problem.code for problem in problems)
    assert picture(body) == picture(before)


@given(json_values | bodies_with(list(JobSpec.model_fields)))
@settings(max_examples=200)
def test_any_json_as_a_request_is_a_job_or_problems(data: Any) -> None:
    problems = problems_of(parse_job_spec, data)
    assert all(problem.message and problem.code for problem in problems)


@given(st.sampled_from(sorted(JobSpec.model_fields)), json_values)
@settings(max_examples=200)
def test_one_odd_field_never_hides_behind_another(field: str, value: Any) -> None:
    """In an otherwise valid request, all problems are about the odd field."""
    problems = problems_of(parse_job_spec, a_request(command="x") | {field: value})
    assert [problem.path for problem in problems if not problem.path.startswith(field)] == []


@pytest.mark.parametrize("depth", [100, 100_000])
def test_deep_nesting_is_answered(depth: int) -> None:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    with pytest.raises(InvalidRequest):
        parse_job_spec(a_request(env=value, nodes=value, labels={"a": value}))
    while isinstance(value, list):  # freed step by step: Python would recurse
        value = value.pop()


@given(st.permutations(sorted(a_request(nodes=2, labels={"a": "1", "b": "2"}, command="x"))))
def test_the_order_of_fields_does_not_matter(order: list[str]) -> None:
    request = a_request(nodes=2, labels={"a": "1", "b": "2"}, command="x")
    shuffled = {key: request[key] for key in order}
    assert parse_job_spec(shuffled) == parse_job_spec(request)


def test_a_spec_survives_json() -> None:
    spec = parse_job_spec(
        a_request(resources={"cpu": 4}, env=[{"name": "A", "value": "é"}], args=["x"])
    )
    again = json.loads(json.dumps(spec.model_dump(mode="json", exclude_none=True)))
    assert parse_job_spec(again) == spec


def problems_of(read: Callable[[Any], JobSpec], data: Any) -> tuple[Problem, ...]:
    """No problem for a job; an exception of any other kind fails the test."""
    try:
        read(data)
    except InvalidRequest as error:
        return error.problems or (Problem("", "", ""),)
    return ()


def picture(value: Any) -> str:
    """Equality that takes NaN for itself and has no trouble with long numbers."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key!a}:{picture(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(picture, value)) + "]"
    return hex(value) if isinstance(value, int) else ascii(value)
