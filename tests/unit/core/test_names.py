"""Names of objects: the rules of Trainer and JobSet, and the mapping from users to namespaces."""

from __future__ import annotations

import pytest

from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.core.names import (
    check_namespace,
    check_trainjob_name,
    check_user_id,
    code_configmap_name,
    job_name,
    job_name_from_key,
    job_runtime_name,
    max_trainjob_name,
    pod_address,
    pod_fqdn,
    pod_hostname,
    tenant_namespace,
)

NOW = "20251105130000"


@pytest.mark.req("M17", "X2")
def test_a_job_is_called_after_its_user_and_the_time() -> None:
    assert job_name("user123", NOW) == "user123-job-20251105130000"


@pytest.mark.req("X2")
def test_a_second_job_in_the_same_second_gets_a_suffix() -> None:
    assert job_name("user123", NOW, "b7") == "user123-job-20251105130000-b7"


@pytest.mark.req("M122")
def test_the_longest_user_id_fills_the_name_exactly() -> None:
    name = job_name("u" * 29, NOW)
    assert name == "u" * 29 + "-job-20251105130000"
    assert len(name) == 48


@pytest.mark.parametrize(
    ("user_id", "limit", "expected"),
    [
        pytest.param("u" * 29, 47, f"{'u' * 19}-421c7e86-job-{NOW}", id="room for 11 nodes"),
        pytest.param("Jürgen Ö", 48, f"j-rgen-330de851-job-{NOW}", id="no ASCII"),
        pytest.param("42", 48, f"u42-c93050b1-job-{NOW}", id="digits"),
        pytest.param("", 48, f"uba768b33-job-{NOW}", id="empty"),
    ],
)
def test_other_user_ids_are_shortened_with_a_hash(user_id: str, limit: int, expected: str) -> None:
    assert job_name(user_id, NOW, limit=limit) == expected
    assert check_trainjob_name(expected, limit=limit) == []


@pytest.mark.parametrize("now", ["2025-11-05", "", "2025110513000", "2025110513000x"])
def test_a_time_of_another_form_is_a_mistake_of_the_caller(now: str) -> None:
    with pytest.raises(ValueError, match="YYYYMMDDhhmmss"):
        job_name("user123", now)


def test_a_suffix_must_not_break_the_name() -> None:
    with pytest.raises(ValueError, match="lower-case"):
        job_name("user123", NOW, "A_")


def test_the_same_key_gives_the_same_name() -> None:
    name = job_name_from_key("user123", "key-1")
    assert name == job_name_from_key("user123", "key-1") == "user123-job-4a0e3401ef1ae5"
    assert name != job_name_from_key("user123", "key-2")
    assert name != job_name_from_key("user124", "key-1").replace("user124", "user123")


@pytest.mark.req("M14", "M42", "X4")
def test_the_code_has_the_users_name_or_that_and_a_hash() -> None:
    assert code_configmap_name("user123") == "user123-train-script"
    assert code_configmap_name("user123", "0123456789abcdef") == "user123-train-script-0123456789"


def test_a_jobs_own_runtime_is_called_after_it() -> None:
    assert job_runtime_name("t5-large") == "t5-large-runtime"


@pytest.mark.req("M122")
@pytest.mark.parametrize(
    ("replicated_jobs", "expected"),
    [
        pytest.param([("node", 1)], 48, id="one node"),
        pytest.param([("node", 10)], 48, id="10 nodes"),
        pytest.param([("node", 11)], 47, id="11 nodes"),
        pytest.param([("node", 100)], 47, id="100 nodes"),
        pytest.param([("node", 101)], 46, id="101 nodes"),
        pytest.param([("node", 1000)], 46, id="1000 nodes"),
        pytest.param([("launcher", 1), ("node", 2)], 44, id="MPI"),
        pytest.param([("model-initializer", 1), ("node", 1)], 35, id="model initializer"),
        pytest.param([("dataset-initializer", 1), ("node", 9)], 33, id="dataset initializer"),
        pytest.param([("node", 0)], 48, id="no pods count as one"),
        pytest.param([], 63, id="no replicated job"),
    ],
)
def test_a_name_leaves_room_for_the_names_of_its_pods(
    replicated_jobs: list[tuple[str, int]], expected: int
) -> None:
    assert max_trainjob_name(replicated_jobs) == expected
    name = "x" * expected
    for rjob, count in replicated_jobs:
        assert len(f"{name}-{rjob}-0-{max(count, 1) - 1}-abcde") <= 63


