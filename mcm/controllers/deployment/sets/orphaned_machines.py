"""Machines which a deployment selects, but no set owns nor will adopt; and whom they concern.

An old set deleted with ``--cascade=orphan`` in the middle of a rollout leaves such machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcm.api.machine import Machine, MachineDeployment, MachineSet
from mcm.api.selectors import is_empty, matches
from mcm.controllers.deployment.fleet import OWNERSHIP
from mcm.controllers.owning import orphans_for
from mcm.controllers.owning.claims import same_bonds
from mcm.controllers.owning.triggers import selecting
from mcm.controllers.replicas.membership import is_terminating
from mcm.informers import Change
from mcm.informers.store import Store


def orphaned_machines(
    deployment: MachineDeployment, sets: Store[MachineSet], machines: Store[Machine]
) -> Sequence[Machine]:
    """Return them, but for those that are being deleted; costs as much as there are orphans."""
    namespace = deployment.metadata.namespace
    orphans = orphans_for(machines, deployment.spec.selector, namespace)
    staying = [machine for machine in orphans if not is_terminating(machine)]
    if not staying:
        return ()
    adopting = [s for s in sets.list(namespace) if s.metadata.deletion_timestamp is None]
    return tuple(m for m in staying if not any(_adopts(s, m) for s in adopting))


def _adopts(machine_set: MachineSet, machine: Machine) -> bool:
    selector = machine_set.spec.selector
    if selector is None or is_empty(selector):
        return False
    return matches(selector, machine.metadata.labels)


def concerned_by_orphan(
    change: Change[Machine], deployments: Store[MachineDeployment]
) -> Iterable[str]:
    """Return the keys of the deployments that select a machine which is, or was, an orphan."""
    old, new = change.old, change.new
    if change.resync or (old and new and same_bonds(old.metadata, new.metadata)):
        return ()
    orphans = (m for m in (old, new) if m is not None and m.metadata.controller_ref() is None)
    return dict.fromkeys(k for m in orphans for k in selecting(OWNERSHIP, m.metadata, deployments))
