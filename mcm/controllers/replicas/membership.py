"""What a set counts: which of its machines leave, failed, or move in after an in-place update."""

from __future__ import annotations

from mcm.api.machine import Machine, MachinePhase
from mcm.api.names import LABEL_UPDATE_RESULT, UPDATE_RESULT_SUCCESSFUL


def is_terminating(machine: Machine) -> bool:
    """On its way out: it holds a VM still, but is no replica any more."""
    return (
        machine.metadata.deletion_timestamp is not None or machine.phase == MachinePhase.TERMINATING
    )


def is_failed(machine: Machine) -> bool:
    return machine.phase == MachinePhase.FAILED and not is_terminating(machine)


def is_pinned(machine: Machine) -> bool:
    """Updated in place and just moved into this set, whose size has not caught up yet: it is never
    surplus."""
    return machine.metadata.labels.get(LABEL_UPDATE_RESULT) == UPDATE_RESULT_SUCCESSFUL
