"""Which machines of each deployment are being made, replaced or taken away, kept up to date.

Only those count that a set wants: who is nobody's replica, or on its way out with its set, is
replaced by nobody, and says nothing about whether the deployment copes. Nor do, for machines of
other sets, those that never joined, of a set which says that it cannot get its machines up: they
may move for ever, and are no loss that another one would add to.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import NamedTuple, final

from mcm.api.machine import Machine, MachineSet
from mcm.api.names import ANNOTATION_FAILING_SINCE
from mcm.controllers.machine.health.failure_permit import group_of, is_moving
from mcm.controllers.replicas.deletion_order import is_marked_for_deletion
from mcm.controllers.replicas.joining import has_never_joined
from mcm.informers.change import Change
from mcm.informers.store import Store


def is_wanted(machine: Machine, sets: Store[MachineSet]) -> bool:
    """Tell whether a set wants ``machine`` to be there, and so replaces it when it has Failed."""
    owner = _owner_of(machine)
    return owner is not None and not is_marked_for_deletion(machine) and _wants(sets, owner)


def is_set_wanting(machine_set: MachineSet) -> bool:
    """Tell whether the set wants machines at all."""
    return machine_set.metadata.deletion_timestamp is None and machine_set.spec.replicas > 0


def counts(machine: Machine) -> bool:
    """Tell whether ``machine`` itself is of those that stand in the way of others of its group."""
    if _owner_of(machine) is None or not group_of(machine):
        return False
    return is_moving(machine) and not is_marked_for_deletion(machine)


def is_set_failing(machine_set: MachineSet) -> bool:
    """Tell whether the set says that it cannot get its machines up."""
    return ANNOTATION_FAILING_SINCE in machine_set.metadata.annotations


class _Owner(NamedTuple):
    key: str
    uid: str


def _owner_of(machine: Machine) -> _Owner | None:
    owner = machine.metadata.controller_ref()
    return _Owner(f"{machine.metadata.namespace}/{owner.name}", owner.uid) if owner else None


def _wants(sets: Store[MachineSet], owner: _Owner) -> bool:
    if owner.key in sets.unreadable:
        return True  # it is there; what it wants, nobody can tell
    owning = sets.get(owner.key)
    if owning is None or owning.metadata.uid != owner.uid:
        return False
    return is_set_wanting(owning)


@final
class MovingMachines:
    """Told of every change of a machine by ``note``; asking costs as much as a group has sets."""

    def __init__(self, sets: Store[MachineSet]) -> None:
        self._sets = sets
        self._filed: dict[str, tuple[str, _Owner]] = {}
        self._groups: dict[str, dict[_Owner, set[str]]] = {}
        self._never_joined: set[str] = set()

    def note(self, change: Change[Machine]) -> None:
        """Take in what became of a machine."""
        if change.resync:
            return
        uid, machine = change.object.metadata.uid, change.new
        self._forget(uid)
        owner = _owner_of(machine) if machine is not None else None
        if machine is None or owner is None or not counts(machine):
            return
        group = group_of(machine)
        self._filed[uid] = group, owner
        self._groups.setdefault(group, {}).setdefault(owner, set()).add(uid)
        if has_never_joined(machine):
            self._never_joined.add(uid)

    def in_group_of(self, machine: Machine) -> Collection[str]:
        """Return the UIDs of those that move and stand in the way of ``machine``."""
        owners, own = self._groups.get(group_of(machine), {}), _owner_of(machine)
        wanted = [
            uids if owner == own else self._counting(owner, uids)
            for owner, uids in owners.items()
            if _wants(self._sets, owner)
        ]
        return wanted[0] if len(wanted) == 1 else frozenset(chain.from_iterable(wanted))

    def _counting(self, owner: _Owner, uids: set[str]) -> AbstractSet[str]:
        """Those of another set, without what it makes in vain."""
        owning = self._sets.get(owner.key)
        if owning is None or not is_set_failing(owning):
            return uids
        return uids - self._never_joined

    def groups_of(self, machine_set: MachineSet) -> Sequence[str]:
        """Return the groups in which machines of that set move."""
        owner = _Owner(machine_set.metadata.key, machine_set.metadata.uid)
        return tuple(group for group, owners in self._groups.items() if owner in owners)

    def _forget(self, uid: str) -> None:
        self._never_joined.discard(uid)
        group, owner = self._filed.pop(uid, (None, None))
        if group is None or owner is None:
            return
        owners = self._groups[group]
        owners[owner].discard(uid)
        if not owners[owner]:
            del owners[owner]
        if not owners:
            del self._groups[group]
