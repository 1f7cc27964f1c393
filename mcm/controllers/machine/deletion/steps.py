"""The steps of a deletion, and at which one a machine is: read from its last operation."""

from __future__ import annotations

from enum import Enum, auto
from typing import TypeAlias, final

from mcm.api.machine import Machine, MachinePhase
from mcm.controllers.machine.last_operation import Marker, marker_in
from mcm.controllers.runtime import Outcome


@final
class InLine:
    """The step waits for a place of our own, and is woken when there is one: nobody was asked for
    anything yet."""


StepResult: TypeAlias = Machine | Outcome | InLine
"""What a step leads to: the machine with a new marker, or when to try the same step again."""


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
