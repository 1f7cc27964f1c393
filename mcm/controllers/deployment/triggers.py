"""Which deployments a change concerns: pure functions from changes to keys, out of the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcm.api.machine import MACHINE_DEPLOYMENTS, MachineDeployment, MachineSet
from mcm.api.meta import ObjectMeta
from mcm.api.selectors import is_empty, matches
from mcm.informers import Change, Store


def deployments_of_set_change(
    change: Change[MachineSet], deployments: Store[MachineDeployment]
) -> Iterable[str]:
    """Return the keys of the deployments that a set belongs to, belonged to, or could belong to.

    Machines need no way of their own to a deployment: whatever counts of them shows in the status
    of their set.
    """
    old, new = change.old, change.new
    if change.resync:
        return ()
    keys = dict.fromkeys(_owner_keys(old.metadata, deployments) if old else ())
    if new is not None:
        keys |= dict.fromkeys(_owner_keys(new.metadata, deployments))
        if new.metadata.controller_ref() is None and _may_be_adopted(old, new):
            keys |= dict.fromkeys(_selecting(new.metadata, deployments))
    return keys


def deployment_of_own_change(change: Change[MachineDeployment]) -> Iterable[str]:
    """Return its own key, unless the status is all that changed: only we write that."""
    old, new = change.old, change.new
    if old and new and not change.resync and _wanted(old) == _wanted(new):
        return ()
    return (change.object.metadata.key,)


def _may_be_adopted(old: MachineSet | None, new: MachineSet) -> bool:
    """An orphan is offered when it appears, loses its owner, or is labelled anew."""
    if old is None or old.metadata.labels != new.metadata.labels:
        return True
    return old.metadata.owner_references != new.metadata.owner_references


def _owner_keys(machine_set: ObjectMeta, deployments: Store[MachineDeployment]) -> Iterator[str]:
    ref = machine_set.controller_ref()
    if ref is None or ref.kind != MACHINE_DEPLOYMENTS.kind:
        return
    key = f"{machine_set.namespace}/{ref.name}"
    owner = deployments.get(key)
    if owner is not None and owner.metadata.uid == ref.uid:
        yield key


def _selecting(orphan: ObjectMeta, deployments: Store[MachineDeployment]) -> Iterator[str]:
    for deployment in deployments.list(orphan.namespace):
        selector = deployment.spec.selector
        if not is_empty(selector) and matches(selector, orphan.labels):
            yield deployment.metadata.key


def _wanted(deployment: MachineDeployment) -> tuple[object, ...]:
    meta = deployment.metadata
    return (
        meta.uid,
        meta.labels,
        meta.annotations,
        meta.finalizers,
        meta.deletion_timestamp,
        meta.generation,
        deployment.spec,
    )
