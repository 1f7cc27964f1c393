"""The creation flow's decisions: what each answer of the provider means for the machine.

``late`` says that the time to create it is over, so that it is given up.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import final

from mcm.api.machine import LastOperation, Machine, MachinePhase, MachineStatus
from mcm.controllers.machine import last_operation, status
from mcm.controllers.machine.backoff import Pace, pace_of
from mcm.controllers.machine.initialization import as_uninitialized
from mcm.driver.codes import Code
from mcm.driver.errors import DriverError

_INITIALIZED_SOON = frozenset({Code.INTERNAL, Code.UNINITIALIZED, Code.RESOURCE_EXHAUSTED})
"""Failures of InitializeMachine that another call may well mend. Exhausted are calls, not VMs."""


class Existence(Enum):
    """What the provider's word about a VM, or the lack of it, comes down to."""

    EXISTS = auto()
    UNINITIALIZED = auto()
    ASSUMED = auto()
    """The provider cannot find it, or cannot tell; but one was recorded, so no second is made."""
    ABSENT = auto()
    UNCLEAR = auto()


def existence(error: DriverError | None, *, recorded: bool) -> Existence:
    """Judge an error of GetMachineStatus. ``recorded``: the machine has a provider ID."""
    match error.code if error else None:
        case Code.UNINITIALIZED:
            return Existence.UNINITIALIZED
        case Code.NOT_FOUND | Code.UNIMPLEMENTED:
            return Existence.ASSUMED if recorded else Existence.ABSENT
        case _:
            return Existence.UNCLEAR


@final
@dataclass(frozen=True, slots=True)
class CreationFailure:
    """What a failed attempt to create leaves: the status to write, and how soon to try again."""

    status: MachineStatus
    pace: Pace
    code: Code


def on_status_error(
    machine: Machine, error: DriverError | None, text: str, now: datetime, *, late: bool
) -> CreationFailure:
    """Judge a GetMachineStatus that leaves open whether there is a VM.

    That there are several (``OUT_OF_RANGE``) ends when the collector of orphans takes the others.
    Exhausted resources are not those of VMs here, but of calls.
    """
    soon = error is not None and (
        error.code.transient or error.code in (Code.OUT_OF_RANGE, Code.RESOURCE_EXHAUSTED)
    )
    pace = Pace.TRANSIENT if soon else Pace.LASTING
    return _creation_failure(machine, error, text, now, late=late, pace=pace)


def on_creation_error(
    machine: Machine, error: DriverError | None, text: str, now: datetime, *, late: bool
) -> CreationFailure:
    """Judge a failed CreateMachine. ``error`` None: only its text is known."""
    return _creation_failure(machine, error, text, now, late=late, pace=pace_of(error))


def skips_initialization(error: DriverError | None) -> bool:
    """Tell whether a failed InitializeMachine lets the creation go on without it."""
    return error is not None and error.code in (Code.NOT_FOUND, Code.UNIMPLEMENTED)


def on_initialization_error(
    machine: Machine, error: DriverError | None, text: str, now: datetime, *, late: bool
) -> CreationFailure:
    """Judge a failed InitializeMachine that must be repeated; that it must is recorded."""
    code = error.code if error else Code.UNKNOWN
    failed = _failed(machine, last_operation.initialization_failed(text, code), now, late=late)
    failed = _with_known_state(as_uninitialized(failed, now), error, keep=True)
    soon = error is not None and (error.code.transient or code in _INITIALIZED_SOON)
    return CreationFailure(failed, Pace.TRANSIENT if soon else Pace.LASTING, code)


def on_blocked(machine: Machine, reason: str, now: datetime, *, late: bool) -> MachineStatus:
    """Say what must be mended before there is anything to ask the provider for."""
    return _failed(machine, last_operation.creation_blocked(reason), now, late=late)


def on_held(machine: Machine, held: LastOperation, now: datetime, *, late: bool) -> MachineStatus:
    """Say that the machine waits as its provider refuses others like it."""
    return _failed(machine, held, now, late=late)


def on_stale_node(machine: Machine, now: datetime) -> MachineStatus:
    """The VM would register as a Node that is there already, and another machine's."""
    done = status.with_operation(machine.status, last_operation.stale_node(), now)
    return as_uninitialized(status.with_phase(done, MachinePhase.FAILED, now), now)


def on_lateness(machine: Machine, now: datetime) -> MachineStatus:
    """It waits for its next attempt, and the time to create it is over."""
    return as_uninitialized(status.with_phase(machine.status, MachinePhase.FAILED, now), now)


def _creation_failure(
    machine: Machine,
    error: DriverError | None,
    text: str,
    now: datetime,
    *,
    late: bool,
    pace: Pace,
) -> CreationFailure:
    code = error.code if error else Code.UNKNOWN
    failed = _failed(machine, last_operation.creation_failed(text, code), now, late=late)
    kept = _with_known_state(failed, error, keep=pace is not Pace.LASTING)
    return CreationFailure(kept, pace, code)


def _failed(machine: Machine, done: LastOperation, now: datetime, *, late: bool) -> MachineStatus:
    """A machine that is given up is out of the phases which tell by themselves that its VM is not
    initialised: it is recorded."""
    phase = MachinePhase.FAILED if late else MachinePhase.CRASH_LOOP_BACK_OFF
    changed = status.with_operation(machine.status, done, now)
    if late:
        changed = as_uninitialized(changed, now)
    return changed if machine.phase == phase else status.with_phase(changed, phase, now)


def _with_known_state(
    failed: MachineStatus, error: DriverError | None, *, keep: bool
) -> MachineStatus:
    if error is not None and error.last_known_state:
        return status.with_known_state(failed, error.last_known_state)
    return failed if keep else status.with_known_state(failed, "")
