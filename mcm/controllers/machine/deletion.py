"""The deletion flow: where a machine is in it, and what an answer of the provider means for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import final

from mcm.api.machine import LastOperation, Machine, MachinePhase
from mcm.controllers.machine import operations
from mcm.controllers.machine.backoff import Pace
from mcm.controllers.machine.operations import Marker, marker_in
from mcm.driver.codes import Code
from mcm.driver.errors import DriverError


class DeletionStep(Enum):
    """What comes next; all but the first are named by a marker in the last operation."""

    BEGIN = auto()
    FIND_NODE = auto()
    DRAIN = auto()
    DETACH_VOLUMES = auto()
    DELETE_VM = auto()
    DELETE_NODE = auto()
    REMOVE_FINALIZER = auto()


def step_of(machine: Machine) -> DeletionStep:
    """Return the step at which to go on. What nobody can place begins anew, which is harmless."""
    if machine.phase != MachinePhase.TERMINATING:
        return DeletionStep.BEGIN
    marker = marker_in(machine.status.last_operation.description)
    return DeletionStep.BEGIN if marker is None else _STEPS[marker]


_STEPS = {
    Marker.FIND_NODE: DeletionStep.FIND_NODE,
    Marker.DRAIN: DeletionStep.DRAIN,
    Marker.DETACH_VOLUMES: DeletionStep.DETACH_VOLUMES,
    Marker.DELETE_VM: DeletionStep.DELETE_VM,
    Marker.DELETE_NODE: DeletionStep.DELETE_NODE,
    Marker.REMOVE_FINALIZER: DeletionStep.REMOVE_FINALIZER,
}


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
        return Answer(operations.vm_status_failed(text, decoded=False), Pace.LASTING)
    match error.code:
        case Code.UNIMPLEMENTED:
            return Answer(operations.terminating(Marker.DRAIN))
        case Code.NOT_FOUND:
            return Answer(operations.vm_not_found_before_drain())
        case Code.UNINITIALIZED:
            return Answer(operations.vm_uninitialized_before_drain())
        case code if code.transient:
            return Answer(operations.vm_status_retry(), Pace.TRANSIENT)
        case _:
            return Answer(operations.vm_status_failed(text, decoded=True), Pace.LASTING)


def on_vm_deletion_error(error: DriverError | None, text: str) -> Answer:
    """Judge a failed deletion of the VM; that there is none to delete is a success."""
    if error is None:
        return Answer(operations.vm_deletion_undecodable(text), Pace.LASTING)
    if error.code is Code.NOT_FOUND:
        return Answer(operations.vm_gone())
    if error.code.transient:
        return Answer(operations.vm_deletion_retry(text), Pace.TRANSIENT)
    return Answer(operations.vm_deletion_aborted(text), Pace.LASTING)
