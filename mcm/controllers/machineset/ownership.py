"""MachineSets own Machines: what the owning engine must know of the two."""

from __future__ import annotations

from typing import Final

from mcm.api.machine import MACHINE_SETS, MACHINES, Machine, OperationState
from mcm.controllers.owning import Ownership
from mcm.controllers.replicas.held_up_drains import is_held_up, worst_of


def seen_by_set(machine: Machine) -> tuple[object, ...]:
    """Return what a set looks at in a machine. Most of what a machine's own controller writes (the
    steps of its last operation) is not among it, and wakes no set."""
    meta, status = machine.metadata, machine.status
    failed = status.last_operation.state == OperationState.FAILED
    return (
        meta.uid,
        meta.labels,
        meta.annotations,
        meta.owner_references,
        meta.deletion_timestamp,
        machine.spec,
        status.current_status,
        status.last_operation if failed else None,
        worst_of(machine) if is_held_up(machine) else None,
    )


OWNERSHIP: Final = Ownership(
    owner=MACHINE_SETS,
    child=MACHINES,
    selector=lambda machine_set: machine_set.spec.selector,
    noun="machine",
    heeded=seen_by_set,
)
