from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.machine import Machine, MachinePhase
from mcm.controllers.machine.health.failure_permit import FailurePermits, group_of, is_moving
from mcm.controllers.machine.own_conditions import OwnCondition, with_own
from tests.unit.machine.objects import BORN, after, machine

UNKNOWN = MachinePhase.UNKNOWN


def permits_for_one() -> FailurePermits:
    return FailurePermits(unused=lambda _: None)


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
        (machine(phase="InPlaceUpdateFailed"), False),
        (machine(phase="Failed", preserved=after(hours=1)), False),
        (machine(phase="Terminating", preserved=after(hours=1)), True),
        (machine(phase="Running", deleted=BORN), True),
    ],
)
def test_whatever_is_neither_running_nor_unknown_moves(subject: Machine, *, expected: bool) -> None:
    assert is_moving(subject) is expected


@pytest.mark.parametrize(
    ("phase", "reason", "expected"),
    [
        ("Pending", "NodeNamedTwice", False),  # waits for somebody to correct a label
        ("Pending", "NodeOfAnotherMachine", True),  # fails when its time is over
        ("Terminating", "NodeNamedTwice", True),
        ("Failed", "NodeNamedTwice", True),
    ],
)
def test_who_joins_and_quarrels_about_a_node_does_not_move(
    phase: str, reason: str, *, expected: bool
) -> None:
    subject = machine(phase=phase)
    status = with_own(
        subject.status, OwnCondition.NODE_UNAMBIGUOUS, "False", reason, "so it is", BORN
    )
    assert is_moving(msgspec.structs.replace(subject, status=status)) is expected


def test_one_may_fail_while_the_rest_is_at_rest() -> None:
    assert permits_for_one().may_fail(machine("a", phase=UNKNOWN, group="d"), [])


def test_none_may_fail_while_another_moves() -> None:
    moving = ["uid-b"]
    assert not permits_for_one().may_fail(machine("a", phase=UNKNOWN, group="d"), moving)


def test_a_machine_does_not_stand_in_its_own_way() -> None:
    itself = machine("a", phase="InPlaceUpdateFailed", group="d")
    assert permits_for_one().may_fail(itself, ["uid-a"])


def test_a_machine_of_no_deployment_may_always_fail() -> None:
    alone = machine("a", phase=UNKNOWN)
    assert group_of(alone) == ""
    permits = permits_for_one()
    with permits.holding(machine("b", phase=UNKNOWN)):
        assert permits.may_fail(alone, ["uid-c"])


def test_while_one_is_being_written_no_other_of_its_group_may_fail() -> None:
    permits = permits_for_one()
    a, b, other = (machine(name, phase=UNKNOWN, group=g) for name, g in ("ad", "bd", "ce"))
    with permits.holding(a):
        assert permits.may_fail(a, [])
        assert not permits.may_fail(b, [])
        assert permits.may_fail(other, [])
    assert permits.may_fail(b, [])


def test_the_permit_comes_back_even_if_the_write_fails() -> None:
    permits = permits_for_one()
    a, b = (machine(name, phase=UNKNOWN, group="d") for name in "ab")
    with pytest.raises(RuntimeError), permits.holding(a):
        raise RuntimeError
    assert permits.may_fail(b, [])


@pytest.mark.parametrize(("fails", "told"), [(True, ["ns/d"]), (False, [])])
def test_a_permit_that_was_not_used_is_offered_to_the_group(
    told: list[str], *, fails: bool
) -> None:
    heard: list[str] = []
    permits = FailurePermits(unused=heard.append)
    a, b = (machine(name, phase=UNKNOWN, group="d") for name in "ab")
    with contextlib.suppress(RuntimeError), permits.holding(a) as permit:
        assert not permits.may_fail(b, [])
        assert heard == []
        if fails:
            raise RuntimeError
        permit.used = True
    assert heard == told


def test_a_permit_is_offered_if_the_machine_turns_out_to_be_well() -> None:
    heard: list[str] = []
    permits = FailurePermits(unused=heard.append)
    a, b = (machine(name, phase=UNKNOWN, group="d") for name in "ab")
    with permits.holding(a):
        assert not permits.may_fail(b, [])
    assert heard == ["ns/d"]
    assert permits.may_fail(b, [])


@given(st.lists(st.sampled_from(list(MachinePhase)), min_size=1, max_size=8), st.data())
def test_deciding_one_after_the_other_never_fails_two_at_a_time(
    phases: list[MachinePhase], data: st.DataObject
) -> None:
    fleet = {
        f"m{i}": machine(f"m{i}", phase=phase, group="d", since=BORN)
        for i, phase in enumerate(phases)
    }
    permits, failed = permits_for_one(), 0
    for name in data.draw(st.permutations(sorted(fleet))):
        subject = fleet[name]
        if subject.phase != UNKNOWN:
            continue
        if permits.may_fail(subject, [m.metadata.uid for m in fleet.values() if is_moving(m)]):
            fleet[name] = machine(name, phase="Failed", group="d")
            failed += 1
    moving_before = sum(is_moving(machine(phase=phase)) for phase in phases)
    assert failed <= (0 if moving_before else 1)


@given(
    limit=st.integers(0, 4),
    moving=st.sets(st.sampled_from("abcdefgh"), max_size=6),
    order=st.permutations("abcdefgh"),
    data=st.data(),
)
def test_however_writes_overlap_no_more_move_than_the_limit_unless_they_did_before(
    limit: int, moving: set[str], order: list[str], data: st.DataObject
) -> None:
    """Writes begin, end and become visible in any order."""
    permits = FailurePermits(unused=lambda _: None, limit=limit)
    most = max(limit, len(moving))
    under_way: dict[str, contextlib.ExitStack] = {}
    visible, failed = set(moving), set(moving)
    for uid in order:
        subject = machine(uid, phase=UNKNOWN, group="d")
        if uid not in failed and permits.may_fail(subject, {f"uid-{u}" for u in visible}):
            stack = under_way[uid] = contextlib.ExitStack()
            stack.enter_context(permits.holding(subject))
            failed.add(uid)
        assert len(failed) <= most
        for ending in sorted(under_way):
            match data.draw(st.sampled_from(["goes on", "becomes visible", "ends"])):
                case "becomes visible":
                    visible.add(ending)
                case "ends":
                    visible.add(ending)
                    under_way.pop(ending).close()
    for stack in under_way.values():
        stack.close()


def test_with_a_higher_limit_as_many_may_fail_and_the_next_may_not() -> None:
    permits = FailurePermits(unused=lambda _: None, limit=2)
    a, b, c = (machine(name, phase=UNKNOWN, group="d") for name in "abc")
    with permits.holding(a):
        assert permits.may_fail(b, ["uid-a"])
        with permits.holding(b):
            assert not permits.may_fail(c, ["uid-a"])
        assert not permits.may_fail(c, ["uid-a", "uid-b"])
    assert permits.may_fail(c, ["uid-b"])
