from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import NodeAddress
from mcm.api.machine import LastOperation, Machine, MachinePhase, MachineStatus
from mcm.controllers.machine import last_operation, status
from mcm.controllers.machine.last_operation import Marker
from mcm.driver import Code
from tests.unit.machine.objects import BORN, NOT_READY, READY, after, machine

NOW = datetime(2026, 1, 1, 0, 1, 2, 345678, tzinfo=UTC)


def merged(target: object, patch: object) -> object:
    """RFC 7396, the reference."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def test_a_write_says_only_what_changes_and_to_whom() -> None:
    before = machine(phase="Pending", operation=last_operation.creating(), conditions=(READY,))
    wanted = status.with_phase(before.status, MachinePhase.RUNNING, NOW)
    assert status.patch_of(before, wanted) == {
        "metadata": {"uid": "uid-m", "resourceVersion": "7"},
        "status": {"currentStatus": {"phase": "Running", "lastUpdateTime": "2026-01-01T00:01:02Z"}},
    }


def test_no_change_is_no_write() -> None:
    subject = machine(phase="Running", conditions=(READY,))
    assert status.patch_of(subject, subject.status) is None


def test_times_are_whole_seconds_so_that_they_equal_themselves_read_back() -> None:
    wanted = status.with_operation(machine().status, last_operation.creating(), NOW)
    assert wanted.last_operation.last_update_time == NOW.replace(microsecond=0)
    read = msgspec.json.decode(msgspec.json.encode(wanted), type=MachineStatus)
    assert read == wanted


def test_an_error_code_does_not_outlive_its_error() -> None:
    failed = machine(operation=last_operation.creation_failed("e", Code.INTERNAL))
    wanted = status.with_operation(failed.status, last_operation.creating(), NOW)
    patch = status.patch_of(failed, wanted)
    assert patch is not None
    changes = patch["status"]
    assert isinstance(changes, dict)
    assert changes["lastOperation"]["errorCode"] is None


def test_a_preservation_ends_with_termination_and_not_before() -> None:
    kept = machine(phase="Failed", preserved=after(hours=9)).status
    running = status.with_phase(kept, MachinePhase.RUNNING, NOW)
    assert running.current_status.preserve_expiry_time == after(hours=9)
    going = status.with_phase(kept, MachinePhase.TERMINATING, NOW)
    assert going.current_status.preserve_expiry_time is None


def test_addresses_are_a_sorted_union() -> None:
    b, a = NodeAddress(type="InternalIP", address="b"), NodeAddress(type="Hostname", address="a")
    once = status.with_addresses(MachineStatus(), [b, a, b])
    assert once.addresses == (a, b)
    assert status.with_addresses(once, [a]) == once


phases = st.sampled_from(list(MachinePhase))
texts = st.sampled_from(["", "Initiate VM deletion", "Cloud provider message - x", "é"])
machines = st.builds(
    machine,
    phase=phases,
    operation=st.builds(LastOperation, description=texts, state=texts, error_code=texts),
    conditions=st.sampled_from([(), (READY,), (NOT_READY, READY)]),
    since=st.sampled_from([None, BORN]),
    known_state=texts,
)


@given(before=machines, wanted=machines)
def test_applying_the_patch_gives_the_wanted_status(before: Machine, wanted: Machine) -> None:
    patch = status.patch_of(before, wanted.status)
    stored = msgspec.to_builtins(before.status)
    result = merged(stored, patch["status"]) if patch else stored
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(result)), MachineStatus) == (
        wanted.status
    )


def said(operation: LastOperation, minutes: float = 0, **more: str) -> MachineStatus:
    return status.with_operation(machine(**more).status, operation, after(minutes=minutes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ("request 12345 failed", "request 67890 failed", True),
        ("request 1 failed", "request 1 failed", True),
        (
            "request 0e8f5f3c-9f5e-4c7e-8f1e-5a2f9a1b2c3d failed",
            "request 1b2c3d4e-0000-4111-8222-abcdefabcdef failed",
            True,
        ),
        ("quota used up", "credentials are wrong", False),
        ("instance i-0abc123def456 busy", "instance i-9fff000aaa111 busy", True),
    ],
)
def test_what_differs_in_numbers_only_is_a_repetition(
    before: str, now: str, *, expected: bool
) -> None:
    old = said(last_operation.vm_deletion_retry(before))
    new = said(last_operation.vm_deletion_retry(now), 5)
    assert status.is_repetition(old, new) is expected


def test_what_was_said_half_an_hour_ago_is_said_again() -> None:
    old, again = said(last_operation.drain_failed("e")), last_operation.drain_failed("e")
    assert status.is_repetition(old, said(again, 29.9))
    assert not status.is_repetition(old, said(again, 30))


def test_without_a_time_nothing_is_a_repetition() -> None:
    assert not status.is_repetition(MachineStatus(), said(last_operation.creating()))


LONG = "x" * 900


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (last_operation.drain_failed(LONG), last_operation.drain_failed_but_forced(LONG)),
        (last_operation.vm_deletion_retry(LONG), last_operation.vm_deletion_aborted(LONG)),
        (
            last_operation.creation_failed(LONG, Code.INTERNAL),
            last_operation.creation_failed(LONG, Code.ABORTED),
        ),
        (last_operation.terminating(Marker.DRAIN), last_operation.terminating(Marker.DELETE_VM)),
    ],
)
def test_marker_state_and_code_are_never_swallowed_however_long_the_text(
    old: LastOperation, new: LastOperation
) -> None:
    assert not status.is_repetition(said(old), said(new, 1))


def test_phase_and_known_state_are_never_swallowed() -> None:
    old = said(last_operation.creation_failed("e", Code.INTERNAL), phase="CrashLoopBackOff")
    failed = said(last_operation.creation_failed("e", Code.INTERNAL), 1, phase="Failed")
    known = said(
        last_operation.creation_failed("e", Code.INTERNAL),
        1,
        phase="CrashLoopBackOff",
        known_state="s",
    )
    assert not status.is_repetition(old, failed)
    assert not status.is_repetition(old, known)


@given(st.sampled_from(list(Marker)), st.sampled_from(list(Marker)), st.text(max_size=50))
def test_two_markers_are_never_a_repetition(one: Marker, two: Marker, text: str) -> None:
    first = LastOperation(description=f"{text} {one}", state="Processing", type="Delete")
    second = LastOperation(description=f"{text} {two}", state="Processing", type="Delete")
    assert status.is_repetition(said(first), said(second, 1)) is (one is two)


def test_the_window_is_half_an_hour() -> None:
    assert timedelta(minutes=30) == status.REPETITION_WINDOW
