"""The machine's condition ``Drained``: what is shown of a drain, and when it is worth a write."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from mcm.api.core import NodeCondition
from mcm.api.machine import MachineStatus
from mcm.controllers.machine.draining.condition import (
    FORCE_IN_WORDS,
    HELD_UP_AFTER,
    DrainShown,
    finished,
    shown,
    withdrawn,
)
from mcm.drain.mode import Force
from mcm.drain.result import Cause, Done, DrainResult, PodStanding, Quiet, TimedOut, Working
from tests.unit.machine.objects import BORN, READY, after

DEADLINE = after(hours=2)
END = "pods are deleted by force at 2026-01-01T02:00:00Z"
EMPTY = MachineStatus(conditions=(READY,))


def pod(
    cause: Cause, name: str = "a", *, since: datetime | None = None, lasting: bool = False
) -> PodStanding:
    return PodStanding(pod=f"shop/{name}", uid=name, cause=cause, since=since, lasting=lasting)


def show(
    result: DrainResult,
    *,
    at: float,
    status: MachineStatus = EMPTY,
    told: float | None = None,
) -> DrainShown:
    """What is shown ``at`` so many seconds of the drain."""
    return shown(
        status,
        result,
        start=BORN,
        deadline=DEADLINE,
        now=after(seconds=at),
        told_at=None if told is None else after(seconds=told),
    )


def said(found: DrainShown) -> NodeCondition | None:
    return next((c for c in found.status.conditions if c.type == "Drained"), None)


def leaving(count: int) -> Working:
    return Working(pods=tuple(pod(Cause.LEAVING, f"p{i}") for i in range(count)))


def held(seconds: float = 0.0) -> Working:
    return Working(pods=(pod(Cause.HELD_BY_BUDGET, since=after(seconds=seconds)),))


@pytest.mark.parametrize(
    ("result", "at", "reason", "message"),
    [
        pytest.param(leaving(1), 10, "Draining", f"leaving: shop/p0; {END}", id="it takes long"),
        pytest.param(
            held(),
            60,
            "Draining",
            f"held by a disruption budget: shop/a since 2026-01-01T00:00:00Z; {END}",
            id="a budget holds a pod, as budgets do",
        ),
        pytest.param(
            held(),
            300,
            "Blocked",
            f"held by a disruption budget: shop/a since 2026-01-01T00:00:00Z; {END}",
            id="a budget holds a pod for minutes",
        ),
        pytest.param(
            Working(pods=(pod(Cause.BUDGET_MISCONFIGURED, lasting=True),)),
            0,
            "Blocked",
            f"held by a misconfigured disruption budget: shop/a; {END}",
            id="no waiting helps: at once",
        ),
        pytest.param(
            Working(pods=(pod(Cause.OVERDUE, since=after(seconds=40)),)),
            41,
            "Overdue",
            f"its grace period is over: shop/a since 2026-01-01T00:00:40Z; {END}",
            id="a pod does not end: at once",
        ),
        pytest.param(
            Working(pods=(pod(Cause.OVERDUE, since=BORN),)),
            300,
            "Blocked",
            f"its grace period is over: shop/a since 2026-01-01T00:00:00Z; {END}",
            id="a pod does not end for minutes",
        ),
        pytest.param(
            Working(blind="pods cannot be watched since 2026-01-01T00:00:01Z (Forbidden)"),
            1,
            "CannotObserve",
            "pods cannot be watched since 2026-01-01T00:00:01Z (Forbidden): what is on the node is "
            f"not known, and nothing is concluded; {END}",
            id="blind: at once",
        ),
        pytest.param(
            TimedOut(pods=(pod(Cause.HELD_BY_BUDGET, since=BORN),)),
            7200,
            "Forced",
            "pods were deleted by force, as the drain's time was over; held by a disruption "
            "budget: shop/a since 2026-01-01T00:00:00Z",
            id="the deadline came",
        ),
        pytest.param(
            Done(Force.LABEL, "pod shop/a: no"),
            1,
            "Forced",
            "pods were deleted by force, as a label asks for it; pod shop/a: no",
            id="by force, and not every pod could be deleted",
        ),
    ],
)
def test_what_is_said(result: DrainResult, at: float, reason: str, message: str) -> None:
    condition = said(show(result, at=at))
    assert condition is not None
    assert (condition.status, condition.reason, condition.message) == ("False", reason, message)


@pytest.mark.parametrize(
    "result", [leaving(3), held(), Quiet(0.5), Done()], ids=["leaving", "held", "quiet", "done"]
)
def test_a_drain_that_goes_its_way_says_nothing_for_ten_seconds(result: DrainResult) -> None:
    found = show(result, at=9)
    assert found.status is EMPTY
    assert found.again == (1.0 if isinstance(result, Working) else None)


def test_what_stands_there_costs_no_write() -> None:
    told = show(held(), at=20).status
    again = show(held(), at=100, status=told, told=20)
    assert again.status is told
    assert again.again == HELD_UP_AFTER.total_seconds() - 100


def test_pods_that_merely_become_fewer_are_told_twice_a_minute() -> None:
    status = show(leaving(5), at=20).status
    soon = show(leaving(4), at=25, status=status, told=20)
    assert soon.status is status and soon.again == 25
    later = show(leaving(3), at=50, status=status, told=20)
    condition = said(later)
    assert (
        condition is not None and condition.message == f"leaving: shop/p0, shop/p1, shop/p2; {END}"
    )
    assert condition.last_transition_time == after(seconds=20)


def test_after_a_restart_it_is_told_how_it_is() -> None:
    status = show(leaving(5), at=20).status
    assert show(leaving(4), at=25, status=status).status is not status


def test_another_reason_is_told_at_once_and_a_clock_set_back_silences_nobody() -> None:
    status = show(leaving(5), at=20).status
    blind = show(Working(blind="no"), at=21, status=status, told=20)
    condition = said(blind)
    assert condition is not None and condition.reason == "CannotObserve"
    seeing = show(leaving(5), at=22, status=blind.status, told=21)
    condition = said(seeing)
    assert condition is not None and condition.reason == "Draining"
    ahead = show(leaving(4), at=30, status=status, told=99999)
    assert ahead.again == 30


def test_what_was_said_within_the_first_seconds_is_taken_back() -> None:
    blind = show(Working(blind="no"), at=2)
    seeing = show(leaving(1), at=4, status=blind.status, told=2)
    condition = said(seeing)
    assert condition is not None and condition.reason == "Draining"


def test_an_empty_node_turns_it_true_and_a_machine_that_lives_on_shows_none() -> None:
    status = show(held(), at=400).status
    done = show(Done(), at=500, status=status, told=400)
    condition = said(done)
    assert condition is not None
    assert (condition.status, condition.message) == ("True", "")
    assert condition.last_transition_time == after(seconds=500)
    assert finished(done.status, after(seconds=501)) is done.status
    assert withdrawn(status).conditions == EMPTY.conditions
    assert withdrawn(EMPTY) is EMPTY


def test_it_looks_again_when_a_held_pod_becomes_a_blocked_drain() -> None:
    found = show(held(30), at=60)
    assert found.again == 270
    blocked = show(held(30), at=330, status=found.status, told=60)
    condition = said(blocked)
    assert condition is not None and condition.reason == "Blocked"
    assert blocked.again is None


@pytest.mark.parametrize("force", Force)
def test_every_force_has_its_words(force: Force) -> None:
    assert bool(FORCE_IN_WORDS[force]) == (force is not Force.NONE)


def test_no_message_moves_with_time() -> None:
    for result in (held(), leaving(2), Working(blind="no"), TimedOut()):
        first, later = show(result, at=310), show(result, at=3100)
        one, other = said(first), said(later)
        assert one is not None and other is not None and one.message == other.message
        assert show(result, at=3100, status=first.status, told=310).status is first.status
    assert timedelta(0) < HELD_UP_AFTER
