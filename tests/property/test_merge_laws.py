"""Laws of the merge on generated pairs: what holds whatever a runtime and a TrainJob say."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astrago_trainer.core.errors import Problem
from astrago_trainer.core.merge import VERSIONS, compile_runtime, merge
from astrago_trainer.core.preview import preview_pair
from oracle.generate import pairs

versions = pytest.mark.parametrize("version", VERSIONS)
some = settings(max_examples=60, deadline=None)


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def shuffled(value: Any, chance: random.Random) -> Any:
    """The same JSON with the keys of every mapping in another order."""
    if isinstance(value, dict):
        keys = list(value)
        chance.shuffle(keys)
        return {key: shuffled(value[key], chance) for key in keys}
    if isinstance(value, list):
        return [shuffled(item, chance) for item in value]
    return value


def leaves(value: Any, pointer: str = "") -> list[str]:
    if isinstance(value, dict) and value:
        steps = ((key.replace("~", "~0").replace("/", "~1"), item) for key, item in value.items())
    elif isinstance(value, (list, tuple)) and value:
        steps = ((str(index), item) for index, item in enumerate(value))
    else:
        return [pointer] if pointer else []
    return [leaf for step, item in steps for leaf in leaves(item, f"{pointer}/{step}")]


@versions
def test_inputs_are_never_changed(version):
    @some
    @given(pairs(version))
    def law(pair):
        before = copy.deepcopy(pair)
        merge(pair["runtime"], pair["trainJob"], version)
        preview_pair(pair["runtime"], pair["trainJob"], version)
        assert pair == before

    law()


@versions
def test_the_same_input_gives_the_same_bytes_whatever_the_order_of_keys(version):
    @some
    @given(pairs(version), st.randoms(use_true_random=False))
    def law(pair, chance):
        other = shuffled(pair, chance)
        one, two = (merge(p["runtime"], p["trainJob"], version) for p in (pair, other))
        assert canonical(one.objects) == canonical(two.objects)
        assert canonical(one.provenance) == canonical(two.provenance)
        assert sorted(map(str, one.problems)) == sorted(map(str, two.problems))
        shown = [preview_pair(p["runtime"], p["trainJob"], version) for p in (pair, other)]
        assert json.dumps(shown[0].objects) == json.dumps(shown[1].objects)
        assert json.dumps(shown[0].provenance) == json.dumps(shown[1].provenance)

    law()


@versions
def test_every_leaf_has_exactly_one_origin(version):
    @some
    @given(pairs(version))
    def law(pair):
        merged = merge(pair["runtime"], pair["trainJob"], version)
        assert sorted(merged.provenance) == sorted(leaves(merged.objects))
        assert all(merged.provenance.values())
        shown = preview_pair(pair["runtime"], pair["trainJob"], version)
        assert sorted(shown.provenance) == sorted(leaves(shown.objects))

    law()


@versions
def test_a_runtime_compiled_once_serves_any_number_of_jobs(version):
    @some
    @given(pairs(version))
    def law(pair):
        compiled = compile_runtime(pair["runtime"], version)
        fresh = merge(pair["runtime"], pair["trainJob"], version)
        for _ in range(2):
            again = merge(compiled, pair["trainJob"], version)
            assert canonical(again.objects) == canonical(fresh.objects)
            assert again.problems == fresh.problems
            assert again.provenance == fresh.provenance

    law()


@versions
def test_an_empty_request_yields_the_template(version):
    @some
    @given(pairs(version))
    def law(pair):
        runtime = pair["runtime"]
        name = (
            (runtime.get("metadata") or {}).get("name", "")
            if isinstance(runtime.get("metadata"), dict)
            else ""
        )
        empty = {
            "metadata": {"name": "job", "namespace": "team-a"},
            "spec": {
                "runtimeRef": {
                    "name": name,
                    "kind": runtime.get("kind"),
                    "apiGroup": "trainer.kubeflow.org",
                }
            },
        }
        merged = merge(runtime, empty, version)
        if merged.objects:
            origins = {merged.provenance[pointer] for pointer in leaves(merged.objects)}
            assert not any(origin.startswith(("override", "spec.")) for origin in origins)

    law()


@versions
def test_an_override_alters_nothing_outside_the_pods_it_targets(version):
    @some
    @given(pairs(version))
    def law(pair):
        merged = merge(pair["runtime"], pair["trainJob"], version)
        for pointer, origin in merged.provenance.items():
            if origin.startswith("override"):
                assert pointer.startswith(
                    ("/0/spec/replicatedJobs/", "/0/metadata/labels", "/0/metadata/annotations")
                )

    law()


@versions
def test_a_reserved_variable_is_reported_and_never_kept(version):
    reserved = (
        "PET_NNODES",
        "PET_NODE_RANK",
        "PET_MASTER_ADDR",
        "PET_MASTER_PORT",
        "PET_NPROC_PER_NODE",
    )

    @some
    @given(pairs(version), st.sampled_from(reserved))
    def law(pair, name):
        spec = pair["trainJob"].get("spec")
        trainer = spec.get("trainer") if isinstance(spec, dict) else None
        policy = (
            (pair["runtime"].get("spec") or {}).get("mlPolicy")
            if isinstance(pair["runtime"].get("spec"), dict)
            else None
        )
        if (
            not isinstance(trainer, dict)
            or not isinstance(policy, dict)
            or policy.get("torch") is None
        ):
            return
        trainer["env"] = [{"name": name, "value": "mine"}]
        trainer["numProcPerNode"] = 1  # without it 2.1 lets the variable pass
        assert merge(pair["runtime"], pair["trainJob"], version).problems

    law()


@versions
@given(
    data=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=20,
    )
)
@settings(max_examples=150, deadline=None)
def test_arbitrary_json_gets_problems_and_never_an_exception(version, data):
    runtime = {"metadata": {"name": "rt"}, "spec": data}
    trainjob = {"metadata": {"name": "job"}, "spec": data}
    for pair in (
        (runtime, trainjob),
        (data, data) if isinstance(data, dict) else (runtime, trainjob),
    ):
        outcome = preview_pair(*pair, version)
        assert all(isinstance(problem, Problem) and problem.message for problem in outcome.problems)
        merge(*pair, version)
