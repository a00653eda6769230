"""Nodes under a job's pods that do not answer, or are gone, in words. Pure.

A node that falls silent changes nothing in its pods: as far as their status goes they run. So the node itself is looked
at, and a job that is told of as running says where nobody knows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.engines.kubernetes.objects import Node, Pod
from astrago_trainer.engines.kubernetes.pods import has_ended, index_of, label_of
from astrago_trainer.engines.kubernetes.waiting import Why

_MOST_NAMED = 5
"""Nodes, and ranks of each, that a sentence names; the others are counted."""
_TAKEN_OFF = (
    "If it does not come back soon, the cluster takes them off it, and they start on another node"
)
_BEFORE_RUNNING = (Phase.PENDING, Phase.PULLING, Phase.INITIALIZING)


class Absence(NamedTuple):
    """What is the matter with a node."""

    reason: str
    """`NodeNotReady`, `NodeLost`."""
    words: str
    """What it does: `does not answer`."""
    remedy: str


NONE: Mapping[str, Absence] = {}


def absence_of(node: Node) -> Absence | None:
    """None when it is ready, or so new that it has not said anything yet."""
    for each in node.status.conditions:
        if each.type == "Ready" and not each.is_true:
            words = "does not answer"
            if each.status == "False":
                words = f"is not ready: {each.message or each.reason}"
            return Absence("NodeNotReady", words, _TAKEN_OFF)
    return None


def is_stranded(pod: Pod, node: Node | None) -> bool:
    """Whether it is to go, and nobody on its node hears of it.

    A node that is not ready, but says so, ends its pods by itself; the pods of one that was removed the cluster ends.
    """
    if pod.metadata.deletion_timestamp is None or node is None:
        return False
    return any(each.type == "Ready" and each.status == "Unknown" for each in node.status.conditions)


def absences(pods: Iterable[Pod], find: Callable[[str], Node | None]) -> dict[str, Absence]:
    """By name, of the nodes that these pods are on; `find` knows all nodes of the cluster."""
    found: dict[str, Absence | None] = {}
    for pod in pods:
        name = pod.spec.node_name
        if not name or name in found or has_ended(pod):
            continue
        node = find(name)
        if node is not None:
            found[name] = absence_of(node)
        elif pod.status.phase == "Running":
            # One that has just got its pod may come later on the watch of nodes than on that of pods.
            remedy = "The cluster removes its pods by itself, within a minute or two"
            found[name] = Absence("NodeLost", "is no longer in the cluster", remedy)
    return {name: each for name, each in found.items() if each is not None}


def with_absence(why: Why, pods: Iterable[Pod], absent: Mapping[str, Absence]) -> Why:
    """Comes before a mere wait, and after what is known to have failed or to be wanted."""
    if not absent:
        return why
    there: dict[str, list[Pod]] = {}
    for pod in sorted(pods, key=index_of):
        if pod.spec.node_name in absent and not has_ended(pod):
            there.setdefault(pod.spec.node_name, []).append(pod)
    if not there:
        return why
    named = sorted(there)[:_MOST_NAMED]
    told = [_words(name, absent[name], there[name]) for name in named]
    if len(there) > len(named):
        told.append(f"{len(there) - len(named)} more nodes are absent")
    words = ". ".join(told)
    if why.reason and why.phase not in _BEFORE_RUNNING:
        return Why(why.phase, why.reason, f"{why.message}; {words}")
    more = f". {why.message}" if why.message else ""
    return Why(why.phase, absent[named[0]].reason, f"{words}{more}")


def _words(name: str, absence: Absence, pods: Sequence[Pod]) -> str:
    ranks = [label_of(pod) for pod in pods[:_MOST_NAMED]]
    if len(pods) > len(ranks):
        ranks.append(f"{len(pods) - len(ranks)} more")
    return f"node {name} {absence.words}; on it: {', '.join(ranks)}. {absence.remedy}"
