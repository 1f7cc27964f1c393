from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import Node, NodeCondition, Taint
from mcm.api.machine import LastOperation, Machine, MachinePhase
from mcm.controllers.machine import last_operation
from mcm.controllers.machine.health.conditions import conditions_differ, is_healthy
from mcm.controllers.machine.health.decision import HealthDecision, decide
from mcm.controllers.machine.health.meltdown.holding import RESUMED, Replaceable
from mcm.controllers.machine.health.meltdown.protection import ALLOWED, Verdict
from mcm.controllers.machine.own_conditions import OwnCondition, with_own
from mcm.controllers.reachability import Reachability
from tests.unit.machine.objects import (
    BORN,
    NOT_READY,
    READY,
    SETTINGS,
    after,
    condition,
    machine,
    node,
)

PENDING, RUNNING = MachinePhase.PENDING, MachinePhase.RUNNING
UNKNOWN, FAILED = MachinePhase.UNKNOWN, MachinePhase.FAILED
LISTED = SETTINGS.node_conditions
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
    verdict: Verdict = ALLOWED,
) -> HealthDecision:
    return decide(
        subject, seen, SETTINGS, now, may_fail=lambda: may_fail, servers=servers, verdict=verdict
    )


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
        ((condition("DiskPressure", "False"),), False),
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


def test_a_machine_joins_with_phase_and_conditions_in_one_decision() -> None:
    subject = machine(phase=PENDING, node="n", operation=CREATING)
    decision = judge(subject, node(conditions=(READY,)), after(seconds=95))
    assert decision.phase is RUNNING
    assert decision.conditions == (READY,)
    assert decision.operation is not None
    assert decision.operation.description == "Machine m successfully joined the cluster in 1m35s"
    assert (decision.operation.state, decision.operation.type) == ("Successful", "Create")


@pytest.mark.parametrize(
    "phase", [UNKNOWN, FAILED, MachinePhase.CRASH_LOOP_BACK_OFF, MachinePhase.TERMINATING]
)
def test_a_healthy_node_brings_a_machine_back_from_anywhere(phase: MachinePhase) -> None:
    done = LastOperation(type="HealthCheck", state="Failed")
    decision = judge(machine(phase=phase, node="n", operation=done), node(conditions=(READY,)))
    assert decision.phase is RUNNING
    assert decision.operation is not None
    assert decision.operation.description == "Machine m successfully re-joined the cluster"


@pytest.mark.parametrize(
    "phase", [MachinePhase.IN_PLACE_UPDATING, MachinePhase.IN_PLACE_UPDATE_FAILED]
)
def test_during_an_in_place_update_conditions_are_copied_and_nothing_concluded(
    phase: MachinePhase,
) -> None:
    subject = machine(phase=phase, node="n", since=BORN)
    assert judge(subject, node(conditions=(READY,))) == HealthDecision(conditions=(READY,))


def test_missing_critical_components_hold_a_machine_in_pending() -> None:
    held = node(conditions=(READY,), taints=(CRITICAL,))
    joining = machine(phase=PENDING, node="n")
    assert judge(joining, held, now=after(seconds=20)) == HealthDecision(after=40)
    told = HealthDecision(conditions=(READY,), components_awaited=True)
    assert judge(joining, held) == told
    assert judge(machine(phase=UNKNOWN, node="n"), held).phase is RUNNING
    given_up = machine(
        phase=FAILED, node="n", operation=last_operation.join_timed_out("m", "20m", kind="Create")
    )
    assert judge(given_up, held).phase is None
    assert judge(given_up, node(conditions=(READY,))).phase is RUNNING


def test_a_joining_node_that_is_not_ready_yet_costs_no_write() -> None:
    decision = judge(machine(phase=PENDING, node="n"), node(conditions=(NOT_READY,)))
    assert not decision.changes_something
    assert decision.after == 19 * 60


def test_a_joining_node_with_real_trouble_shows_it() -> None:
    conditions = (NOT_READY, condition("KernelDeadlock", "True"))
    decision = judge(machine(phase=PENDING, node="n"), node(conditions=conditions))
    assert decision.conditions == conditions
    assert decision.phase is None


def test_a_running_machine_whose_node_fails_becomes_unknown() -> None:
    subject = machine(phase=RUNNING, node="n", conditions=(READY,))
    decision = judge(subject, node(conditions=(NOT_READY,)))
    assert decision.phase is UNKNOWN
    assert decision.conditions == (NOT_READY,)
    assert decision.operation is not None
    assert decision.operation.description == (
        "Machine m is unhealthy - changing MachinePhase to Unknown. Node conditions: "
        "Ready=False (KubeletNotReady: no network)"
    )