@pytest.mark.req("M26", "M132", "M13", "M123")
def test_pods_are_found_under_these_names() -> None:
    assert pod_hostname("ddp1", 1) == "ddp1-node-0-1"
    assert pod_hostname("ddp1", 0, replicated_job="launcher") == "ddp1-launcher-0-0"
    assert pod_address("ddp1", 0) == "ddp1-node-0-0.ddp1"
    assert pod_fqdn("J", "NS", 2) == "J-node-0-2.J.NS.svc.cluster.local"


@pytest.mark.req("M5")
@pytest.mark.parametrize(
    ("user_id", "namespace"),
    [
        pytest.param("user123", "user-123", id="the example of the guide"),
        pytest.param("alice", "alice", id="a plain name"),
        pytest.param("team-a", "team-a", id="a label"),
        pytest.param("a1b2", "a1b2", id="digits inside"),
        pytest.param("user-123", "user-123--0caabb98a2356df1b7ad", id="another's namespace"),
        pytest.param("a--b", "a-b--97a9665f72b178bb7596", id="two dashes"),
        pytest.param("Alice", "alice--8ed1ad0e39f707897922", id="upper case"),
        pytest.param(
            "alice@example.org", "alice-example-org--98d89c193405eec3e474", id="an address"
        ),
        pytest.param("", "u--ba768b331fd86cec803b", id="empty"),
        pytest.param("김철수", "u--631d17e44831bf636433", id="no ASCII at all"),
    ],
)
def test_a_user_has_a_namespace(user_id: str, namespace: str) -> None:
    assert tenant_namespace(user_id) == namespace
    assert check_namespace(namespace) == []


@pytest.mark.parametrize(
    "user_id",
    ["kube-system", "kube1", "kubeflow", "kubeflow-user", "astrago-x", "default", "Kube-System"],
)
def test_reserved_namespaces_are_nobodys(user_id: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        tenant_namespace(user_id)
    assert [(p.path, p.code) for p in caught.value.problems] == [("user", "FieldValueForbidden")]


@pytest.mark.req("M121", "M17")
@pytest.mark.parametrize(
    ("name", "codes"),
    [
        pytest.param("t5-large", [], id="valid"),
        pytest.param("a", [], id="one letter"),
        pytest.param("x" * 48, [], id="as long as may be"),
        pytest.param("x" * 49, ["FieldValueTooLong"], id="one too long"),
        pytest.param("1job", ["FieldValueInvalid"], id="begins with a digit"),
        pytest.param("Job", ["FieldValueInvalid"], id="upper case"),
        pytest.param("job-", ["FieldValueInvalid"], id="ends with a dash"),
        pytest.param("job.x", ["FieldValueInvalid"], id="dot"),
        pytest.param("job\n", ["FieldValueInvalid"], id="new line at the end"),
        pytest.param("", ["FieldValueInvalid"], id="empty"),
        pytest.param("X" * 64, ["FieldValueInvalid", "FieldValueTooLong"], id="both"),
    ],
)
def test_names_follow_trainers_rule(name: str, codes: list[str]) -> None:
    assert [problem.code for problem in check_trainjob_name(name)] == codes


@pytest.mark.req("M122")
def test_an_over_long_user_id_is_told_the_limit() -> None:
    (problem,) = check_user_id("u" * 30)
    assert problem.path == "user"
    assert problem.message == f"must have at most 29 characters; found 30: {'u' * 30!r}."


def test_an_upper_case_user_id_is_offered_another() -> None:
    (problem,) = check_user_id("User_123")
    assert problem.remedy == "For example user-123."


@pytest.mark.parametrize(
    ("namespace", "codes"),
    [
        pytest.param("user-123", [], id="valid"),
        pytest.param("1a", [], id="may begin with a digit"),
        pytest.param("kubeflow-system", [], id="seeds run samples there"),
        pytest.param("kube-system", ["FieldValueForbidden"], id="the cluster's own"),
        pytest.param("a/../b", ["FieldValueInvalid"], id="path"),
        pytest.param("n" * 64, ["FieldValueTooLong"], id="too long"),
    ],
)
def test_namespaces_follow_kubernetes_rule(namespace: str, codes: list[str]) -> None:
    assert [problem.code for problem in check_namespace(namespace)] == codes
