"""Whether a machine has ever joined its cluster, and whether its coming up fails."""

from __future__ import annotations

from typing import Final

from mcm.api.machine import LastOperation, Machine, MachinePhase, OperationState, OperationType
from mcm.api.names import CONDITION_NODE_READY, STATUS_TRUE
from mcm.driver.codes import Code

_ON_THEIR_WAY: Final = frozenset({"", MachinePhase.PENDING, MachinePhase.CRASH_LOOP_BACK_OFF})


def has_never_joined(machine: Machine) -> bool:
    """Tell whether ``machine`` certainly never served: its end costs nobody anything.

    One that was given up says by its last operation whether it was while it came up. Of one that
    leaves, which says something else by then, only a Node's word of readiness is left.
    """
    phase = machine.phase
    if phase in _ON_THEIR_WAY:
        return True
    if phase not in (MachinePhase.TERMINATING, MachinePhase.FAILED):
        return False
    ready = [c for c in machine.status.conditions if c.type == CONDITION_NODE_READY]
    if phase == MachinePhase.TERMINATING:
        return not ready
    return _failed_to_create(machine.status.last_operation) and not any(
        c.status == STATUS_TRUE for c in ready
    )


def fails_to_come_up(machine: Machine) -> bool:
    """Tell whether ``machine`` was given up, or is refused for a reason that time does not mend."""
    if machine.phase == MachinePhase.FAILED:
        return True
    return machine.phase == MachinePhase.CRASH_LOOP_BACK_OFF and not _may_pass(
        machine.status.last_operation.error_code
    )


def _may_pass(code: str) -> bool:
    """No code at all is no provider's: something here has to be mended first."""
    return bool(code) and Code.from_text(code).transient


def _failed_to_create(done: LastOperation) -> bool:
    return done.type == OperationType.CREATE and done.state == OperationState.FAILED
