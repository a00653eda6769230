"""The merge answers what the controller answers: same refusals, same objects, for each version."""

from __future__ import annotations

import copy
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from astrago_trainer.core.errors import Problem
from astrago_trainer.core.merge import compile_runtime, merge
from tests.oracle.build import VERSIONS, Oracle
from tests.oracle.compare import differences
from tests.oracle.features import (
    all_struct_fields,
    lines,
    missing_patterns,
    patterns,
    predicates,
    struct_fields,
)
from tests.oracle.fuzz import Tally, compare_seeds, report
from tests.oracle.generate import SEEDS, make_pair
from tests.oracle.minimise import minimise
from tests.oracle.runtimes import ANCESTOR

Json = dict[str, Any]
OracleFor = Callable[[str], Oracle]

FIXED_PAIRS = 300
FRESH_PAIRS = 150
COVERAGE_PAIRS = 2000

# Rare fields may be missing among so few pairs; those of these types must all be there.
CENTRAL_TYPES = (
    "core.v1.Container", "core.v1.EnvVar", "core.v1.EnvVarSource", "core.v1.PodSpec",
    "core.v1.Volume", "core.v1.VolumeMount",
    "batch.v1.JobSpec", "jobset.v1alpha2.JobSetSpec", "jobset.v1alpha2.ReplicatedJob",
    "meta.v1.ObjectMeta", "trainer.",
)  # fmt: skip


@dataclass
class Answered:
    """An answer of ours, made by hand."""

    objects: list[Json] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def explained(oracle: Oracle, tally: Tally) -> str:
    """What to print for a failed comparison: the first difference in full, the others by number."""
    seeds = ", ".join(str(mismatch.seed) for mismatch in tally.mismatches[:20])
    return f"{len(tally.mismatches)} of {tally.pairs} pairs differ ({seeds})\n" + report(
        oracle, tally.mismatches[0]
    )


@pytest.mark.oracle
@pytest.mark.parametrize("version", VERSIONS)
def test_known_pairs_are_merged_as_the_controller_merges_them(
    oracle_for: OracleFor, version: str
) -> None:
    oracle = oracle_for(version)
    tally = compare_seeds(oracle, version, range(FIXED_PAIRS))
    assert not tally.mismatches, explained(oracle, tally)
    assert tally.pairs == FIXED_PAIRS


@pytest.mark.oracle
@pytest.mark.parametrize("version", VERSIONS)
def test_fresh_pairs_are_merged_as_the_controller_merges_them(
    oracle_for: OracleFor, version: str
) -> None:
    oracle = oracle_for(version)
    tally = compare_seeds(oracle, version, [secrets.randbelow(SEEDS) for _ in range(FRESH_PAIRS)])
    assert not tally.mismatches, explained(oracle, tally)


@pytest.mark.oracle
@pytest.mark.parametrize("version", VERSIONS)
def test_most_pairs_make_objects(oracle_for: OracleFor, version: str) -> None:
    answers = oracle_for(version).ask([make_pair(seed, version) for seed in range(600)])
    refused = sum("objects" not in answer for answer in answers)
    assert refused / len(answers) < 0.45  # 0.6 would still do; the generator makes 0.3
    crashed = sum("panic" in answer or "error" in answer for answer in answers)
    assert 0 < crashed < 0.1 * len(answers)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_compiled_runtime_is_not_used_up(version: str) -> None:
    for seed in range(FIXED_PAIRS):
        pair = make_pair(seed, version)
        compiled = compile_runtime(pair["runtime"], version)
        first = json.dumps(merge(compiled, pair["trainJob"], version).objects)
        again = json.dumps(merge(compiled, pair["trainJob"], version).objects)
        anew = json.dumps(merge(pair["runtime"], pair["trainJob"], version).objects)
        assert first == again == anew, f"version {version}, pair {seed}"


@pytest.mark.parametrize("version", VERSIONS)
def test_the_generator_makes_all_it_promises(version: str) -> None:
    seen_lines: set[str] = set()
    seen_fields: set[tuple[str, str]] = set()
    waiting = predicates(version)
    for seed in range(COVERAGE_PAIRS):
        pair = make_pair(seed, version)
        seen_lines.update(lines(pair))
        seen_fields.update(struct_fields(pair, version))
        for name in [name for name, holds in waiting.items() if holds(pair)]:
            del waiting[name]
    assert missing_patterns(patterns(version), seen_lines) == []
    assert sorted(waiting) == []
    unseen = sorted(all_struct_fields(version) - seen_fields)
    assert [f for f in unseen if f[0].startswith(CENTRAL_TYPES)] == []
    assert len(unseen) <= 0.01 * len(all_struct_fields(version)), unseen


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pair_is_replayed_by_its_seed(version: str) -> None:
    for seed in (0, 1, SEEDS - 1):
        assert json.dumps(make_pair(seed, version)) == json.dumps(make_pair(seed, version))
    sizes = [len(json.dumps(make_pair(seed, version))) for seed in range(100)]
    assert 1000 < sum(sizes) / len(sizes) < 15000


JOB_SET = {
    "kind": "JobSet",
    "metadata": {"name": "j"},
    "spec": {
        "suspend": False,
        "replicatedJobs": [
            {
                "name": "node",
                "replicas": 1,
                "template": {
                    "metadata": {"labels": {ANCESTOR: "trainer"}},
                    "spec": {"template": {"spec": {"containers": [
                        {"name": "node", "env": [{"name": "A", "value": "1"}, {"name": "B"}]}
                    ]}}},
                },
            }
        ],
    },
}  # fmt: skip
SECRET = {"kind": "Secret", "metadata": {"name": "j-mpi-ssh-auth"}, "data": {"k": "one"}}
REFUSAL = {"field": "spec.trainer", "type": "FieldValueInvalid", "detail": "no"}


