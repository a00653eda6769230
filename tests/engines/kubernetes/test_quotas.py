"""What a namespace uses of its quota, of ResourceQuotas as the API server has them."""

from __future__ import annotations

from msgspec import convert

from astrago_trainer.engines.base import Quota
from astrago_trainer.engines.kubernetes.objects import Meta, ResourceQuota
from astrago_trainer.engines.kubernetes.quotas import tightest

GPU = "requests.nvidia.com/gpu"


def a_quota(hard, used, **spec):
    return convert(
        {
            "metadata": {"name": "quota"},
            "spec": {"hard": hard, **spec},
            "status": {"hard": hard, "used": used},
        },
        ResourceQuota,
    )


def test_each_resource_has_its_ceiling_and_its_use():
    found = tightest([a_quota({"requests.memory": "64Gi", GPU: "8"}, {GPU: "3"})])
    assert found == [Quota("requests.memory", "64Gi", "0"), Quota(GPU, "8", "3")]


def test_of_several_quotas_the_one_with_the_least_left_counts():
    wide = a_quota({"requests.cpu": "64", GPU: "4"}, {"requests.cpu": "1500m", GPU: "0"})
    tight = a_quota({"requests.cpu": "8", GPU: "8"}, {"requests.cpu": "7", GPU: "1"})
    expected = [Quota("requests.cpu", "8", "7"), Quota(GPU, "4", "0")]
    assert tightest([wide, tight]) == tightest([tight, wide]) == expected


def test_a_quota_of_some_pods_alone_says_nothing_of_others():
    assert tightest([a_quota({"pods": "1"}, {"pods": "1"}, scopes=["BestEffort"])]) == []
    by_class = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]}
    assert tightest([a_quota({"pods": "1"}, {"pods": "1"}, scopeSelector=by_class)]) == []


def test_a_quota_that_was_just_made_is_not_counted_yet():
    assert tightest([ResourceQuota(Meta("quota"))]) == []
