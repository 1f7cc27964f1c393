from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import Node, NodeCondition, Taint
from mcm.api.machine import LastOperation, Machine, MachinePhase
from mcm.controllers.machine.health import decision
from mcm.controllers.machine.health.conditions import conditions_differ, is_healthy
from mcm.controllers.machine.health.decision import Verdict
from mcm.controllers.reachability import Reachability
from tests.unit.machine.objects import (
    BORN,
    LIMITS,
    NOT_READY,
    READY,
    after,
    condition,
    machine,
    node,
)

PENDING, RUNNING = MachinePhase.PENDING, MachinePhase.RUNNING
UNKNOWN, FAILED = MachinePhase.UNKNOWN, MachinePhase.FAILED
LISTED = LIMITS.node_conditions
CRITICAL = Taint(key="node.gardener.cloud/critical-components-not-ready", effect="NoSchedule")
SOON, REACHABLE = after(minutes=1), Reachability()
CREATING = LastOperation(type="Create", state="Processing")


def judge(
    subject: Machine,
    seen: Node | None,
    now: datetime = SOON,
    *,
    may_fail: bool = True,
    servers: Reachability = REACHABLE,
) -> Verdict:
    return decision.judge(subject, seen, LIMITS, now, may_fail=lambda: may_fail, servers=servers)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ((), False),
        ((READY,), True),
        ((NOT_READY,), False),
        ((condition("Ready", "Unknown"),), False),
        ((READY, condition("KernelDeadlock", "False")), True),
        ((READY, condition("KernelDeadlock", "True")), False),
        ((READY, condition("KernelDeadlock", "Unknown")), False),
        ((READY, condition("MemoryPressure", "True")), True),
        ((condition("DiskPressure", "False"),), True),
    ],
)
def test_health_is_readiness_and_the_absence_of_listed_trouble(
    conditions: tuple[NodeCondition, ...], *, expected: bool
) -> None:
    assert is_healthy(conditions, LISTED) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ((READY,), (READY,), False),
        ((READY,), (NOT_READY,), True),
        ((), (READY,), True),
        ((READY,), (), True),
        ((READY,), (condition("Ready", "True", reason="other", message="m"),), False),
        (
            (condition("InPlaceUpdate", "True", reason="a"),),
            (condition("InPlaceUpdate", "True", reason="b"),),
            True,
        ),
        ((READY, NOT_READY), (NOT_READY, READY), True),
    ],
)
def test_conditions_differ_by_type_and_status_only(
    old: tuple[NodeCondition, ...], new: tuple[NodeCondition, ...], *, expected: bool
) -> None:
    assert conditions_differ(old, new) is expected


def test_a_machine_joins_with_phase_and_conditions_in_one_verdict() -> None:
    subject = machine(phase=PENDING, node="n", operation=CREATING)
    verdict = judge(subject, node(conditions=(READY,)), after(seconds=95))
    assert verdict.phase is RUNNING
    assert verdict.conditions == (READY,)
    assert verdict.operation is not None
    assert verdict.operation.description == "Machine m successfully joined the cluster in 1m35s"
    assert (verdict.operation.state, verdict.operation.type) == ("Successful", "Create")


@pytest.mark.parametrize(
    "phase", [UNKNOWN, FAILED, MachinePhase.CRASH_LOOP_BACK_OFF, MachinePhase.TERMINATING]
)
def test_a_healthy_node_brings_a_machine_back_from_anywhere(phase: MachinePhase) -> None:
    done = LastOperation(type="HealthCheck", state="Failed")
    verdict = judge(machine(phase=phase, node="n", operation=done), node(conditions=(READY,)))
    assert verdict.phase is RUNNING
    assert verdict.operation is not None
    assert verdict.operation.description == "Machine m successfully re-joined the cluster"


@pytest.mark.parametrize(
    "phase", [MachinePhase.IN_PLACE_UPDATING, MachinePhase.IN_PLACE_UPDATE_FAILED]
)
def test_during_an_in_place_update_conditions_are_copied_and_nothing_concluded(
    phase: MachinePhase,
) -> None:
    subject = machine(phase=phase, node="n", since=BORN)
    assert judge(subject, node(conditions=(READY,))) == Verdict(conditions=(READY,))


def test_missing_critical_components_hold_a_machine_in_pending() -> None:
    held = node(conditions=(READY,), taints=(CRITICAL,))
    verdict = judge(machine(phase=PENDING, node="n"), held)
    assert verdict == Verdict(after=19 * 60)
    assert judge(machine(phase=UNKNOWN, node="n"), held).phase is RUNNING


def test_a_joining_node_that_is_not_ready_yet_costs_no_write() -> None:
    verdict = judge(machine(phase=PENDING, node="n"), node(conditions=(NOT_READY,)))
    assert not verdict.changes_something
    assert verdict.after == 19 * 60


def test_a_joining_node_with_real_trouble_shows_it() -> None:
    conditions = (NOT_READY, condition("KernelDeadlock", "True"))
    verdict = judge(machine(phase=PENDING, node="n"), node(conditions=conditions))
    assert verdict.conditions == conditions
    assert verdict.phase is None