def altered(change: Callable[[Json], object]) -> Json:
    """The JobSet above with a change in it."""
    job_set = copy.deepcopy(JOB_SET)
    change(job_set)
    return job_set


def node(job_set: Json) -> Json:
    job: Json = job_set["spec"]["replicatedJobs"][0]
    container: Json = job["template"]["spec"]["template"]["spec"]["containers"][0]
    return container


class TestTheComparison:
    def test_equal_answers_have_no_differences(self) -> None:
        ours = Answered([copy.deepcopy(SECRET), copy.deepcopy(JOB_SET)])
        assert differences(ours, {"objects": [JOB_SET, SECRET]}) == []

    @pytest.mark.parametrize(
        ("change", "place"),
        [
            (lambda o: o["metadata"].update(name="other"), "JobSet/other"),
            (lambda o: o["spec"].update(suspend=0), "suspend"),
            (lambda o: o["spec"].pop("suspend"), "suspend"),
            (lambda o: o["spec"].update(extra={}), "extra"),
            (lambda o: o["spec"]["replicatedJobs"][0].update(replicas=2), "replicas"),
            (lambda o: o["spec"]["replicatedJobs"].append({}), "replicatedJobs"),
            (lambda o: node(o)["env"].reverse(), "env[0]"),
            (lambda o: node(o)["env"][1].update(value=""), "env[1].value"),
        ],
    )  # fmt: skip
    def test_a_changed_object_is_reported_with_its_place(
        self, change: Callable[[Json], object], place: str
    ) -> None:
        found = differences(Answered([altered(change)]), {"objects": [JOB_SET]})
        assert any(place in line for line in found)

    def test_an_object_on_one_side_only_is_reported(self) -> None:
        assert differences(Answered([JOB_SET]), {"objects": [JOB_SET, SECRET]})
        assert differences(Answered([JOB_SET, SECRET]), {"objects": [JOB_SET]})

    def test_equal_numbers_are_equal_however_they_are_written(self) -> None:
        ours = altered(lambda o: o["spec"]["replicatedJobs"][0].update(replicas=1.0))
        assert differences(Answered([ours]), {"objects": [JOB_SET]}) == []

    def test_random_keys_are_not_compared_but_their_names_are(self) -> None:
        assert differences(Answered([SECRET | {"data": {"k": "two"}}]), {"objects": [SECRET]}) == []
        assert differences(Answered([SECRET | {"data": {"l": "one"}}]), {"objects": [SECRET]})

    def test_the_order_of_variables_counts_unless_two_plugins_add_to_them(self) -> None:
        ours = Answered([altered(lambda o: node(o)["env"].reverse())])
        assert differences(ours, {"objects": [JOB_SET]})
        assert differences(ours, {"objects": [JOB_SET]}, any_env_order=True) == []
        fewer = Answered([altered(lambda o: node(o)["env"].pop())])
        assert differences(fewer, {"objects": [JOB_SET]}, any_env_order=True)

    def test_refusals_are_compared_as_a_multiset(self) -> None:
        problem = Problem("spec.trainer", "FieldValueInvalid", "no")
        other = Problem("spec.trainer", "FieldValueInvalid", "never")
        warning = Problem("spec", "old", "soon gone", severity="warning")
        assert differences(Answered(problems=[problem, warning]), {"errors": [REFUSAL]}) == []
        for ours in ([], [problem, problem], [other], [problem, other]):
            assert differences(Answered(problems=ours), {"errors": [REFUSAL]})
        assert differences(Answered(problems=[problem]), {"objects": []})

    @pytest.mark.parametrize(
        ("kind", "right", "wrong"),
        [
            ("panic", Problem("", "InternalError", "x"), Problem("spec", "InternalError", "x")),
            ("error", Problem("", "InternalError", "x"), Problem("", "FieldValueInvalid", "x")),
            (
                "undecodable",
                Problem("spec.a", "FieldValueTypeInvalid", "x"),
                Problem("spec.a", "FieldValueInvalid", "x"),
            ),
        ],
    )
    def test_a_crash_or_a_misfit_has_its_code_with_us(
        self, kind: str, right: Problem, wrong: Problem
    ) -> None:
        assert differences(Answered(problems=[right]), {kind: "words of Go"}) == []
        assert differences(Answered(problems=[wrong]), {kind: "words of Go"})
        assert differences(Answered([JOB_SET]), {kind: "words of Go"})


@pytest.mark.oracle
@pytest.mark.parametrize("version", VERSIONS)
def test_an_altered_answer_of_the_controller_is_noticed(
    oracle_for: OracleFor, version: str
) -> None:
    pairs = [make_pair(seed, version) for seed in range(60)]
    answers = [a for a in oracle_for(version).ask(pairs) if "objects" in a]
    assert answers
    for answer in answers:
        assert differences(Answered(answer["objects"]), answer) == []
        job_set = next(o for o in copy.deepcopy(answer["objects"]) if o["kind"] == "JobSet")
        job_set["metadata"]["ownerReferences"][0]["controller"] = False
        others = [o for o in answer["objects"] if o["kind"] != "JobSet"]
        assert differences(Answered([job_set, *others]), answer)


def test_a_failing_pair_is_made_small() -> None:
    pair = {"runtime": {"a": [{"b": 1}, {"c": 2}, 3], "d": {}}, "trainJob": {"e": {"f": None}}}

    def still_fails(candidate: Json) -> bool:
        return {"c": 2} in candidate["runtime"].get("a", [])

    before = copy.deepcopy(pair)
    assert minimise(pair, still_fails) == {"runtime": {"a": [{"c": 2}]}, "trainJob": {}}
    assert pair == before
