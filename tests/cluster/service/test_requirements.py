"""Packages of a job on a cluster: an init container of the job's image installs them before the training."""

from __future__ import annotations


def test_an_init_container_of_the_jobs_image_installs_the_packages(ann):
    """The images of the test cluster have no pip, and the job says so: all before that is as on any cluster."""
    ann.submit("import einops\n", name="job", requirements=["einops"], max_restarts=0)
    ended = ann.wait("job")
    assert ended.phase == "Failed"
    assert "install-requirements" in ended.message
    assert "has no pip; build an image with the packages instead" in ended.message
    (pod,) = ann.space.list("pods")
    init = next(
        each for each in pod["spec"]["initContainers"] if each["name"] == "install-requirements"
    )
    (trainer,) = pod["spec"]["containers"]
    assert init["image"] == trainer["image"]
    assert {"name": "ASTRAGO_REQUIREMENTS", "value": "einops"} in init["env"]
    assert {"name": "astrago-packages", "mountPath": "/astrago"} in init["volumeMounts"]
    ann.delete("job")
