"""What comes next in an update in place: from the machine and its Node's marks, and nothing else.

The steps are written on the Node (:class:`.Stage`), the phases on the machine. A step that waits
for nobody is followed by the next one at once; each can be found by another process, or be left
behind by the Go original, and is gone on from. The hand-over is confirmed by both sides: the phase
turns to InPlaceUpdateSuccessful only on the node agent's result, and from there to Running only
when that result was taken off the Node by whoever began the update.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias, final

from mcm.api.durations import format_duration
from mcm.api.machine import LastOperation, Machine, MachinePhase, OperationType
from mcm.controllers.in_place_marks import InPlaceMarks, Result, Stage
from mcm.controllers.machine import last_operation
from mcm.controllers.reachability import Reachability

UPDATING = MachinePhase.IN_PLACE_UPDATING
SUCCESSFUL = MachinePhase.IN_PLACE_UPDATE_SUCCESSFUL
FAILED = MachinePhase.IN_PLACE_UPDATE_FAILED
_HELD = (UPDATING, FAILED)
"""Phases that health leaves alone."""
_ELIGIBLE = (MachinePhase.RUNNING, MachinePhase.UNKNOWN, UPDATING, SUCCESSFUL, FAILED)
"""A machine that is being made, is given up or goes is not updated."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """``marks`` is None where there is no Node; ``drained`` if this pass saw the drain's end."""

    machine: Machine
    marks: InPlaceMarks | None
    healthy: Callable[[], bool]
    timeout: timedelta
    now: datetime
    servers: Reachability
    drained: bool = False

    @property
    def eligible(self) -> bool:
        return self.machine.phase in _ELIGIBLE


@final
@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing to do before ``after`` seconds; None: before something happens."""

    after: float | None = None


@final
@dataclass(frozen=True, slots=True)
class Turn:
    """Write on the Node which step is reached; None takes the condition away."""

    stage: Stage | None
    withdrawn: bool = False
    """The update is not wanted any more."""


@final
@dataclass(frozen=True, slots=True)
class Drain:
    """Do one pass of the drain that began at ``start``."""

    start: datetime


@final
@dataclass(frozen=True, slots=True)
class DropResult:
    """Take a result off the Node that belongs to an earlier attempt."""


@final
@dataclass(frozen=True, slots=True)
class Uncordon:
    """Lift the cordon that an update in place set."""


@final
@dataclass(frozen=True, slots=True)
class Enter:
    """Write the machine's phase."""

    phase: MachinePhase
    operation: LastOperation


@final
@dataclass(frozen=True, slots=True)
class Say:
    """Write the machine's last operation and leave the phase alone."""

    operation: LastOperation


Move: TypeAlias = Rest | Turn | Drain | DropResult | Uncordon | Enter | Say


def decide(situation: Situation) -> Move:
    """Return the next move. A machine whose Node bears no marks, and in no phase of an update, is
    at rest."""
    if situation.marks is None:
        return _against_the_clock(situation)
    return _BY_STAGE[situation.marks.stage](situation, situation.marks)


def _not_selected(situation: Situation, marks: InPlaceMarks) -> Move:
    if marks.candidate and marks.stage is None:
        return Turn(Stage.CANDIDATE)
    if marks.stage is Stage.CANDIDATE and not marks.candidate:
        return Turn(None)
    if marks.wanted and situation.eligible:
        return Turn(Stage.SELECTED)
    return _at_rest(situation, marks)


def _at_rest(situation: Situation, marks: InPlaceMarks) -> Move:
    """No update is under way: undo what one has left behind."""
    if marks.cordon_is_ours:
        return Uncordon()
    if situation.machine.phase in _HELD:
        return _back(situation, last_operation.in_place_withdrawn)
    return Rest()


def _back(situation: Situation, text: Callable[[str], LastOperation]) -> Move:
    phase = MachinePhase.RUNNING if situation.healthy() else MachinePhase.UNKNOWN
    return Enter(phase, text(situation.machine.metadata.name))


