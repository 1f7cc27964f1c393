"""Which sets a change concerns: pure functions from changes to keys, from the store alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcm.api.machine import MACHINE_SETS, Machine, MachineSet, OperationState
from mcm.api.meta import ObjectMeta
from mcm.api.selectors import is_empty, matches
from mcm.informers import Change, Store


def sets_of_machine_change(change: Change[Machine], sets: Store[MachineSet]) -> Iterable[str]:
    """Return the keys of the sets that a machine belongs to, belonged to, or could belong to.

    Changes that no set looks at (most writes of a machine's own controller) concern none.
    """
    old, new = change.old, change.new
    if change.resync or (old and new and _seen_by_set(old) == _seen_by_set(new)):
        return ()
    keys = dict.fromkeys(_owner_keys(old.metadata, sets) if old else ())
    if new is not None:
        keys |= dict.fromkeys(_owner_keys(new.metadata, sets))
        if new.metadata.controller_ref() is None:
            keys |= dict.fromkeys(_selecting(new.metadata, sets))
    return keys


def set_of_own_change(change: Change[MachineSet]) -> Iterable[str]:
    """Return the set's own key, unless its status is all that changed: only we write that."""
    old, new = change.old, change.new
    if old and new and not change.resync and _wanted(old) == _wanted(new):
        return ()
    return (change.object.metadata.key,)


def _owner_keys(machine: ObjectMeta, sets: Store[MachineSet]) -> Iterator[str]:
    ref = machine.controller_ref()
    if ref is None or ref.kind != MACHINE_SETS.kind:
        return
    key = f"{machine.namespace}/{ref.name}"
    owner = sets.get(key)
    if owner is not None and owner.metadata.uid == ref.uid:
        yield key


def _selecting(orphan: ObjectMeta, sets: Store[MachineSet]) -> Iterator[str]:
    for machine_set in sets.list(orphan.namespace):
        selector = machine_set.spec.selector
        if not is_empty(selector) and matches(selector, orphan.labels):
            yield machine_set.metadata.key


def _seen_by_set(machine: Machine) -> tuple[object, ...]:
    meta, status = machine.metadata, machine.status
    failed = status.last_operation.state == OperationState.FAILED
    return (
        meta.uid,
        meta.labels,
        meta.annotations,
        meta.owner_references,
        meta.deletion_timestamp,
        machine.spec,
        status.current_status.phase,
        status.current_status.preserve_expiry_time,
        status.last_operation if failed else None,
    )


def _wanted(machine_set: MachineSet) -> tuple[object, ...]:
    meta = machine_set.metadata
    return (
        meta.uid,
        meta.labels,
        meta.annotations,
        meta.owner_references,
        meta.finalizers,
        meta.deletion_timestamp,
        meta.generation,
        machine_set.spec,
    )
