"""From which Nodes a volume can be reached: its node affinity and its zone labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mcm.api.selectors import DOES_NOT_EXIST, EXISTS, GREATER, IN, LESS, NOT_IN
from mcm.sandbox.world.kinds import (
    Node,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
)

ZONE = "topology.kubernetes.io/zone"
_TOPOLOGY_LABELS = (
    ZONE,
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
_SEVERAL = "__"


def reachable(volume: PersistentVolume, node: Node) -> bool:
    """Tell whether the volume's node affinity admits the Node: one term must hold entirely."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return any(_holds(term, node) for term in affinity.required.node_selector_terms)


def in_zone(volume: PersistentVolume, node: Node) -> bool:
    """Tell whether the Node lies where the volume's labels put it. A Node that does not say where
    it lies is anywhere; a volume may lie in several places (``a__b``)."""
    for key in _TOPOLOGY_LABELS:
        place = node.metadata.labels.get(key)
        places = volume.metadata.labels.get(key)
        if place is not None and places is not None and place not in places.split(_SEVERAL):
            return False
    return True


def _holds(term: NodeSelectorTerm, node: Node) -> bool:
    """A term that says nothing holds for no Node."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node.metadata.name}
    return all(_satisfied(r, node.metadata.labels) for r in term.match_expressions) and all(
        _satisfied(r, fields) for r in term.match_fields
    )


def _satisfied(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    values = requirement.values
    match requirement.operator:
        case op if op == IN:
            return value in values
        case op if op == NOT_IN:
            return value not in values
        case op if op == EXISTS:
            return value is not None
        case op if op == DOES_NOT_EXIST:
            return value is None
        case op if op == GREATER:
            return _compared(value, values, lambda left, right: left > right)
        case op if op == LESS:
            return _compared(value, values, lambda left, right: left < right)
    return False


def _compared(
    value: str | None, values: tuple[str, ...], holds: Callable[[int, int], bool]
) -> bool:
    try:
        return value is not None and len(values) == 1 and holds(int(value), int(values[0]))
    except ValueError:
        return False
