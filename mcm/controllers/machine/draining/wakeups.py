"""Which drains a change lets go on: pure functions from changes to machines' keys.

Nobody polls: a drain looks again when a pod on its Node went on, when a budget that holds one of
its pods changed what it allows, when volumes on their way did, and when what takes them came.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcm.api.core import Node, Pod, PodDisruptionBudget, VolumeAttachment
from mcm.api.machine import Machine
from mcm.controllers.indexes import machines_on
from mcm.controllers.machine.drains_under_way import DrainsUnderWay
from mcm.drain.pods import is_finished, is_ready
from mcm.drain.volumes import claim_keys_of
from mcm.informers import Change, Store

_SCHEDULED = "PodScheduled"


def of_pod(change: Change[Pod], machines: Store[Machine], drains: DrainsUnderWay) -> Iterator[str]:
    """Yield the machine that drains the pod's Node, if the pod's way out went on, or what budgets
    make of it; and those whose volumes the pod is to take over. ``drains`` are those under way, by
    machine UID."""
    old, new = change.old, change.new
    if change.resync:
        return
    if not (old and new and _way_out(old) == _way_out(new)):
        for machine in machines_on(machines, change.object.spec.node_name):
            meta = machine.metadata
            if meta.deletion_timestamp is not None or meta.uid in drains:
                yield meta.key
    elif drains and _for_budgets(old) != _for_budgets(new):
        for machine in machines_on(machines, new.spec.node_name):
            drain = drains.get(machine.metadata.uid)
            if drain is not None and drain.memory.watched.budgets:
                yield drain.machine_key
    if drains and not (old and new and _place(old) == _place(new)):
        yield from _awaiting_claims(change.object, drains)


def _awaiting_claims(pod: Pod, drains: DrainsUnderWay) -> Iterator[str]:
    for claim in dict.fromkeys(claim_keys_of(pod)):
        for drain in drains.awaiting_claim(claim):
            yield drain.machine_key


def of_budget(change: Change[PodDisruptionBudget], drains: DrainsUnderWay) -> Iterator[str]:
    """Yield the machines whose drains this budget holds back, if it may say something else now."""
    old, new = change.old, change.new
    if change.resync or (old and new and _says(old) == _says(new)):
        return
    for drain in drains.held_by(change.object.metadata.key):
        yield drain.machine_key


def of_freed_budgets(namespace: str, drains: DrainsUnderWay) -> Iterator[str]:
    """Yield the machines whose drains budgets of that namespace hold back: what another drain was
    about to use up is left."""
    for drain in drains.held_in(namespace):
        yield drain.machine_key


def of_attachment(change: Change[VolumeAttachment], drains: DrainsUnderWay) -> Iterator[str]:
    """Yield the machines from whose Nodes that volume is on its way."""
    if change.resync:
        return
    volume = change.object.spec.source.persistent_volume_name
    for drain in drains.awaiting_volume(volume) if volume else ():
        yield drain.machine_key


def of_node(
    change: Change[Node], machines: Store[Machine], drains: DrainsUnderWay
) -> Iterator[str]:
    """Yield the machine of a Node whose volumes on their way went on, as its status tells."""
    old, new = change.old, change.new
    if change.resync or old is None or new is None or _volumes(old) == _volumes(new):
        return
    for machine in machines_on(machines, new.metadata.name):
        drain = drains.get(machine.metadata.uid)
        if drain is not None and drain.memory.watched.volumes:
            yield machine.metadata.key


def _way_out(pod: Pod) -> tuple[object, ...]:
    meta = pod.metadata
    return meta.uid, meta.deletion_timestamp, pod.spec.node_name, is_finished(pod)


def _for_budgets(pod: Pod) -> tuple[object, ...]:
    return pod.metadata.labels, pod.status.phase, is_ready(pod)


def _place(pod: Pod) -> tuple[object, ...]:
    """What of a pod tells whether it takes over a volume."""
    conditions = frozenset(
        (c.status, c.reason) for c in pod.status.conditions if c.type == _SCHEDULED
    )
    meta = pod.metadata
    return meta.uid, meta.deletion_timestamp, pod.spec.node_name, pod.status.phase, conditions


def _says(budget: PodDisruptionBudget) -> tuple[object, ...]:
    status = budget.status
    return budget.metadata.uid, budget.spec, status.observed_generation, status.disruptions_allowed


def _volumes(node: Node) -> tuple[object, ...]:
    return node.status.volumes_attached, node.status.volumes_in_use
