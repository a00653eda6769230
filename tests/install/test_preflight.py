"""What would leave the server without its volume or its image is found before anything is applied."""

from __future__ import annotations

import pytest

from astrago_trainer.install.manifests import IMAGE, Installation
from astrago_trainer.install.preflight import DEFAULT_CLASS, Ground, check_ground


def a_class(name: str, *, default: bool = False):
    annotations = {DEFAULT_CLASS: "true"} if default else {}
    return {"metadata": {"name": name, "annotations": annotations}}


def a_node(*images: str):
    return {"status": {"images": [{"names": [each]} for each in images]}}


FAST = a_class("fast", default=True)
BOUND = {"status": {"phase": "Bound"}}


@pytest.mark.parametrize(
    ("ground", "options", "said"),
    [
        (Ground([FAST]), {}, ""),
        (Ground([]), {}, "no storage class"),
        (Ground([]), {"storage": "none"}, ""),
        (Ground([]), {"storage_class": ""}, ""),
        (Ground([], claim=BOUND), {}, ""),
        (Ground(None), {}, ""),
        (Ground([a_class("slow")]), {}, "--storage-class slow"),
        (Ground([a_class("slow")]), {"storage_class": "slow"}, ""),
        (Ground([FAST]), {"storage_class": "slow"}, "no storage class 'slow'; it has fast"),
    ],
)
def test_a_claim_gets_a_volume_or_the_installation_is_refused(ground, options, said):
    wanted = Installation(image="r/a:1", **options)
    problems = check_ground(ground, wanted, is_image_named=True)
    text = " ".join(f"{each.message} {each.remedy}" for each in problems)
    assert bool(problems) is bool(said)
    assert said in text
    assert not problems or "--storage none" in text


def test_an_image_that_nobody_published_is_refused_unless_it_is_named_or_on_a_node():
    ground = Ground([FAST], [a_node("busybox:1")])
    (problem,) = check_ground(ground, Installation(), is_image_named=False)
    assert problem.path == "--image"
    assert IMAGE in problem.message
    assert "docker build -t REGISTRY/astrago-trainer:" in problem.remedy
    assert "--image REGISTRY/astrago-trainer:" in problem.remedy
    assert check_ground(ground, Installation(), is_image_named=True) == []
    assert check_ground(ground, Installation(image="r/a:1"), is_image_named=False) == []
    for name in (IMAGE, f"docker.io/library/{IMAGE}"):
        there = Ground([FAST], [a_node("busybox:1"), a_node(name)])
        assert check_ground(there, Installation(), is_image_named=False) == []
