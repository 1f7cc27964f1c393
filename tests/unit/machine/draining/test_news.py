"""Which events a drain makes, and that none is made twice."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import NodeCondition
from mcm.controllers.machine.draining.news import (
    PATIENCE,
    again_at,
    ended,
    news_of,
    told_before,
    warned_at,
)
from mcm.drain.request import DrainRequest, Purpose
from mcm.drain.result import Cause, PodStanding
from tests.unit.machine.objects import BORN, after


def request(timeout: timedelta = timedelta(hours=2)) -> DrainRequest:
    return DrainRequest(node="n", start=BORN, deadline=BORN + timeout, purpose=Purpose.DELETION)


def pod(
    cause: Cause, name: str = "a", *, since: datetime | None = BORN, lasting: bool = False
) -> PodStanding:
    return PodStanding(pod=f"shop/{name}", uid=name, cause=cause, since=since, lasting=lasting)


def told(*pods: PodStanding, at: float, deleted: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    found = news_of(pods, deleted, request(), (), after(seconds=at))
    return [(news.reason, news.note) for news in found]


SINCE = "since 2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("pods", "at", "expected"),
    [
        pytest.param((pod(Cause.LEAVING),), 100, [], id="what goes its way"),
        pytest.param((pod(Cause.HELD_BY_BUDGET),), 59, [], id="budgets hold pods: that is usual"),
        pytest.param(
            (pod(Cause.HELD_BY_BUDGET), pod(Cause.HELD_BY_BUDGET, "b")),
            60,
            [("DrainBlocked", f"held by a disruption budget: shop/a, shop/b {SINCE}")],
            id="for long",
        ),
        pytest.param(
            (pod(Cause.BUDGET_MISCONFIGURED, lasting=True), pod(Cause.REFUSED, "b", lasting=True)),
            0,
            [
                ("DrainBlocked", f"held by a misconfigured disruption budget: shop/a {SINCE}"),
                ("DrainBlocked", f"refused by the server: shop/b {SINCE}"),
            ],
            id="what does not pass: at once, one for each cause",
        ),
        pytest.param(
            (pod(Cause.OVERDUE),),
            0,
            [("DrainBlocked", f"its grace period is over: shop/a {SINCE}")],
            id="a pod that does not end",
        ),
        pytest.param(
            (pod(Cause.AWAITING_COMPLETION), pod(Cause.REATTACHING, "b")),
            3600,
            [],
            id="what has its own limit, or was asked for",
        ),
        pytest.param(
            (pod(Cause.LEAVING),),
            6600,
            [
                (
                    "DrainDeadlineNear",
                    "Pods are deleted by force at 2026-01-01T02:00:00Z: leaving: shop/a",
                )
            ],
            id="ten minutes before the deadline",
        ),
    ],
)
def test_what_is_told(
    pods: tuple[PodStanding, ...], at: float, expected: list[tuple[str, str]]
) -> None:
    assert told(*pods, at=at) == expected


def test_pods_that_are_deleted_as_they_refused_are_told_once() -> None:
    pods = [pod(Cause.LEAVING, name) for name in ("d", "c", "b", "a")]
    deleted = tuple(p.uid for p in pods)
    note = "Pods that refused eviction for too long are deleted: shop/a, shop/b, shop/c and 1 more"
    assert told(*pods, at=10, deleted=deleted) == [("DrainEscalated", note)]
    first = news_of(pods, deleted, request(), (), BORN)
    assert not news_of(pods, deleted, request(), {n.key for n in first}, after(hours=1))


@pytest.mark.parametrize(
    ("minutes", "before"), [(120, 10), (50, 10), (20, 4), (1, 0.2)], ids="{}".format
)
def test_the_warning_comes_ten_minutes_before_or_a_fifth_of_a_short_time(
    minutes: float, before: float
) -> None:
    asked = request(timedelta(minutes=minutes))
    assert asked.deadline - warned_at(asked) == timedelta(minutes=before)


def test_it_looks_again_when_time_alone_is_news() -> None:
    held = [pod(Cause.HELD_BY_BUDGET, since=after(seconds=30))]
    assert again_at(held, request(), (), after(seconds=40)) == after(seconds=90)
    key = Cause.HELD_BY_BUDGET.value
    assert again_at(held, request(), {key}, after(seconds=40)) == after(minutes=110)
    assert again_at(held, request(), {key, "deadline"}, after(seconds=40)) is None
    assert again_at([], request(), (), BORN) is None


def test_the_end_is_told_of_a_drain_that_took_long_or_was_told_of() -> None:
    quick, long = after(seconds=9), after(seconds=750.4)
    assert ended(request(), (), quick) == ()
    (news,) = ended(request(), (), long)
    assert (news.reason, news.note) == ("Drained", "The node is empty, after 0:12:30")
    assert ended(request(), {"leaving"}, quick)


def test_another_process_goes_on_from_what_stands_on_the_machine() -> None:
    message = "held by a disruption budget: shop/a; leaving: shop/b; pods are deleted by force at"
    condition = NodeCondition(type="Drained", status="False", reason="Blocked", message=message)
    assert told_before(condition) == {Cause.HELD_BY_BUDGET.value, Cause.LEAVING.value}
    assert told_before(None) == set()


_PODS = st.lists(
    st.builds(
        pod,
        st.sampled_from(Cause),
        st.sampled_from([f"p{i}" for i in range(9)]),
        since=st.none() | st.integers(0, 7000).map(lambda s: after(seconds=s)),
        lasting=st.booleans(),
    ),
    max_size=9,
)


@given(st.lists(st.tuples(_PODS, st.integers(0, 600)), max_size=20))
def test_whatever_happens_nothing_is_told_twice(
    history: list[tuple[list[PodStanding], int]],
) -> None:
    known: set[str] = set()
    now = BORN
    for pods, pause in history:
        now += timedelta(seconds=pause)
        found = news_of(pods, ("p1",), request(), known, now)
        keys = [news.key for news in found]
        assert len(keys) == len(set(keys)) and not known & set(keys)
        known.update(keys)
        foretold = again_at(pods, request(), known, now)
        assert foretold is None or foretold > now
        assert not news_of(pods, ("p1",), request(), known, now)
    assert len(known) <= len(Cause) + 2
    assert PATIENCE
