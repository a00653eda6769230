"""What the API server's refusals mean to the caller, and which dialect its schema speaks."""

from __future__ import annotations

import pytest

from astrago_trainer.engines.base import EngineRejected, EngineUnavailable
from astrago_trainer.engines.kubernetes.client import (
    AlreadyExists,
    Busy,
    Conflict,
    Expired,
    Forbidden,
    NotFound,
    Refused,
    Status,
    problem,
)
from astrago_trainer.engines.kubernetes.dialect import schema_to_dialect


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", Refused),
        (403, "Forbidden", Refused),
        (404, "NotFound", NotFound),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (410, "Expired", Expired),
        (422, "Invalid", Refused),
        (429, "TooManyRequests", Busy),
        (500, "InternalError", Busy),
        (503, "ServiceUnavailable", Busy),
        (504, "Timeout", Busy),
    ],
)
def test_each_code_is_what_the_caller_does_next(code, reason, kind):
    found = problem(Status("words of the server", reason, code))
    assert type(found) is kind
    assert isinstance(found, EngineRejected | EngineUnavailable)
    assert "words of the server" in str(found)


def test_a_role_that_is_missing_is_no_refusal_of_what_was_asked_for():
    words = 'trainjobs.trainer.kubeflow.org is forbidden: User "system:serviceaccount:a:b" cannot create resource "x"'
    found = problem(Status(words, "Forbidden", 403))
    assert type(found) is Forbidden
    denied = 'trainjobs "a" is forbidden: violates PodSecurity "baseline:latest": hostPath volumes'
    assert type(problem(Status(denied, "Forbidden", 403))) is Refused


def test_who_is_asked_to_wait_knows_how_long():
    found = problem(Status("slow down", "TooManyRequests", 429), "7")
    assert isinstance(found, Busy)
    assert found.after == 7.0


def a_schema(**fields):
    spec = {"properties": fields}
    name = "org.kubeflow.trainer.v1alpha1.TrainJob"
    return {"components": {"schemas": {name: {"properties": {"spec": spec}}}}}


@pytest.mark.parametrize(
    ("schema", "dialect"),
    [
        (a_schema(podTemplateOverrides={}), "2.1"),
        (a_schema(runtimePatches={}), "2.2"),
        (
            a_schema(
                runtimePatches={"items": {"properties": {"terminationGracePeriodSeconds": {}}}}
            ),
            "2.3",
        ),
    ],
)
def test_the_dialect_is_read_off_the_schema(schema, dialect):
    assert schema_to_dialect(schema) == dialect


def test_a_release_that_is_too_old_is_refused():
    with pytest.raises(EngineRejected, match=r"2\.1, 2\.2 or 2\.3 is needed"):
        schema_to_dialect(a_schema(podSpecOverrides={}))
