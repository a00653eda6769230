"""A field that the release does not know is an error only for those who ask: otherwise it vanishes."""

from __future__ import annotations

import pytest
from tests.cluster.contract.jobs import a_node, a_runtime, a_trainjob

from builders import an_override, container_of, pod_of


@pytest.fixture
def foreign(version):
    """A TrainJob with the override field of another release, and the name of that field."""
    other = "2.2" if version == "2.1" else "2.1"
    override = an_override({"nodeSelector": {"disk": "ssd"}}, other)
    (field,) = override
    return a_trainjob(suspend=True, **override), field


@pytest.mark.req("M119")
def test_the_override_field_of_another_release_is_refused_when_validation_is_strict(space, foreign):
    space.create(a_runtime(a_node("exit 0")))
    trainjob, field = foreign

    answer = space.try_create(trainjob, "Strict")

    assert answer.code == 400
    assert answer.message.endswith(f'strict decoding error: unknown field "spec.{field}"')


@pytest.mark.req("M119")
@pytest.mark.parametrize("validation", ["Ignore", "Warn", None])
def test_the_override_field_of_another_release_vanishes_otherwise(space, foreign, validation):
    space.create(a_runtime(a_node("exit 0")))
    trainjob, field = foreign

    answer = space.try_create(trainjob, validation or "")
    pod = pod_of(space.until_one("jobsets", "job"))

    assert answer.code == 201
    assert field not in answer.body["spec"]
    assert "nodeSelector" not in pod
    if validation == "Ignore":
        assert answer.warnings == ()
    else:  # who asks for nothing gets a warning, in a header that few clients show
        assert answer.warnings == (f'299 - "unknown field \\"spec.{field}\\""',)


@pytest.mark.req("M128")
@pytest.mark.parametrize("field", ["image", "command", "args", "resources", "ports"])
def test_an_override_cannot_say_more_about_a_container_than_env_and_mounts(space, version, field):
    space.create(a_runtime(a_node("exit 0")))
    override = an_override({"containers": [{"name": "node", field: None}]}, version)

    answer = space.try_create(a_trainjob(**override))

    assert answer.code == 400
    assert "strict decoding error: unknown field" in answer.message
    assert answer.message.endswith(f'containers[0].{field}"')


@pytest.mark.req("M128", "M119")
@pytest.mark.parametrize(
    ("field", "value", "since"),
    [
        ("securityContext", {"runAsUser": 1000}, "2.2"),
        ("terminationGracePeriodSeconds", 60, "2.3"),
    ],
)
def test_later_releases_let_an_override_set_more_of_a_pod(space, version, field, value, since):
    space.create(a_runtime(a_node("exit 0")))

    answer = space.try_create(a_trainjob(suspend=True, **an_override({field: value}, version)))

    if version < since:
        assert answer.code == 400
        assert "strict decoding error: unknown field" in answer.message
    else:
        assert pod_of(space.until_one("jobsets", "job"))[field] == value


@pytest.mark.req("M128", "M119")
def test_from_2_2_on_an_override_can_say_as_whom_a_container_runs(space, version):
    space.create(a_runtime(a_node("exit 0")))
    node = {"name": "node", "securityContext": {"runAsUser": 1000}}

    answer = space.try_create(
        a_trainjob(suspend=True, **an_override({"containers": [node]}, version))
    )

    if version == "2.1":
        assert answer.code == 400
    else:
        container = container_of(space.until_one("jobsets", "job"))
        assert container["securityContext"] == {"runAsUser": 1000}
