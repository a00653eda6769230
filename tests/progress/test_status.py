"""The Trainer's status contract: what its own server accepts and refuses."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astrago_trainer.core.errors import InvalidRequest, Unreadable
from astrago_trainer.core.render.reporting import status_path, status_variables
from astrago_trainer.core.reserved import find_reserved
from astrago_trainer.progress.points import Point, Progress
from astrago_trainer.progress.status import MAX_BODY, read_status

TIME = "2026-01-31T12:00:00+00:00"
SECONDS = 1769860800.0


def body(**status) -> bytes:
    return json.dumps({"trainerStatus": {"lastUpdatedTime": TIME, **status}}).encode()


def read(data: bytes, received: float = SECONDS + 5):
    return read_status(data, attempt=2, received=received)


def test_what_transformers_sends_becomes_points_and_progress():
    metrics = {
        "loss": 0.5,
        "grad_norm": 1.25,
        "current_step": 50,
        "total_steps": 100,
        "current_epoch": 1.5,
    }
    sent = [{"name": name, "value": str(value)} for name, value in metrics.items()]
    report = read(body(progressPercentage=50, estimatedRemainingSeconds=90, metrics=sent))

    assert report is not None
    assert report.points == [
        Point("loss", 0.5, 50, 1.5, SECONDS, 0, 2),
        Point("grad_norm", 1.25, 50, 1.5, SECONDS, 0, 2),
    ]
    assert report.progress == Progress(0.5, 90.0, SECONDS, step=50, steps=100, epoch=1.5)
    assert report.accepted == {
        "trainerStatus": {
            "progressPercentage": 50,
            "estimatedRemainingSeconds": 90,
            "metrics": sent,
            "lastUpdatedTime": TIME,
        }
    }


def test_values_that_are_no_numbers_are_accepted_and_make_no_point():
    sent = [{"name": "note", "value": "good"}, {"name": "loss", "value": "nan"}]
    report = read(body(metrics=sent))

    assert report is not None
    assert [(point.series, point.value) for point in report.points] == [("loss", None)]
    assert report.accepted["trainerStatus"]["metrics"] == sent


def test_a_time_in_the_future_is_brought_back():
    report = read(body(progressPercentage=1), received=SECONDS - 100)

    assert report is not None
    assert report.progress.time == SECONDS - 100


@pytest.mark.parametrize("data", [b"{}", b'{"trainerStatus": null}', b'{"other": 1}'])
def test_a_body_without_a_status_is_no_error(data):
    assert read(data) is None


@pytest.mark.parametrize(
    ("status", "paths"),
    [
        ({"progressPercentage": 101}, ["progressPercentage"]),
        ({"progressPercentage": -1}, ["progressPercentage"]),
        ({"progressPercentage": 45.0}, ["progressPercentage"]),
        ({"progressPercentage": True}, ["progressPercentage"]),
        ({"estimatedRemainingSeconds": 2**31}, ["estimatedRemainingSeconds"]),
        ({"lastUpdatedTime": None}, ["lastUpdatedTime"]),
        ({"lastUpdatedTime": "2026-01-31 12:00:00Z"}, ["lastUpdatedTime"]),
        ({"lastUpdatedTime": "2026-02-31T12:00:00Z"}, ["lastUpdatedTime"]),
        ({"lastUpdatedTime": "2026-01-31T12:00:00"}, ["lastUpdatedTime"]),
        ({"lastUpdatedTime": 5}, ["lastUpdatedTime"]),
        ({"metrics": {}}, ["metrics"]),
        ({"metrics": [{"name": "x", "value": "1"}] * 257}, ["metrics"]),
        ({"metrics": ["x"]}, ["metrics[0]"]),
        ({"metrics": [{"name": "", "value": "1"}]}, ["metrics[0].name"]),
        ({"metrics": [{"name": "x" * 65, "value": 1}]}, ["metrics[0].name", "metrics[0].value"]),
        (
            {"progressPercentage": "5", "lastUpdatedTime": "x", "metrics": [{"value": "1"}]},
            ["progressPercentage", "lastUpdatedTime", "metrics[0].name"],
        ),
    ],
)  # fmt: skip
def test_everything_that_is_wrong_is_told_at_once(status, paths):
    with pytest.raises(InvalidRequest) as refused:
        read(body(**status))

    assert [problem.path for problem in refused.value.problems] == [
        f"trainerStatus.{path}" for path in paths
    ]


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"\xff", b"{" * 60000, b"[" * 60000, b'{"a": NaN}', b"1" * 5000, b" " * (MAX_BODY + 1)],
    ids=["empty", "list", "bytes", "objects", "deep", "nan", "digits", "large"],
)  # fmt: skip
def test_what_is_no_json_object_is_refused(data):
    with pytest.raises(Unreadable):
        read(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.just(TIME),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from(["trainerStatus", "metrics", "lastUpdatedTime", "name", "value", "progressPercentage"]), inner
    ),
)  # fmt: skip


@given(JSON)
def test_no_body_breaks_it(value):
    for data in (
        value,
        {"trainerStatus": value},
        {"trainerStatus": {"metrics": value, "lastUpdatedTime": TIME}},
    ):
        with suppress(InvalidRequest):
            report = read(json.dumps(data).encode())
            assert report is None or report.accepted["trainerStatus"]["lastUpdatedTime"] == TIME


def test_the_variables_name_the_address_and_files():
    variables = status_variables(
        "https://astrago.example:8443/",
        "team-a",
        "job-1",
        ca_file="/var/run/secrets/kubeflow/trainer/ca.crt",
    )

    assert variables == {
        "KUBEFLOW_TRAINER_SERVER_URL": "https://astrago.example:8443"
        + status_path("team-a", "job-1"),
        "KUBEFLOW_TRAINER_SERVER_TOKEN": "/var/run/secrets/astrago/progress/token",
        "KUBEFLOW_TRAINER_SERVER_CA_CERT": "/var/run/secrets/kubeflow/trainer/ca.crt",
    }
    assert status_path("team-a", "job-1") == (
        "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team-a/trainjobs/job-1/status"
    )


def test_without_a_certificate_there_is_no_variable_for_one():
    variables = status_variables("http://127.0.0.1:8000", "n", "j")

    assert "KUBEFLOW_TRAINER_SERVER_CA_CERT" not in variables
    assert all(find_reserved(name, "pytorch") for name in variables)
