"""Pods that a drain waits for, in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.drain.result import Cause, PodStanding
from mcm.drain.summary import MOST_CAUSES, WORST_FIRST, in_words

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DEADLINE = NOON + timedelta(hours=2)


def standing(
    pod: str, cause: Cause, *, detail: str = "", since: int | None = None, until: int | None = None
) -> PodStanding:
    """``since`` and ``until`` in seconds after noon."""
    return PodStanding(
        pod=f"shop/{pod}",
        uid=f"uid-{pod}",
        cause=cause,
        since=None if since is None else NOON + timedelta(seconds=since),
        until=None if until is None else NOON + timedelta(seconds=until),
        detail=detail,
    )


def words(*pods: PodStanding) -> str:
    return in_words(pods, deadline=DEADLINE)


BUDGET = "pod disruption budget shop/db allows none"


@pytest.mark.parametrize(
    ("pods", "text"),
    [
        pytest.param((), "", id="none"),
        pytest.param(
            (
                standing("b", Cause.HELD_BY_BUDGET, detail=BUDGET, since=5, until=600),
                standing("a", Cause.HELD_BY_BUDGET, detail=BUDGET, since=60, until=660),
            ),
            "held by a disruption budget: shop/a, shop/b since 2026-01-01T12:00:05Z, deleted at "
            "2026-01-01T12:10:00Z (pod disruption budget shop/db allows none)",
            id="one cause: the earliest times, what is the same once",
        ),
        pytest.param(
            (standing("a", Cause.HELD_BY_BUDGET, since=5, until=7200),),
            "held by a disruption budget: shop/a since 2026-01-01T12:00:05Z",
            id="an end that the deadline forestalls is none",
        ),
        pytest.param(
            (standing("a", Cause.LEAVING, since=3, until=33),),
            "leaving: shop/a",
            id="times that change with each pod are not told",
        ),
        pytest.param(
            (
                standing("a", Cause.LEAVING),
                standing("b", Cause.REFUSED, since=0, detail="Forbidden: no"),
                standing("c", Cause.OVERDUE, since=40),
                standing("d", Cause.DETACHING, since=50, until=120),
            ),
            "refused by the server: shop/b since 2026-01-01T12:00:00Z (Forbidden: no); "
            "its grace period is over: shop/c since 2026-01-01T12:00:40Z; "
            "its volumes are being detached: shop/d since 2026-01-01T12:00:50Z, not waited for "
            "after 2026-01-01T12:02:00Z; "
            "leaving: shop/a",
            id="the worst first",
        ),
        pytest.param(
            tuple(standing(f"p{i:02}", Cause.LEAVING) for i in range(30)),
            "leaving: shop/p00, shop/p01, shop/p02 and 27 more",
            id="three pods are named",
        ),
        pytest.param(
            tuple(standing(f"p{i}", cause) for i, cause in enumerate(WORST_FIRST)),
            "held by a misconfigured disruption budget: shop/p0; "
            "selected by several disruption budgets: shop/p1; "
            "refused by the server: shop/p2; its grace period is over: shop/p3; "
            "held by a disruption budget: shop/p4; 9 more for other reasons",
            id="five causes are named",
        ),
        pytest.param(
            (standing("a", Cause.REFUSED, detail="x" * 1000),),
            f"refused by the server: shop/a ({'x' * 237}...)",
            id="what a server says is cut",
        ),
        pytest.param(
            (standing("a", Cause.OVERDUE, detail=Cause.OVERDUE.value),),
            "its grace period is over: shop/a",
            id="nothing is said twice",
        ),
    ],
)
def test_what_is_said(pods: tuple[PodStanding, ...], text: str) -> None:
    assert words(*pods) == text


def test_every_cause_has_its_place() -> None:
    assert set(WORST_FIRST) == set(Cause) and len(WORST_FIRST) == len(Cause)


_PODS = st.lists(
    st.builds(
        standing,
        st.sampled_from([f"p{i}" for i in range(20)]),
        st.sampled_from(Cause),
        detail=st.sampled_from(["", BUDGET, "another"]),
        since=st.none() | st.integers(0, 9999),
        until=st.none() | st.integers(0, 9999),
    ),
    max_size=30,
    unique_by=lambda pod: pod.pod,
)


@given(_PODS, st.randoms(use_true_random=False))
def test_no_order_of_the_pods_shows_and_none_makes_it_long(
    pods: list[PodStanding], random: object
) -> None:
    text = words(*pods)
    shuffled = list(pods)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert words(*shuffled) == text
    assert len(text) < 2000
    named = sum(f"{cause.value}: " in text for cause in Cause)
    assert named == min(MOST_CAUSES, len({pod.cause for pod in pods}))
