"""How much of its quota a namespace uses. Pure: ResourceQuotas to plain data."""

from __future__ import annotations

from collections.abc import Iterable

from astrago_trainer.engines.base import Quota
from astrago_trainer.engines.kubernetes.nodes import number_of
from astrago_trainer.engines.kubernetes.objects import ResourceQuota


def tightest(found: Iterable[ResourceQuota]) -> list[Quota]:
    """One for each resource: where several quotas count it, the one with the least left, for this one refuses first.

    A quota with scopes counts some pods alone, and says nothing of the others.
    """
    least: dict[str, tuple[float, Quota]] = {}
    for each in found:
        if each.spec.scopes or each.spec.scope_selector:
            continue
        for resource, hard in each.status.hard.items():
            used = each.status.used.get(resource, "0")
            left = number_of(hard) - number_of(used)
            if resource not in least or left < least[resource][0]:
                least[resource] = left, Quota(resource, hard, used)
    return [quota for _, (_, quota) in sorted(least.items())]
