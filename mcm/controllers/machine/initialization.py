"""Is a machine's VM initialised: told by the machine itself, whichever process asks.

No write is spent on it. A machine that has not been Pending yet is not initialised: creation calls
InitializeMachine, which is idempotent, before it writes that phase. Where a creation ends in
another phase, a condition of our own goes into the same write, and out of the one that says that
the VM is ready.
"""

from __future__ import annotations

from datetime import datetime

from mcm.api.machine import Machine, MachinePhase, MachineStatus, OperationType
from mcm.api.names import STATUS_FALSE
from mcm.controllers.machine.last_operation import says_uninitialized
from mcm.controllers.machine.own_conditions import OwnCondition, find_own, with_own, without_own

_REASON = "InitializationPending"
_MESSAGE = (
    "CreateMachine and InitializeMachine have not both succeeded; status.lastOperation says why. "
    "Until they have, the machine does not become Running."
)


def is_initialized(machine: Machine) -> bool:
    """Tell whether InitializeMachine, or a provider that needs none, has done with the VM."""
    return not is_recorded_as_uninitialized(machine) and not _is_being_created(machine)


def is_recorded_as_uninitialized(machine: Machine) -> bool:
    """Tell whether it says so itself, in whatever phase it is.

    The Go original keeps no such condition. That it gave up on a machine before the VM was
    initialised stands only in the text of the last operation.
    """
    recorded = find_own(machine.status, OwnCondition.INITIALIZED)
    if recorded is not None:
        return recorded.status == STATUS_FALSE
    return machine.phase == MachinePhase.FAILED and says_uninitialized(
        machine.status.last_operation
    )


def as_uninitialized(status: MachineStatus, now: datetime) -> MachineStatus:
    """Record that InitializeMachine is still to be called."""
    return with_own(status, OwnCondition.INITIALIZED, STATUS_FALSE, _REASON, _MESSAGE, now)


def as_initialized(status: MachineStatus) -> MachineStatus:
    return without_own(status, OwnCondition.INITIALIZED)


def _is_being_created(machine: Machine) -> bool:
    """One that crashes in a loop for another reason than its creation was initialised before."""
    if machine.phase == MachinePhase.CRASH_LOOP_BACK_OFF:
        return machine.status.last_operation.type in ("", OperationType.CREATE)
    return machine.phase == ""
