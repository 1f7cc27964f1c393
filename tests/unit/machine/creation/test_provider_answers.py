from __future__ import annotations

from datetime import datetime

import pytest

from mcm.api.machine import MachinePhase
from mcm.controllers.machine.backoff import Pace
from mcm.controllers.machine.creation import provider_answers
from mcm.controllers.machine.creation.provider_answers import Existence, existence
from mcm.driver import Code, DriverError
from tests.unit.machine.objects import after, machine

EARLY, LATE = after(minutes=1), after(minutes=21)


@pytest.mark.parametrize(
    ("code", "recorded", "expected"),
    [
        (Code.NOT_FOUND, False, Existence.ABSENT),
        (Code.UNIMPLEMENTED, False, Existence.ABSENT),
        (Code.NOT_FOUND, True, Existence.ASSUMED),
        (Code.UNIMPLEMENTED, True, Existence.ASSUMED),
        (Code.UNINITIALIZED, False, Existence.UNINITIALIZED),
        (Code.UNINITIALIZED, True, Existence.UNINITIALIZED),
        (Code.INTERNAL, False, Existence.UNCLEAR),
        (Code.UNAVAILABLE, True, Existence.UNCLEAR),
        (None, False, Existence.UNCLEAR),
    ],
)
def test_a_vm_is_only_made_if_there_certainly_is_none(
    code: Code | None, expected: Existence, *, recorded: bool
) -> None:
    error = DriverError(code, "") if code is not None else None
    assert existence(error, recorded=recorded) is expected


@pytest.mark.parametrize(
    ("code", "pace", "keeps_state"),
    [
        (Code.RESOURCE_EXHAUSTED, Pace.EXHAUSTED, True),
        (Code.UNKNOWN, Pace.TRANSIENT, True),
        (Code.DEADLINE_EXCEEDED, Pace.TRANSIENT, True),
        (Code.ABORTED, Pace.TRANSIENT, True),
        (Code.UNAVAILABLE, Pace.TRANSIENT, True),
        (Code.INVALID_ARGUMENT, Pace.LASTING, False),
        (Code.INTERNAL, Pace.LASTING, False),
        (Code.OUT_OF_RANGE, Pace.LASTING, False),
        (Code.UNAUTHENTICATED, Pace.LASTING, False),
        (None, Pace.LASTING, False),
    ],
)
def test_a_creation_error_shows_its_code_and_decides_the_retry(
    code: Code | None, pace: Pace, *, keeps_state: bool
) -> None:
    error = DriverError(code, "why") if code is not None else None
    failure = provider_answers.on_creation_error(
        machine(known_state="half way"), error, "TEXT", EARLY, late=False
    )
    done = failure.status.last_operation
    assert failure.pace is pace
    assert done.description == "Cloud provider message - TEXT"
    assert done.error_code == (code.text if code is not None else "Unknown")
    assert (done.state, done.type) == ("Failed", "Create")
    assert failure.status.last_known_state == ("half way" if keeps_state else "")


@pytest.mark.parametrize(
    ("now", "late", "phase"),
    [
        (EARLY, False, MachinePhase.CRASH_LOOP_BACK_OFF),
        (LATE, False, MachinePhase.CRASH_LOOP_BACK_OFF),
        (LATE, True, MachinePhase.FAILED),
    ],
)
def test_an_error_within_the_creation_timeout_is_a_crash_loop_and_later_a_failure(
    now: datetime, phase: MachinePhase, *, late: bool
) -> None:
    error = DriverError(Code.INTERNAL, "")
    failure = provider_answers.on_creation_error(machine(), error, "", now, late=late)
    assert failure.status.current_status.phase == phase
    blocked = provider_answers.on_blocked(machine(), "r", now, late=late)
    assert blocked.current_status.phase == phase
    again = provider_answers.on_initialization_error(machine(), error, "", now, late=late)
    assert again.status.current_status.phase == phase


def test_what_the_provider_wants_remembered_is_remembered() -> None:
    error = DriverError(Code.INTERNAL, "", last_known_state="disk made")
    failure = provider_answers.on_creation_error(machine(), error, "", EARLY, late=False)
    assert failure.status.last_known_state == "disk made"


def test_an_error_keeps_the_end_of_a_preservation() -> None:
    kept = machine(preserved=LATE)
    failure = provider_answers.on_creation_error(kept, None, "", EARLY, late=False)
    assert failure.status.current_status.preserve_expiry_time == LATE


def test_a_failed_initialisation_has_its_own_text() -> None:
    error = DriverError(Code.INTERNAL, "")
    failure = provider_answers.on_initialization_error(machine(), error, "T", EARLY, late=False)
    assert failure.status.last_operation.description == "Provider error: T. Initialize VM Instance"
    assert failure.status.last_operation.error_code == "Internal"
    assert failure.pace is Pace.TRANSIENT


def test_a_stale_node_fails_the_machine() -> None:
    status = provider_answers.on_stale_node(machine(), EARLY)
    assert status.last_operation.description == "VM using old node obj"
    assert status.current_status.phase == MachinePhase.FAILED