def test_of_a_nodes_conditions_only_what_is_wrong_is_told() -> None:
    conditions = (condition("DiskPressure", "False"), condition("Whatever", "True"), NOT_READY)
    decision = judge(machine(phase=RUNNING, node="n"), node(conditions=conditions))
    assert decision.operation is not None
    assert decision.operation.description.endswith(
        "Node conditions: Ready=False (KubeletNotReady: no network)"
    )


def test_a_running_machine_whose_node_object_vanished_becomes_unknown() -> None:
    decision = judge(machine(phase=RUNNING, node="n", conditions=(READY,)), None)
    assert decision.phase is UNKNOWN
    assert decision.operation is not None
    assert decision.operation.description.startswith("Node object went missing. Machine m")


def test_a_healthy_running_machine_needs_nothing() -> None:
    subject = machine(phase=RUNNING, node="n", conditions=(READY,))
    assert judge(subject, node(conditions=(READY,))) == HealthDecision()


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
    decision = judge(subject, None, now)
    assert (decision.phase, decision.after) == (phase, wait)
    if decision.operation is not None:
        assert decision.operation.description == ("Machine m failed to join the cluster in 20m0s.")
        assert decision.operation.type == "Create"


def test_an_unknown_machine_fails_when_its_health_time_is_over() -> None:
    operation = LastOperation(type="HealthCheck", state="Processing")
    subject = machine(
        phase=UNKNOWN, node="n", since=after(hours=1), conditions=(NOT_READY,), operation=operation
    )
    seen = node(conditions=(NOT_READY,))
    assert judge(subject, seen, after(hours=1, minutes=4)).after == 360.0
    decision = judge(subject, seen, after(hours=1, minutes=10))
    assert decision.phase is FAILED
    assert decision.gives_up
    assert decision.operation is not None
    assert decision.operation.description == (
        "Machine m health checks failing since last 10m0s. Updating machine phase to "
        "Failed. Node Conditions: Ready=False (KubeletNotReady: no network)"
    )


def unknown_too_long() -> Machine:
    return machine(phase=UNKNOWN, node="n", since=BORN, conditions=(NOT_READY,))


def test_without_permit_nobody_is_given_up_and_only_events_bring_it_back() -> None:
    decision = judge(
        unknown_too_long(), node(conditions=(NOT_READY,)), after(hours=1), may_fail=False
    )
    assert decision == HealthDecision()


def test_while_a_server_is_unreachable_nobody_is_given_up() -> None:
    unreachable = Reachability(reachable=False)
    seen = node(conditions=(NOT_READY,))
    assert judge(unknown_too_long(), seen, after(hours=1), servers=unreachable) == HealthDecision()
    assert (
        judge(machine(phase=PENDING, node="n"), None, after(hours=1), servers=unreachable)
        == HealthDecision()
    )


def test_after_an_outage_the_timeouts_start_anew() -> None:
    again = Reachability(restored_at=after(hours=1))
    seen = node(conditions=(NOT_READY,))
    decision = judge(unknown_too_long(), seen, after(hours=1, minutes=1), servers=again)
    assert decision == HealthDecision(after=9 * 60)
    assert (
        judge(unknown_too_long(), seen, after(hours=1, minutes=10), servers=again).phase is FAILED
    )


HELD = Verdict(held=True, reason="ManyUnhealthyInZone", message="8 of 10")
SHOWN = Replaceable("False", "ManyUnhealthyInZone", "8 of 10")
ONLY_TARGET_LOST = Reachability(reachable=False, only_target_lost=True)


def shows(subject: Machine, status: str, reason: str, *, since: datetime = BORN) -> Machine:
    shown = with_own(subject.status, OwnCondition.REPLACEABLE, status, reason, "6 of 9", since)
    return msgspec.structs.replace(subject, status=shown)


@pytest.mark.parametrize("subject", [unknown_too_long(), machine(phase=PENDING, node="n")])
def test_who_is_held_says_so_once_its_time_is_over(subject: Machine) -> None:
    seen = node(conditions=(NOT_READY,)) if subject.phase == UNKNOWN else None
    early = judge(subject, seen, after(minutes=1), verdict=HELD)
    assert early == judge(subject, seen, after(minutes=1))
    assert judge(subject, seen, after(hours=1), verdict=HELD) == HealthDecision(replaceable=SHOWN)


def test_who_shows_to_be_held_writes_no_more_whatever_the_numbers() -> None:
    seen = node(conditions=(NOT_READY,))
    subject = shows(unknown_too_long(), "False", "ManyUnhealthyInZone")
    assert judge(subject, seen, after(hours=1), verdict=HELD) == HealthDecision()
    other = Verdict(held=True, reason="ManyUnhealthy", message="20 of 30")
    shown = judge(subject, seen, after(hours=1), verdict=other).replaceable
    assert shown == Replaceable("False", "ManyUnhealthy", "20 of 30")


