"""Packages of a job: an init container in a runtime of its own."""

from __future__ import annotations

import pytest

from astrago_trainer.core.errors import InvalidRequest
from unit.core.builders import a_platform, a_spec
from unit.core.render.common import a_render, trainer_of


def test_packages_are_installed_by_an_init_container_of_the_jobs_image() -> None:
    platform = a_platform(requirements_script="install")
    rendered = a_render(
        name="mnist", image="team/image:1", requirements=["numpy>=2", "einops"], platform=platform
    )

    (pod,) = (
        job["template"]["spec"]["template"]["spec"]
        for job in rendered.runtime["spec"]["template"]["spec"]["replicatedJobs"]
    )
    init = pod["initContainers"][-1]
    assert init["name"] == "install-requirements"
    assert init["image"] == "team/image:1"
    assert init["command"] == ["sh", "-c", "install"]
    assert init["env"] == [{"name": "ASTRAGO_REQUIREMENTS", "value": "numpy>=2\neinops"}]
    assert {"name": "astrago-packages", "emptyDir": {}} in pod["volumes"]
    mount = {"name": "astrago-packages", "mountPath": "/astrago"}
    assert mount in init["volumeMounts"]
    assert {**mount, "readOnly": True} in pod["containers"][0]["volumeMounts"]
    assert 'export PATH="/astrago/packages/bin:$PATH"' in trainer_of(rendered)["command"][2]
    assert rendered.trainjob["spec"]["runtimeRef"]["name"] == "mnist-runtime"
    assert "requirements" in rendered.runtime_sources.values()


def test_a_job_without_packages_keeps_the_runtime() -> None:
    rendered = a_render(requirements=[])
    assert rendered.trainjob["spec"]["runtimeRef"]["name"] == "pytorch-simple"
    assert "/astrago" not in trainer_of(rendered)["command"][2]


def test_a_requirements_file_is_taken_as_it_is() -> None:
    text = "# for the model\nnumpy>=2  # newer than 1\n\n  einops \nlib @ https://example.org/lib.whl#sha256=ab\n"
    spec = a_spec(requirements=text)
    assert spec.requirements == (
        "numpy>=2",
        "einops",
        "lib @ https://example.org/lib.whl#sha256=ab",
    )


@pytest.mark.parametrize(
    "line", ["-e .", "--index-url https://x", "../path", "/path", "a\x00b", "$(HOME)", "x" * 501]
)
def test_options_paths_and_control_characters_are_refused(line: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        a_spec(requirements=["numpy", line])
    assert [problem.path for problem in refused.value.problems] == ["requirements[1]"]
