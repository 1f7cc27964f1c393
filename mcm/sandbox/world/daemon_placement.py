"""Which Nodes a DaemonSet's pods belong on, and what is to be done about it: pure decisions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

from mcm.api.core import Toleration
from mcm.api.meta import JSONObject
from mcm.api.tolerations import untolerated
from mcm.sandbox.world.kinds import Node, Pod, PodSpec

LABEL_HASH = "controller-revision-hash"

TOLERATED: tuple[Toleration, ...] = tuple(
    Toleration(key=f"node.kubernetes.io/{key}", operator="Exists", effect=effect)
    for key, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("not-ready", "NoSchedule"),
        ("unreachable", "NoSchedule"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)
"""Daemons serve a Node in whatever state it is."""


@final
@dataclass(frozen=True, slots=True)
class DaemonPlan:
    """Nodes that lack their pod, and pods that are in the way."""

    missing: tuple[str, ...]
    surplus: tuple[Pod, ...]


def belongs_on(node: Node, wanted: PodSpec) -> bool:
    """Whether a Node is to run the pod: its selector and its taints decide, nothing else."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in wanted.node_selector.items()):
        return False
    return untolerated(node.spec.taints, (*wanted.tolerations, *TOLERATED)) is None


def plan(eligible: Iterable[str], pods: Sequence[Pod], *, revision: str, rolls: bool) -> DaemonPlan:
    """One pod a Node, of the current ``revision``.

    Where it ``rolls``, pods of another revision are replaced one at a time, the broken ones
    first, and only while all others serve.
    """
    by_node: dict[str, list[Pod]] = {}
    for pod in sorted(pods, key=_merit):
        by_node.setdefault(pod.spec.node_name, []).append(pod)
    nodes = sorted(eligible)
    surplus = [pod for name, there in by_node.items() if name not in nodes for pod in there]
    kept: list[Pod] = []
    for name in nodes:
        there = by_node.get(name, [])
        kept += there[:1]
        surplus += there[1:]
    surplus += [pod for pod in kept if pod.finished]
    missing = tuple(name for name in nodes if not by_node.get(name))
    serving = [pod for pod in kept if pod.active]
    if rolls:
        surplus += _next_outdated(serving, revision, disrupted=len(nodes) - len(serving))
    return DaemonPlan(missing, tuple(pod for pod in surplus if not pod.terminating))


def _next_outdated(serving: Sequence[Pod], revision: str, *, disrupted: int) -> list[Pod]:
    outdated = [pod for pod in serving if pod.metadata.labels.get(LABEL_HASH) != revision]
    broken = [pod for pod in outdated if not pod.ready]
    if broken:
        return broken
    unready = sum(1 for pod in serving if not pod.ready)
    return outdated[:1] if not (disrupted or unready) else []


def _merit(pod: Pod) -> tuple[bool, bool, bool, str]:
    """Sort the pod to keep before its rivals on the same Node."""
    return (pod.terminating, pod.finished, not pod.ready, pod.metadata.name)


def tolerations_of(spec: JSONObject) -> list[object]:
    """Return a template's tolerations with those of every daemon."""
    own = spec.get("tolerations")
    added = [{"key": t.key, "operator": t.operator, "effect": t.effect} for t in TOLERATED]
    return [*(own if isinstance(own, list) else []), *added]
