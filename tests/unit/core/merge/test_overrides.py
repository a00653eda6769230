"""Strategic merge: which entry wins, which order comes out, and that the origin of each is known."""

from __future__ import annotations

import pytest

from astrago_trainer.core.merge import merge
from builders import a_container, a_job, a_patch, a_runtime, a_trainjob, an_override, env_of, pod_of

VERSIONS = ("2.1", "2.2", "2.3")


def merged(runtime, trainjob, version="2.1"):
    outcome = merge(runtime, trainjob, version)
    assert outcome.problems == ()
    return outcome.objects[0]


@pytest.mark.req("M129")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        pytest.param(
            ["a", "b"], ["c"], ["c", "a", "b"], id="a new entry comes before the untouched ones"
        ),
        pytest.param(["a", "b", "c"], ["b"], ["a", "b", "c"], id="a known entry keeps its place"),
        pytest.param(
            ["a", "b", "c"], ["c", "a"], ["b", "c", "a"], id="known entries take the patch's order"
        ),
        pytest.param(
            ["a", "b"],
            ["b", "x"],
            ["a", "b", "x"],
            id="a new entry follows the known one before it",
        ),
        pytest.param(
            ["a", "b"],
            ["x", "b"],
            ["x", "a", "b"],
            id="and precedes what stands before the known one",
        ),
    ],
)
def test_lists_merge_in_the_order_of_the_real_patch(version, mine, theirs, expected):
    runtime = a_runtime(a_job(pod={"volumes": [{"name": n, "emptyDir": {}} for n in mine]}))
    override = an_override({"volumes": [{"name": n, "emptyDir": {}} for n in theirs]}, version)

    volumes = pod_of(merged(runtime, a_trainjob(trainer={}, **override), version))["volumes"]

    assert [volume["name"] for volume in volumes] == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_tolerations_replace_while_node_selectors_add_up(version):
    pod = {
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "nodeSelector": {"zone": "a", "disk": "ssd"},
    }
    change = {"tolerations": [{"key": "b", "operator": "Exists"}], "nodeSelector": {"zone": "b"}}

    result = pod_of(
        merged(
            a_runtime(a_job(pod=pod)),
            a_trainjob(trainer={}, **an_override(change, version)),
            version,
        )
    )

    assert result["tolerations"] == [{"key": "b", "operator": "Exists"}]
    assert result["nodeSelector"] == {"zone": "b", "disk": "ssd"}


@pytest.mark.req("M129")
def test_a_value_over_a_reference_keeps_both():
    init = a_container(
        "setup", env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    )
    override = an_override(
        {"initContainers": [{"name": "setup", "env": [{"name": "A", "value": "1"}]}]}
    )

    result = pod_of(
        merged(a_runtime(a_job(pod={"initContainers": [init]})), a_trainjob(trainer={}, **override))
    )

    entry = result["initContainers"][0]["env"][0]
    assert entry == {
        "name": "A",
        "value": "1",
        "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
    }


def test_later_overrides_win_over_earlier_ones():
    overrides = [
        {
            "targetJobs": [{"name": "node"}],
            "spec": {"serviceAccountName": "first", "nodeSelector": {"a": "1"}},
        },
        {"targetJobs": [{"name": "node"}], "spec": {"serviceAccountName": "second"}},
    ]
    outcome = merge(a_runtime(), a_trainjob(trainer={}, podTemplateOverrides=overrides), "2.1")

    pod = pod_of(outcome.objects[0])
    base = "/0/spec/replicatedJobs/0/template/spec/template/spec"
    assert (pod["serviceAccountName"], pod["nodeSelector"]) == ("second", {"a": "1"})
    assert outcome.provenance[f"{base}/serviceAccountName"] == "override 1"
    assert outcome.provenance[f"{base}/nodeSelector/a"] == "override 0"


@pytest.mark.req("M128")
def test_a_mistyped_container_passes_admission_and_has_no_image():
    override = an_override(
        {"containers": [{"name": "nod", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]}
    )

    result = pod_of(merged(a_runtime(), a_trainjob(trainer={}, **override)))

    assert [(c["name"], c.get("image")) for c in result["containers"]] == [
        ("nod", None),
        ("node", "img"),
    ]


@pytest.mark.req("M119")
def test_the_override_field_of_another_version_is_dropped_as_the_api_would():
    pod = {"serviceAccountName": "mine"}

    for version, other in (("2.1", "2.3"), ("2.2", "2.1"), ("2.3", "2.1")):
        result = pod_of(
            merged(a_runtime(), a_trainjob(trainer={}, **an_override(pod, other)), version)
        )
        assert "serviceAccountName" not in result


@pytest.mark.parametrize("version", ["2.2", "2.3"])
def test_patches_label_the_job_set_and_its_jobs(version):
    patch = a_patch({"nodeSelector": {"a": "1"}})
    patch["trainingRuntimeSpec"]["template"]["metadata"] = {"labels": {"team": "x"}}

    job_set = merged(a_runtime(), a_trainjob(trainer={}, runtimePatches=[patch]), version)

    assert job_set["metadata"]["labels"] == {"team": "x"}


def test_trainer_env_keeps_its_place_and_new_ones_follow():
    runtime = a_runtime(
        a_job(pod={"containers": [a_container(env=[{"name": "A", "value": "0"}, {"name": "B"}])]})
    )
    trainer = {"env": [{"name": "NEW", "value": "n"}, {"name": "A", "value": "1"}]}

    env = env_of(pod_of(merged(runtime, a_trainjob(trainer=trainer)))["containers"][0])

    assert list(env)[:3] == ["A", "B", "NEW"]
    assert env["A"] == "1"
    assert list(env)[3:] == [
        "PET_NNODES",
        "PET_NPROC_PER_NODE",
        "PET_NODE_RANK",
        "PET_MASTER_ADDR",
        "PET_MASTER_PORT",
    ]
