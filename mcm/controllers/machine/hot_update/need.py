"""Whether a machine's VM must be updated, as the hot-update proposal says (spec: 2.3).

Its edge cases are those of an update that may have been applied in part when its class is changed
back to what was applied last. The proposal tells them by the last operation; whoever writes another
one there, as health does, must not hide them, so what is in flight is in an annotation as well.
"""

from __future__ import annotations

from mcm.api.machine import Machine, OperationState, OperationType
from mcm.controllers.machine.hot_update.record import WantedSpec, is_applied, is_in_flight
from mcm.driver.codes import Code


def needs_update(machine: Machine, wanted: WantedSpec) -> bool:
    """Tell whether the VM is not, or may not be, as ``wanted`` says."""
    return not is_applied(machine, wanted) or is_unfinished(machine)


def is_unfinished(machine: Machine) -> bool:
    """Tell whether an update was begun, or tried in vain, and no later one has succeeded.

    A provider that has no such verb touched nothing: that one is finished.
    """
    if is_in_flight(machine):
        return True
    last = machine.status.last_operation
    return (
        last.type == OperationType.UPDATE
        and last.state in (OperationState.PROCESSING, OperationState.FAILED)
        and last.error_code != Code.UNIMPLEMENTED.text
    )
