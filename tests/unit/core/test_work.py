"""Work grows with the size of a job, not with its square. Calls are counted, because seconds depend on the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from astrago_trainer import catalogue
from astrago_trainer.core.checks.job_set import check_job_set
from astrago_trainer.core.errors import MAX_PROBLEMS, MORE_PROBLEMS, InvalidRequest, Problem, listed
from astrago_trainer.core.merge.lists import upsert, upsert_all
from astrago_trainer.core.preview import preview_job
from astrago_trainer.core.seeds import read_seed_body
from astrago_trainer.core.spec import JobSpec, parse_job_spec
from astrago_trainer.core.spec.parse import parse_model
from astrago_trainer.server.schemas import SignUp

PLATFORM = catalogue.default_platform()
RUNTIME = catalogue.load_runtime("pytorch-simple")


def a_job(**fields: Any) -> dict[str, Any]:
    job = {"user": "ann", "namespace": "team", "framework": "pytorch", "command": "true"}
    return {**job, **fields}


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called, those of C included."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_a_preview_with_eight_times_the_variables_is_eight_times_the_work() -> None:
    def preview(size: int) -> Callable[[], object]:
        env = [{"name": f"V{number}", "value": "x"} for number in range(size)]
        spec = parse_job_spec(a_job(env=env))
        return lambda: preview_job(spec, RUNTIME, PLATFORM)

    preview(1)()  # what is made once is made
    assert calls_of(preview(1600)) < 20 * calls_of(preview(200))


def test_many_entries_are_laid_over_a_list_as_one_by_one() -> None:
    def some(names: str) -> list[dict[str, Any]]:
        return [{"name": name, "value": index} for index, name in enumerate(names)]

    for before, added in (("", "ab"), ("abc", "bd"), ("aba", "aca"), ("ab", "cc"), ("aa", "")):
        one_by_one, together = some(before), some(before)
        for item in some(added):
            upsert(one_by_one, item, "name")
        upsert_all(together, some(added), "name")
        assert together == one_by_one


class Name(str):
    """A text that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_names_that_repeat_are_found_without_comparing_all_with_all() -> None:
    spec = parse_job_spec(a_job())
    job_set = preview_job(spec, RUNTIME, PLATFORM).objects[0]
    pod = job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod["containers"][0]["env"] = [
        {"name": Name(f"V{number % 500}"), "value": "x"} for number in range(501)
    ]
    Name.compared = 0
    (problem,) = check_job_set(job_set, "2.1")
    assert problem.message.startswith("name V0 is there twice")
    assert Name.compared < 10 * 501


def test_a_file_below_another_names_the_outermost() -> None:
    files = {"train.py": "x", "a/b/c": "x", "a.py": "x", "a/b": "x", "a": "x", "ab/c": "x"}
    with pytest.raises(InvalidRequest) as caught:
        parse_job_spec(a_job(code={"files": files}))
    assert [(each.path, each.message.split()[0]) for each in caught.value.problems] == [
        ("code.files.a/b/c", "'a'"),
        ("code.files.a/b", "'a'"),
    ]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"env": [1] * 3000}, id="numbers for objects"),
        pytest.param({"env": [{"name": "A", "secret": {"x": 1}}] * 3000}, id="broken references"),
        pytest.param({"env": [{"name": "A", "value": "x"}] * 3000}, id="one name for all"),
        pytest.param({f"field{number}": 1 for number in range(3000)}, id="unknown fields"),
        pytest.param({"labels": {f"k{number}": 1 for number in range(3000)}}, id="broken labels"),
    ],
)
def test_after_a_hundred_problems_it_is_said_that_there_are_more(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_job_spec(a_job(**fields))
    *shown, last = caught.value.problems
    assert len(shown) == MAX_PROBLEMS
    assert MORE_PROBLEMS not in {each.code for each in shown}
    assert (last.path, last.code) == ("", MORE_PROBLEMS)
    assert "the first 100 are listed" in last.message


def test_a_hundred_problems_are_all() -> None:
    _, problems = parse_model(SignUp, {f"field{number}": 1 for number in range(MAX_PROBLEMS)})
    assert len(problems) == MAX_PROBLEMS
    assert {each.code for each in problems} == {"FieldValueForbidden"}


def test_that_there_are_more_is_said_once_and_at_the_end() -> None:
    many = [Problem(f"a{number}", "x", "wrong.") for number in range(60)]
    more = Problem("", MORE_PROBLEMS, "there are more.")
    assert [each.code for each in listed([*many, more])] == ["x"] * 60 + [MORE_PROBLEMS]
    twice = listed([*many, more, *many, more])
    assert [each.code for each in twice] == ["x"] * MAX_PROBLEMS + [MORE_PROBLEMS]


def test_wrong_entries_are_read_once_not_once_for_each_model_around_them() -> None:
    def parse(size: int) -> Callable[[], object]:
        body = a_job(env=[{"name": "A", "secret": {"name": "x"}}] * size)
        return lambda: parse_model(JobSpec, body)

    parse(1)()
    a_hundred = calls_of(parse(200)) - calls_of(parse(100))
    assert a_hundred < 100 * 250


def test_the_first_api_lists_its_problems_under_its_own_names_up_to_the_limit() -> None:
    body = {"user_id": "ann", "env_vars": [{"name": "A", "value": []}] * 3000}
    with pytest.raises(InvalidRequest) as caught:
        read_seed_body(body)
    assert len(caught.value.problems) <= 2 * MAX_PROBLEMS + 2
