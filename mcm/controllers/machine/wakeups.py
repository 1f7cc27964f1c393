"""Which machines a change concerns: pure functions from changes to keys, from the stores alone.

What wakes a drain is in :mod:`.draining.wakeups`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcm.api.core import Node, Secret
from mcm.api.machine import Machine, MachineClass, MachineSet
from mcm.controllers.indexes import (
    classes_using,
    machines_of_class,
    machines_of_provider_id,
    machines_on,
)
from mcm.controllers.machine.flow import needs_creation
from mcm.controllers.machine.health.failure_permit import group_of, is_moving, waiting_in
from mcm.controllers.machine.health.moving_machines import (
    MovingMachines,
    counts,
    is_set_failing,
    is_set_wanting,
)
from mcm.controllers.machine.health.waiting_line import WaitingLine
from mcm.controllers.machine.hot_update.need import is_unfinished
from mcm.controllers.machine.node.matching import machine_keys_of
from mcm.controllers.node_ownership import NodeOwners, is_managed, whose
from mcm.informers import Change, Store


def of_machine(change: Change[Machine], line: WaitingLine) -> Iterator[str]:
    """Yield the machine itself and, once it has come to rest, who is next to be given up."""
    if change.resync:
        return
    yield change.object.metadata.key
    old, new = change.old, change.new
    if old is not None and _stands_aside(old, new):
        yield from line.next_of(group_of(old))


def _stands_aside(old: Machine, new: Machine | None) -> bool:
    """Tell whether a machine that moved does so no more, or is nobody's replica any more."""
    if new is None:
        return is_moving(old)
    return (is_moving(old) and not is_moving(new)) or (counts(old) and not counts(new))


def of_set(
    change: Change[MachineSet], machines: Store[Machine], moving: MovingMachines
) -> Iterator[str]:
    """Yield the machines that waited for those of a set which wants them no more, or says by now
    that it cannot get them up."""
    old, new = change.old, change.new
    if old is None or not is_set_wanting(old):
        return
    wanting = new is not None and is_set_wanting(new)
    gave_up = new is not None and is_set_failing(new) and not is_set_failing(old)
    if wanting and not gave_up:
        return
    for group in moving.groups_of(old):
        for machine in waiting_in(machines, group):
            yield machine.metadata.key


def of_node(change: Change[Node], machines: Store[Machine], namespace: str) -> Iterable[str]:
    """Return the node's machines, unless nothing that a machine's controller looks at changed."""
    old, new = change.old, change.new
    if change.resync or (old and new and _seen(old) == _seen(new)):
        return ()
    keys = dict.fromkeys(key for n in (old, new) if n for key in _concerned(n, machines, namespace))
    return tuple(keys)


def of_node_change_of_machine(change: Change[Machine], owners: NodeOwners) -> Iterator[str]:
    """Yield the other machines whose Node it may be, now that one names another Node or VM."""
    old, new = change.old, change.new
    if change.initial or change.resync or (old and new and _claim(old) == _claim(new)):
        return
    for machine in (old, new):
        if machine is not None:
            for rival in owners.rivals(machine):
                yield rival.metadata.key


def losing_node(change: Change[Node], machines: Store[Machine]) -> Iterator[Machine]:
    """Yield the machine whose Node object was deleted under it by this change."""
    gone = change.old
    if change.new is not None or gone is None or not is_managed(gone):
        return
    machines_left = (
        machine
        for machine in _related(gone, machines)
        if machine.metadata.deletion_timestamp is None
    )
    if (owner := whose(gone, machines_left).owner) is not None:
        yield owner


def of_class(change: Change[MachineClass], machines: Store[Machine]) -> Iterator[str]:
    """Yield the machines that wait for the class; all of it if their Nodes or VMs must change."""
    if change.initial or change.resync:
        return
    everyone = _what_all_have(change.old) != _what_all_have(change.new)
    for machine in machines_of_class(machines, change.object.metadata.key):
        if everyone or _waits_for_provider(machine):
            yield machine.metadata.key


def of_secret(
    change: Change[Secret], classes: Store[MachineClass], machines: Store[Machine]
) -> Iterator[str]:
    """Yield the machines that wait for something the secret's classes may now be able to do."""
    if change.initial or change.resync:
        return
    for class_ in classes_using(classes, change.object.metadata.key):
        for machine in machines_of_class(machines, class_.metadata.key):
            if _waits_for_provider(machine):
                yield machine.metadata.key


def _related(node: Node, machines: Store[Machine]) -> tuple[Machine, ...]:
    return (
        *machines_on(machines, node.metadata.name),
        *machines_of_provider_id(machines, node.spec.provider_id),
    )


def _concerned(node: Node, machines: Store[Machine], namespace: str) -> tuple[str, ...]:
    return machine_keys_of(node, _related(node, machines), namespace)


def _claim(machine: Machine) -> tuple[object, ...]:
    meta = machine.metadata
    going = meta.deletion_timestamp is not None
    return meta.uid, machine.node_name, machine.spec.provider_id, going


def _seen(node: Node) -> tuple[object, ...]:
    meta = node.metadata
    return (
        meta.uid,
        meta.labels,
        meta.annotations,
        meta.finalizers,
        meta.deletion_timestamp,
        node.spec,
        node.status.conditions,
        node.status.capacity,
    )


def _what_all_have(class_: MachineClass | None) -> object:
    """Return what of a class is brought to the machines that exist already."""
    if class_ is None:
        return None
    template = class_.node_template
    return class_.provider_spec, template.virtual_capacity if template else None


def _waits_for_provider(machine: Machine) -> bool:
    going = machine.metadata.deletion_timestamp is not None
    return going or needs_creation(machine) or is_unfinished(machine)