def test_who_is_held_no_more_gets_its_whole_time_again() -> None:
    """Also from a process that knows only what stands on the machine."""
    seen = node(conditions=(NOT_READY,))
    held = shows(unknown_too_long(), "False", "ManyUnhealthyInZone")
    assert judge(held, seen, after(hours=1)) == HealthDecision(replaceable=RESUMED)
    freed = shows(held, "True", RESUMED.reason, since=after(hours=1))
    assert judge(freed, seen, after(hours=1, minutes=1)) == HealthDecision(after=9 * 60)
    assert judge(freed, seen, after(hours=1, minutes=10)).phase is FAILED


def test_the_end_of_a_hold_counts_for_those_that_it_never_reached() -> None:
    seen, verdict = node(conditions=(NOT_READY,)), Verdict(clocks_from=after(minutes=9))
    decision = judge(unknown_too_long(), seen, after(minutes=10), verdict=verdict)
    assert decision == HealthDecision(after=9 * 60)


def test_while_only_the_target_is_out_of_reach_the_machine_can_say_so() -> None:
    seen = node(conditions=(NOT_READY,))
    decision = judge(unknown_too_long(), seen, after(hours=1), servers=ONLY_TARGET_LOST)
    assert decision.phase is None
    assert decision.replaceable is not None
    assert decision.replaceable.reason == "TargetClusterUnreachable"
    held = shows(unknown_too_long(), "False", "TargetClusterUnreachable")
    assert judge(held, seen, after(hours=1), servers=ONLY_TARGET_LOST) == HealthDecision()
    lost = Reachability(reachable=False)
    assert judge(held, seen, after(hours=1), servers=lost) == HealthDecision()


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
    verdict=st.sampled_from([ALLOWED, HELD]),
)
def test_decisions_settle_and_never_fail_without_leave(
    phase: MachinePhase,
    known: tuple[NodeCondition, ...],
    seen: tuple[NodeCondition, ...] | None,
    minutes: int,
    *,
    may_fail: bool,
    reachable: bool,
    verdict: Verdict,
) -> None:
    subject = machine(phase=phase, node="n", conditions=known, since=BORN)
    found = None if seen is None else node(conditions=seen)
    servers = Reachability(reachable=reachable)
    decision = judge(
        subject, found, after(minutes=minutes), may_fail=may_fail, servers=servers, verdict=verdict
    )
    if decision.phase is FAILED:
        assert reachable
        assert not verdict.held
        assert may_fail or phase is PENDING
    assert decision.phase is not phase
    if decision.changes_something:
        settled = machine(
            phase=decision.phase or phase,
            node="n",
            conditions=known if decision.conditions is None else decision.conditions,
            since=after(minutes=minutes),
        )
        following = judge(
            settled,
            found,
            after(minutes=minutes),
            may_fail=may_fail,
            servers=servers,
            verdict=verdict,
        )
        assert following.conditions is None


@pytest.mark.parametrize(
    ("subject", "since"),
    [
        pytest.param(machine(phase=UNKNOWN, since=after(hours=2)), after(hours=2), id="phase"),
        pytest.param(
            machine(phase=UNKNOWN, operation=LastOperation(last_update_time=after(hours=3))),
            after(hours=3),
            id="last operation",
        ),
        pytest.param(machine(phase=UNKNOWN, conditions=(NOT_READY,)), BORN, id="readiness"),
        pytest.param(machine(phase=UNKNOWN), BORN, id="nothing but its birth"),
    ],
)
def test_a_machine_that_is_unhealthy_since_nobody_knows_when_is_given_up_too(
    subject: Machine, since: datetime
) -> None:
    span = SETTINGS.health_timeout
    assert span is not None
    early = judge(subject, node(conditions=(NOT_READY,)), since + span - timedelta(seconds=1))
    assert early.phase is None
    assert early.conditions is not None or early.after == 1
    late = judge(
        machine(
            phase=UNKNOWN,
            since=subject.status.current_status.last_update_time,
            operation=subject.status.last_operation,
            conditions=(NOT_READY,),
        ),
        node(conditions=(NOT_READY,)),
        since + span,
    )
    assert late.phase is FAILED


def test_a_node_that_never_reported_readiness_does_not_run() -> None:
    silent = node(conditions=(condition("DiskPressure", "False"),))
    decision = judge(machine(phase=PENDING, node="n", operation=CREATING), silent)
    assert decision == HealthDecision(after=19 * 60)
    running = machine(phase=RUNNING, node="n", conditions=(READY,))
    assert judge(running, silent).phase is UNKNOWN
