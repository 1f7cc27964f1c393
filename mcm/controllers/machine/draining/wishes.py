"""What people want of a drain under way, as its machine and its Node say it, and when it changes.

A pass that still waits for answers to what it has asked before ends then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mcm.api.core import Node
from mcm.api.machine import Machine
from mcm.api.meta import ObjectMeta
from mcm.api.names import (
    ANNOTATION_NOT_MANAGED_BY_MCM,
    ANNOTATION_PRESERVE,
    ANNOTATION_TRIGGER_DELETION,
    LABEL_CANDIDATE_FOR_UPDATE,
    LABEL_FORCE_DELETION,
    LABEL_FORCE_DRAIN,
    LABEL_SELECTED_FOR_UPDATE,
)
from mcm.controllers.indexes import machines_on
from mcm.controllers.machine.drains_under_way import Drain
from mcm.informers import Change, Store

_LABELS = (
    LABEL_FORCE_DELETION,
    LABEL_FORCE_DRAIN,
    LABEL_CANDIDATE_FOR_UPDATE,
    LABEL_SELECTED_FOR_UPDATE,
)
_ANNOTATIONS = (ANNOTATION_PRESERVE, ANNOTATION_NOT_MANAGED_BY_MCM, ANNOTATION_TRIGGER_DELETION)


def wish_on_machine(machine: Machine) -> tuple[object, ...]:
    """Return all that people may say about its drain; nothing that a drain itself writes."""
    spec = machine.spec
    return (
        _wish(machine.metadata),
        spec.drain_timeout,
        spec.max_evict_retries,
        spec.machine_preserve_timeout,
        spec.in_place_update_timeout,
    )


def changed_on_machine(change: Change[Machine], drains: Mapping[str, Drain]) -> Iterator[Drain]:
    """Yield the drain of the machine, if anything else is wanted of it now. ``drains`` are those
    under way, by machine UID."""
    drain = drains.get(change.object.metadata.uid)
    if drain is None:
        return
    old, new = change.old, change.new
    if old is None or new is None or wish_on_machine(old) != wish_on_machine(new):
        yield drain


def changed_on_node(
    change: Change[Node], machines: Store[Machine], drains: Mapping[str, Drain]
) -> Iterator[Drain]:
    """Yield the drains of the Node, if anything else is wanted of it now, or it is gone."""
    old, new = change.old, change.new
    if old is not None and new is not None and _wish(old.metadata) == _wish(new.metadata):
        return
    for machine in machines_on(machines, change.object.metadata.name):
        drain = drains.get(machine.metadata.uid)
        if drain is not None:
            yield drain


def _wish(meta: ObjectMeta) -> tuple[object, ...]:
    return (
        meta.uid,
        meta.deletion_timestamp,
        *(meta.labels.get(label) for label in _LABELS),
        *(meta.annotations.get(annotation) for annotation in _ANNOTATIONS),
    )