def _selected(situation: Situation, marks: InPlaceMarks) -> Move:
    machine = situation.machine
    if not marks.wanted:
        return _withdraw(situation, marks)
    if not situation.eligible:
        return Rest()
    if machine.phase == FAILED:
        # Its health timeout must not run while it is drained for another attempt.
        return _back(situation, last_operation.in_place_again)
    if not situation.drained:
        return Drain(marks.since or situation.now)
    if marks.result is not None:
        return DropResult()  # the agent was not asked yet: it speaks of an earlier attempt
    entered = machine.status.current_status.last_update_time
    if machine.phase != UPDATING or _is_before(entered, marks.since):
        return Enter(UPDATING, last_operation.in_place_updating(machine.metadata.name))
    return Turn(Stage.DRAINED)


def _drained(situation: Situation, marks: InPlaceMarks) -> Move:
    """It is drained: see that the machine shows it, let the agent work, and wait for its result."""
    machine = situation.machine
    if marks.result is None and not marks.wanted:
        return _withdraw(situation, marks)
    if situation.eligible and machine.phase not in _HELD:
        return Enter(UPDATING, last_operation.in_place_updating(machine.metadata.name))
    if marks.result is not None:
        return Turn(_OUTCOMES[marks.result])
    if not situation.eligible:
        return Rest()
    if marks.stage is Stage.DRAINED:
        return Turn(Stage.READY)
    return _against_the_clock(situation)


def _successful(situation: Situation, marks: InPlaceMarks) -> Move:
    if marks.result is Result.FAILED:
        return Turn(Stage.FAILED)
    if situation.machine.phase in _HELD:
        name = situation.machine.metadata.name
        return Enter(SUCCESSFUL, last_operation.in_place_updated(name))
    if marks.result is Result.SUCCESSFUL:
        return Rest()  # until whoever began it takes the machine over
    if marks.candidate:
        return Turn(Stage.CANDIDATE)
    return _at_rest(situation, marks)


def _failed(situation: Situation, marks: InPlaceMarks) -> Move:
    machine = situation.machine
    if marks.result is Result.SUCCESSFUL:
        return Turn(Stage.SUCCESSFUL)
    if not marks.wanted:
        return _withdraw(situation, marks)
    if marks.result is None:
        return Turn(Stage.CANDIDATE)  # somebody took the failure away: try again
    if machine.phase in (UPDATING, SUCCESSFUL):
        text = last_operation.in_place_failed(machine.metadata.name, marks.failed_reason)
        return Enter(FAILED, text)
    return Rest()


def _withdraw(situation: Situation, marks: InPlaceMarks) -> Move:
    """Somebody took the wish back. What was done so far is undone once the Node says so."""
    last = situation.machine.status.last_operation
    if last.type == OperationType.DRAIN_NODE:
        return Say(last_operation.in_place_withdrawn(situation.machine.metadata.name))
    return Turn(Stage.CANDIDATE if marks.candidate else None, withdrawn=True)


def _against_the_clock(situation: Situation) -> Move:
    machine, servers, now = situation.machine, situation.servers, situation.now
    if machine.phase != UPDATING:
        return Rest()
    start = machine.status.current_status.last_update_time or now
    if servers.restored_at is not None:
        start = max(start, servers.restored_at)
    left = (start + situation.timeout - now).total_seconds()
    if left > 0:
        return Rest(left)
    if not servers.reachable:
        return Rest()
    timeout = format_duration(situation.timeout)
    return Enter(FAILED, last_operation.in_place_timed_out(machine.metadata.name, timeout))


def _is_before(moment: datetime | None, other: datetime | None) -> bool:
    return moment is not None and other is not None and moment < other


_OUTCOMES = {Result.SUCCESSFUL: Stage.SUCCESSFUL, Result.FAILED: Stage.FAILED}
_BY_STAGE: dict[Stage | None, Callable[[Situation, InPlaceMarks], Move]] = {
    None: _not_selected,
    Stage.CANDIDATE: _not_selected,
    Stage.SELECTED: _selected,
    Stage.DRAINED: _drained,
    Stage.READY: _drained,
    Stage.SUCCESSFUL: _successful,
    Stage.FAILED: _failed,
}
