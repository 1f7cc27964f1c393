"""What an answer of the provider means for a machine that is being deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from mcm.api.machine import LastOperation
from mcm.controllers.machine import last_operation
from mcm.controllers.machine.backoff import Pace
from mcm.controllers.machine.last_operation import Marker
from mcm.driver.codes import Code
from mcm.driver.errors import DriverError


@final
@dataclass(frozen=True, slots=True)
class Answer:
    """What to record. ``pace`` is None if the flow goes on, else how to try the step again."""

    operation: LastOperation
    pace: Pace | None = None


def on_vm_status_error(error: DriverError | None, text: str) -> Answer:
    """Judge why the VM's status, and with it the Node's name, could not be had.

    ``error`` is None for an exception of which only ``text`` is known.
    """
    if error is None:
        return Answer(last_operation.vm_status_failed(text, decoded=False), Pace.LASTING)
    match error.code:
        case Code.UNIMPLEMENTED:
            return Answer(last_operation.terminating(Marker.DRAIN))
        case Code.NOT_FOUND:
            return Answer(last_operation.vm_not_found_before_drain())
        case Code.UNINITIALIZED:
            return Answer(last_operation.vm_uninitialized_before_drain())
        case Code.OUT_OF_RANGE:
            # Which of several VMs is the machine's will not become clear by waiting: those named
            # after a machine that is being deleted are left alone by the collector of orphans.
            return Answer(last_operation.vm_status_unknowable(text))
        case code if code.transient:
            return Answer(last_operation.vm_status_retry(), Pace.TRANSIENT)
        case _:
            return Answer(last_operation.vm_status_failed(text, decoded=True), Pace.LASTING)


def on_vm_deletion_error(error: DriverError | None, text: str) -> Answer:
    """Judge a failed deletion of the VM; that there is none to delete is a success."""
    if error is None:
        return Answer(last_operation.vm_deletion_undecodable(text), Pace.LASTING)
    if error.code is Code.NOT_FOUND:
        return Answer(last_operation.vm_gone())
    if error.code.transient:
        return Answer(last_operation.vm_deletion_retry(text), Pace.TRANSIENT)
    return Answer(last_operation.vm_deletion_aborted(text), Pace.LASTING)