def test_a_running_machine_whose_node_fails_becomes_unknown() -> None:
    subject = machine(phase=RUNNING, node="n", conditions=(READY,))
    verdict = judge(subject, node(conditions=(NOT_READY,)))
    assert verdict.phase is UNKNOWN
    assert verdict.conditions == (NOT_READY,)
    assert verdict.operation is not None
    assert verdict.operation.description == (
        "Machine m is unhealthy - changing MachinePhase to Unknown. Node conditions: "
        "Ready=False (KubeletNotReady: no network)"
    )


def test_a_running_machine_whose_node_object_vanished_becomes_unknown() -> None:
    verdict = judge(machine(phase=RUNNING, node="n", conditions=(READY,)), None)
    assert verdict.phase is UNKNOWN
    assert verdict.operation is not None
    assert verdict.operation.description.startswith("Node object went missing. Machine m")


def test_a_healthy_running_machine_needs_nothing() -> None:
    subject = machine(phase=RUNNING, node="n", conditions=(READY,))
    assert judge(subject, node(conditions=(READY,))) == Verdict()


@pytest.mark.parametrize(
    ("now", "phase", "wait"),
    [
        (after(minutes=19, seconds=59), None, 1.0),
        (after(minutes=20), FAILED, None),
        (after(minutes=30), FAILED, None),
    ],
)
def test_a_machine_that_does_not_join_in_time_fails_at_that_very_moment(
    now: datetime, phase: MachinePhase | None, wait: float | None
) -> None:
    subject = machine(phase=PENDING, node="n", operation=CREATING)
    verdict = judge(subject, None, now)
    assert (verdict.phase, verdict.after) == (phase, wait)
    if verdict.operation is not None:
        assert verdict.operation.description == (
            "Machine m failed to join the cluster in 20m0s minutes."
        )
        assert verdict.operation.type == "Create"


def test_an_unknown_machine_fails_when_its_health_time_is_over() -> None:
    operation = LastOperation(type="HealthCheck", state="Processing")
    subject = machine(
        phase=UNKNOWN, node="n", since=after(hours=1), conditions=(NOT_READY,), operation=operation
    )
    seen = node(conditions=(NOT_READY,))
    assert judge(subject, seen, after(hours=1, minutes=4)).after == 360.0
    verdict = judge(subject, seen, after(hours=1, minutes=10))
    assert verdict.phase is FAILED
    assert verdict.gives_up
    assert verdict.operation is not None
    assert verdict.operation.description == (
        "Machine m health checks failing since last 10m0s minutes. Updating machine phase to "
        "Failed. Node Conditions: Ready=False (KubeletNotReady: no network)"
    )


def unknown_too_long() -> Machine:
    return machine(phase=UNKNOWN, node="n", since=BORN, conditions=(NOT_READY,))


def test_without_permit_nobody_is_given_up_and_only_events_bring_it_back() -> None:
    verdict = judge(
        unknown_too_long(), node(conditions=(NOT_READY,)), after(hours=1), may_fail=False
    )
    assert verdict == Verdict()


def test_while_a_server_is_unreachable_nobody_is_given_up() -> None:
    unreachable = Reachability(reachable=False)
    seen = node(conditions=(NOT_READY,))
    assert judge(unknown_too_long(), seen, after(hours=1), servers=unreachable) == Verdict()
    assert (
        judge(machine(phase=PENDING, node="n"), None, after(hours=1), servers=unreachable)
        == Verdict()
    )


def test_after_an_outage_the_timeouts_start_anew() -> None:
    again = Reachability(restored_at=after(hours=1))
    seen = node(conditions=(NOT_READY,))
    verdict = judge(unknown_too_long(), seen, after(hours=1, minutes=1), servers=again)
    assert verdict == Verdict(after=9 * 60)
    assert (
        judge(unknown_too_long(), seen, after(hours=1, minutes=10), servers=again).phase is FAILED
    )


statuses = st.sampled_from(["True", "False", "Unknown"])
condition_lists = st.lists(
    st.builds(condition, st.sampled_from(["Ready", "KernelDeadlock", "MemoryPressure"]), statuses),
    max_size=3,
    unique_by=lambda c: c.type,
).map(tuple)


@given(
    phase=st.sampled_from(list(MachinePhase)),
    known=condition_lists,
    seen=st.none() | condition_lists,
    minutes=st.integers(0, 60),
    may_fail=st.booleans(),
    reachable=st.booleans(),
)
def test_verdicts_settle_and_never_fail_without_leave(
    phase: MachinePhase,
    known: tuple[NodeCondition, ...],
    seen: tuple[NodeCondition, ...] | None,
    minutes: int,
    *,
    may_fail: bool,
    reachable: bool,
) -> None:
    subject = machine(phase=phase, node="n", conditions=known, since=BORN)
    found = None if seen is None else node(conditions=seen)
    servers = Reachability(reachable=reachable)
    verdict = judge(subject, found, after(minutes=minutes), may_fail=may_fail, servers=servers)
    if verdict.phase is FAILED:
        assert reachable
        assert may_fail or phase is PENDING
    assert verdict.phase is not phase
    if verdict.changes_something:
        settled = machine(
            phase=verdict.phase or phase,
            node="n",
            conditions=known if verdict.conditions is None else verdict.conditions,
            since=after(minutes=minutes),
        )
        following = judge(
            settled, found, after(minutes=minutes), may_fail=may_fail, servers=servers
        )
        assert following.conditions is None
