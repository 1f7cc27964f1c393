"""What an update writes on Nodes: a taint that steers pods off old machines, and annotations that
keep the cluster autoscaler from taking machines away in the middle.

Wanted states follow from the sets alone, so nodes that join late are marked as well and nothing is
written twice. A mark is ours to remove only where we left word that we set it: the set's annotation
for the taint, the ``-by-mcm`` annotation for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from mcm.api.codec import to_json_object
from mcm.api.core import Node, Taint
from mcm.api.machine import Machine, MachineSet
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_PREFER_NO_SCHEDULE,
    ANNOTATION_SCALE_DOWN_DISABLED,
    ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM,
    EFFECT_PREFER_NO_SCHEDULE,
    LABEL_VALUE_TRUE,
    SCALE_DOWN_DISABLED_VALUE,
    TAINT_PREFER_NO_SCHEDULE,
)
from mcm.controllers.replicas.deletion_order import preserved_until

STEERING_TAINT: Final = Taint(
    key=TAINT_PREFER_NO_SCHEDULE, value=LABEL_VALUE_TRUE, effect=EFFECT_PREFER_NO_SCHEDULE
)
_KEPT_FROM_AUTOSCALER: Final = {
    ANNOTATION_SCALE_DOWN_DISABLED: SCALE_DOWN_DISABLED_VALUE,
    ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM: SCALE_DOWN_DISABLED_VALUE,
}


@final
@dataclass(frozen=True, slots=True)
class Wishes:
    """What the nodes of a set should bear; None: whatever they bear is right."""

    tainted: bool | None = None
    kept_from_autoscaler: bool | None = None


def is_marked(machine_set: MachineSet) -> bool:
    """Tell whether the set says that its nodes were tainted."""
    return ANNOTATION_PREFER_NO_SCHEDULE in machine_set.metadata.annotations


def wishes_for(
    machine_set: MachineSet,
    *,
    is_new: bool,
    steering: bool,
    updating: bool,
    complete: bool,
    annotating: bool,
) -> Wishes:
    """Say what the nodes of one set should bear.

    ``steering``: the strategy is one that replaces machines little by little. ``updating``: old
    sets have machines left. ``complete``: nothing is left to do. ``annotating``: the flag.
    """
    tainted = None
    if is_new and is_marked(machine_set):
        tainted = False
    elif not is_new and steering:
        tainted = True
    kept = None
    if annotating and (updating or complete):
        kept = updating
    return Wishes(tainted, kept)


def node_changes(
    wishes: Iterable[tuple[Wishes, Sequence[Machine]]], find: Callable[[str], Node | None]
) -> Iterator[tuple[Node, JSONObject]]:
    """Yield the nodes that bear something else than they should, each with its merge patch."""
    for wish, machines in wishes:
        if wish == Wishes():
            continue
        for machine in machines:
            node = find(machine.node_name) if machine.node_name else None
            if node is not None and (change := _change(wish, machine, node)):
                yield node, change


def _change(wish: Wishes, machine: Machine, node: Node) -> JSONObject:
    change: JSONObject = {}
    annotations = _annotation_change(wish.kept_from_autoscaler, machine, node)
    if annotations:
        change["metadata"] = {"annotations": annotations}
    taints = _taints(wish.tainted, node)
    if taints != node.spec.taints:
        change["spec"] = {"taints": [to_json_object(t) for t in taints] or None}
    return change


def _taints(tainted: bool | None, node: Node) -> tuple[Taint, ...]:
    if tainted is None:
        return node.spec.taints
    ours = (STEERING_TAINT.key, STEERING_TAINT.effect)
    present = [t for t in node.spec.taints if (t.key, t.effect) == ours]
    others = tuple(t for t in node.spec.taints if (t.key, t.effect) != ours)
    if not tainted:
        return others
    if present and present[0].value == STEERING_TAINT.value:
        return node.spec.taints
    return (*others, STEERING_TAINT)


def _annotation_change(kept: bool | None, machine: Machine, node: Node) -> Mapping[str, str | None]:
    present = node.metadata.annotations
    by_us = ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM in present
    disabled = present.get(ANNOTATION_SCALE_DOWN_DISABLED) == SCALE_DOWN_DISABLED_VALUE
    if kept is None or (kept and disabled):
        return {}  # if it is not by us, it is somebody's wish for longer than this update
    if kept:
        return {k: v for k, v in _KEPT_FROM_AUTOSCALER.items() if present.get(k) != v}
    if by_us and preserved_until(machine) is None:
        return {key: None for key in _KEPT_FROM_AUTOSCALER if key in present}
    return {}
