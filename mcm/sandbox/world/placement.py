"""Where a pod may run, and where it runs best: pure decisions over Nodes and their loads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import final

from mcm.api.core import Taint
from mcm.api.names import EFFECT_NO_SCHEDULE, TAINT_UNSCHEDULABLE
from mcm.api.quantities import parse_quantity
from mcm.api.tolerations import tolerates, untolerated
from mcm.sandbox.world.kinds import Node, Pod, Quantity
from mcm.sandbox.world.storage.scheduling import NO_NEEDS, VolumeNeeds

_PODS = "pods"
_UNSCHEDULABLE = Taint(key=TAINT_UNSCHEDULABLE, effect=EFFECT_NO_SCHEDULE)

Amounts = Mapping[str, Decimal]


@final
@dataclass(frozen=True, slots=True)
class Candidate:
    """A Node, and the pods that run or will run on it."""

    node: Node
    pods: Sequence[Pod] = ()


@final
@dataclass(frozen=True, slots=True)
class Placement:
    """The Node's name; empty if none fits, and then how many Nodes there are to each obstacle, or
    the ``problem`` that keeps the pod off all of them."""

    node_name: str = ""
    obstacles: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""

    @property
    def message(self) -> str:
        """What kubectl shows of a pod that stays Pending."""
        total = sum(self.obstacles.values())
        if self.problem:
            return f"0/{total} nodes are available: {self.problem}."
        reasons = ", ".join(f"{n} {why}" for why, n in sorted(self.obstacles.items()))
        return f"0/{total} nodes are available: {reasons or 'no nodes available'}."


def place(
    pod: Pod, candidates: Iterable[Candidate], volumes: VolumeNeeds = NO_NEEDS, prefer: str = ""
) -> Placement:
    """Choose the Node with the fewest pods of those that take ``pod``, by name among equals; the
    Node that is to be preferred, if it does."""
    if volumes.problem:
        return Placement(obstacles={"": len(list(candidates))}, problem=volumes.problem)
    needs = needs_of(pod)
    best: tuple[bool, int, str] | None = None
    obstacles: Counter[str] = Counter()
    for candidate in candidates:
        why = obstacle(pod, needs, candidate) or volumes.obstacle(candidate.node, candidate.pods)
        if why:
            obstacles[why] += 1
            continue
        name = candidate.node.metadata.name
        rank = (name != prefer, len(candidate.pods), name)
        best = rank if best is None else min(best, rank)
    if best is None:
        return Placement(obstacles=dict(obstacles))
    return Placement(best[2])


def obstacle(pod: Pod, needs: Amounts, candidate: Candidate) -> str:
    """Say why a Node does not take the pod; empty if it does."""
    node = candidate.node
    if node.metadata.deletion_timestamp is not None:
        return "node(s) were being deleted"
    if node.spec.unschedulable and not tolerates(pod.spec.tolerations, _UNSCHEDULABLE):
        return "node(s) were unschedulable"
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return "node(s) didn't match Pod's node affinity/selector"
    barring = untolerated(node.spec.taints, pod.spec.tolerations)
    if barring is not None:
        return f"node(s) had untolerated taint {{{barring.key}: {barring.value}}}"
    if not node.ready:
        return "node(s) were not ready"
    lacking = _lacking(needs, candidate)
    if lacking:
        return "Too many pods" if lacking == _PODS else f"Insufficient {lacking}"
    return ""


def needs_of(pod: Pod) -> Amounts:
    """Sum up what a pod's containers request; every pod takes one of ``pods``."""
    total: dict[str, Decimal] = {_PODS: Decimal(1)}
    for container in pod.spec.containers:
        for name, quantity in container.resources.requests.items():
            total[name] = total.get(name, Decimal(0)) + _amount(quantity)
    return total


def _lacking(needs: Amounts, candidate: Candidate) -> str:
    """Name a resource of which too little is left; a Node that says nothing of one has none."""
    offered = candidate.node.status.allocatable or candidate.node.status.capacity
    used = [needs_of(pod) for pod in candidate.pods] if len(needs) > 1 else []
    for name, need in needs.items():
        if name == _PODS:
            taken = Decimal(len(candidate.pods))
        else:
            taken = sum((u.get(name, Decimal(0)) for u in used), Decimal(0))
        if need and taken + need > _amount(offered.get(name, 0)):
            return name
    return ""


def _amount(quantity: Quantity) -> Decimal:
    """A quantity nobody can read counts as none."""
    try:
        return parse_quantity(quantity if isinstance(quantity, int) else str(quantity))
    except ValueError:
        return Decimal(0)
