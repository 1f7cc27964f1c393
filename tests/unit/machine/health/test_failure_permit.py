from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.machine import Machine, MachinePhase
from mcm.controllers.machine.health.failure_permit import FailurePermits, group_of, is_moving
from tests.unit.machine.objects import BORN, after, machine

UNKNOWN = MachinePhase.UNKNOWN


def no_wakes() -> FailurePermits:
    return FailurePermits(wake=lambda _: None)


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (machine(phase="Running"), False),
        (machine(phase="Unknown"), False),
        (machine(phase=""), True),
        (machine(phase="Pending"), True),
        (machine(phase="Failed"), True),
        (machine(phase="CrashLoopBackOff"), True),
        (machine(phase="Terminating"), True),
        (machine(phase="InPlaceUpdating"), True),
        (machine(phase="Failed", preserved=after(hours=1)), False),
        (machine(phase="Terminating", preserved=after(hours=1)), True),
        (machine(phase="Running", deleted=BORN), True),
    ],
)
def test_whatever_is_neither_running_nor_unknown_moves(subject: Machine, *, expected: bool) -> None:
    assert is_moving(subject) is expected


def test_one_may_fail_while_the_rest_is_at_rest() -> None:
    assert no_wakes().may_fail(machine("a", phase=UNKNOWN, group="d"), [])


def test_none_may_fail_while_another_moves() -> None:
    moving = [machine("b", phase="Pending", group="d")]
    assert not no_wakes().may_fail(machine("a", phase=UNKNOWN, group="d"), moving)


def test_a_machine_does_not_stand_in_its_own_way() -> None:
    itself = machine("a", phase="InPlaceUpdateFailed", group="d")
    assert no_wakes().may_fail(itself, [itself])


def test_a_machine_of_no_deployment_may_always_fail() -> None:
    alone = machine("a", phase=UNKNOWN)
    assert group_of(alone) == ""
    permits = no_wakes()
    with permits.writing(machine("b", phase=UNKNOWN)):
        assert permits.may_fail(alone, [machine("c", phase="Pending")])


def test_while_one_is_being_written_no_other_of_its_group_may_fail() -> None:
    permits = no_wakes()
    a, b, other = (machine(name, phase=UNKNOWN, group=g) for name, g in ("ad", "bd", "ce"))
    with permits.writing(a):
        assert permits.may_fail(a, [])
        assert not permits.may_fail(b, [])
        assert permits.may_fail(other, [])
    assert permits.may_fail(b, [])


def test_the_permit_comes_back_even_if_the_write_fails() -> None:
    permits = no_wakes()
    a, b = (machine(name, phase=UNKNOWN, group="d") for name in "ab")
    with pytest.raises(RuntimeError), permits.writing(a):
        raise RuntimeError
    assert permits.may_fail(b, [])


@pytest.mark.parametrize(("fails", "woken"), [(True, ["ns/b", "ns/c"]), (False, [])])
def test_who_was_refused_because_of_a_write_is_woken_if_it_fails(
    woken: list[str], *, fails: bool
) -> None:
    heard: list[str] = []
    permits = FailurePermits(wake=heard.append)
    a, b, c = (machine(name, phase=UNKNOWN, group="d") for name in "abc")
    with contextlib.suppress(RuntimeError), permits.writing(a):
        assert not permits.may_fail(c, [])
        assert not permits.may_fail(b, [])
        assert not permits.may_fail(b, [])
        assert heard == []
        if fails:
            raise RuntimeError
    assert heard == woken
    with contextlib.suppress(RuntimeError), permits.writing(a):
        raise RuntimeError
    assert heard == woken


@given(st.lists(st.sampled_from(list(MachinePhase)), min_size=1, max_size=8), st.data())
def test_deciding_one_after_the_other_never_fails_two_at_a_time(
    phases: list[MachinePhase], data: st.DataObject
) -> None:
    fleet = {
        f"m{i}": machine(f"m{i}", phase=phase, group="d", since=BORN)
        for i, phase in enumerate(phases)
    }
    permits, failed = no_wakes(), 0
    for name in data.draw(st.permutations(sorted(fleet))):
        subject = fleet[name]
        if subject.phase != UNKNOWN:
            continue
        if permits.may_fail(subject, [m for m in fleet.values() if is_moving(m)]):
            fleet[name] = machine(name, phase="Failed", group="d")
            failed += 1
    moving_before = sum(is_moving(machine(phase=phase)) for phase in phases)
    assert failed <= (0 if moving_before else 1)
