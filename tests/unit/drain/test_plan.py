from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import Pod, PodDisruptionBudget
from mcm.drain import (
    Attempts,
    Force,
    Mode,
    Plan,
    Snapshot,
    Verb,
    arrange,
    must_go,
    plan,
    stuck,
    view_for,
)
from mcm.drain.selection import uses_claims
from tests.unit.drain.pods import NOW, budget, pod

GENTLE = Mode(Force.NONE, kubelet_dead=False, next_change=NOW + timedelta(hours=2))


def snapshot(
    pods: Sequence[Pod],
    attempts: Attempts | None = None,
    *,
    mode: Mode = GENTLE,
    retries: int = 360,
    monotonic: float = 0.0,
    budgets: Sequence[PodDisruptionBudget] = (),
) -> Snapshot:
    return Snapshot(
        arrangement=arrange(pods, start=NOW),
        mode=mode,
        attempts=(attempts or new_attempts()).view(),
        budgets=lambda p: view_for(p, budgets),
        retries=retries,
        now=NOW + timedelta(seconds=monotonic),
        monotonic=monotonic,
    )


def new_attempts() -> Attempts:
    return Attempts(random.Random(1))


def asked(step: Plan) -> list[tuple[Verb, str]]:
    return [(action.verb, action.pod.metadata.name) for action in step.actions]


def test_a_node_without_pods_is_drained() -> None:
    assert plan(snapshot([])).finished


def test_what_stays_on_the_node_does_not_keep_the_drain_from_finishing() -> None:
    assert plan(snapshot([pod("agent", owner="DaemonSet"), pod("static", mirror=True)])).finished


def test_pods_without_volumes_leave_all_at_once() -> None:
    step = plan(snapshot([pod("a"), pod("b"), pod("done", claims=("x",), phase="Succeeded")]))
    assert asked(step) == [(Verb.EVICT, "done"), (Verb.EVICT, "a"), (Verb.EVICT, "b")]
    assert not step.finished


def test_pods_with_volumes_leave_one_at_a_time_highest_priority_first() -> None:
    pods = [pod("low", claims=("x",)), pod("high", claims=("y",), priority=10)]
    step = plan(snapshot(pods))
    assert asked(step) == [(Verb.EVICT, "high")]
    assert [p.metadata.name for p in step.waiting] == ["low"]


def test_the_next_one_waits_until_the_one_before_is_gone() -> None:
    leaving = pod("high", claims=("y",), priority=10, deleted=NOW + timedelta(seconds=30))
    low = pod("low", claims=("x",))
    assert asked(plan(snapshot([leaving, low]))) == []
    assert asked(plan(snapshot([low]))) == [(Verb.EVICT, "low")]


def test_an_accepted_eviction_counts_as_leaving_before_the_watch_tells() -> None:
    attempts = new_attempts()
    attempts.accepted("uid-high", 0.0)
    pods = [pod("high", claims=("y",), priority=10), pod("low", claims=("x",))]
    step = plan(snapshot(pods, attempts, monotonic=1.0))
    assert asked(step) == []
    assert step.look_again == pytest.approx(59.0)
    later = plan(snapshot(pods, attempts, monotonic=61.0))
    assert asked(later) == [(Verb.EVICT, "high")]


def test_a_stuck_pod_with_volumes_holds_the_others_up_no_longer() -> None:
    stuck_pod = pod("high", claims=("y",), priority=10, deleted=NOW - timedelta(seconds=31))
    now = snapshot([stuck_pod, pod("low", claims=("x",))])
    step = plan(now)
    assert asked(step) == [(Verb.EVICT, "low")]
    assert [p.metadata.name for p in step.waiting] == ["high"]
    assert [p.metadata.name for p in stuck(now)] == ["high"]


def test_a_pod_may_take_its_grace_period_and_half_a_minute() -> None:
    leaving = pod("a", deleted=NOW + timedelta(seconds=10))
    step = plan(snapshot([leaving]))
    assert step.look_again == pytest.approx(40.0)
    assert not step.actions and not step.finished


def test_a_refused_pod_waits_and_lets_the_next_with_volumes_pass() -> None:
    attempts = new_attempts()
    attempts.refused("uid-high", 0.0, "no")
    pods = [pod("high", claims=("y",), priority=10), pod("low", claims=("x",))]
    step = plan(snapshot(pods, attempts, monotonic=1.0))
    assert asked(step) == [(Verb.EVICT, "low")]
    assert step.look_again is not None
    assert 14.0 <= step.look_again <= 19.0


def test_a_refused_pod_is_asked_again_when_its_time_has_come() -> None:
    attempts = new_attempts()
    attempts.refused("uid-a", 0.0, "no")
    assert asked(plan(snapshot([pod("a")], attempts, monotonic=20.0))) == [(Verb.EVICT, "a")]


def test_a_budget_that_changed_and_allows_brings_the_next_try_forward() -> None:
    attempts = new_attempts()
    refusing, allowing = budget("b", version="1"), budget("b", allowed=1, version="2")
    versions = view_for(pod("a"), [refusing]).versions
    attempts.refused("uid-a", 0.0, "no", budgets=versions)
    still = snapshot([pod("a")], attempts, monotonic=1.0, budgets=[refusing])
    assert asked(plan(still)) == []
    other = snapshot([pod("a")], attempts, monotonic=1.0, budgets=[budget("b", version="3")])
    assert asked(plan(other)) == []
    free = snapshot([pod("a")], attempts, monotonic=1.0, budgets=[allowing])
    assert asked(plan(free)) == [(Verb.EVICT, "a")]


def test_after_the_time_its_retries_stand_for_a_pod_is_deleted_with_its_own_grace() -> None:
    attempts = new_attempts()
    attempts.refused("uid-a", 0.0, "no")
    early = plan(snapshot([pod("a")], attempts, retries=2, monotonic=39.0))
    late = plan(snapshot([pod("a")], attempts, retries=2, monotonic=40.0))
    assert asked(early) == [(Verb.EVICT, "a")]
    assert asked(late) == [(Verb.DELETE, "a")]
    assert late.actions[0].grace is None


def test_no_retries_means_deletion_at_once_and_never_a_hang() -> None:
    step = plan(snapshot([pod("a", claims=("x",)), pod("b")], retries=0))
    assert asked(step) == [(Verb.DELETE, "b"), (Verb.DELETE, "a")]


@pytest.mark.parametrize(("dead", "grace"), [(True, 0), (False, 1)])
def test_force_deletes_everything_at_once_with_no_grace_only_if_no_kubelet_lives(
    grace: int, *, dead: bool
) -> None:
    mode = Mode(Force.LABEL, kubelet_dead=dead, next_change=None)
    pods = [
        pod("a"),
        pod("v", claims=("x",)),
        pod("w", claims=("y",)),
        pod("ds", owner="DaemonSet"),
    ]
    step = plan(snapshot(pods, mode=mode))
    assert asked(step) == [(Verb.DELETE, "a"), (Verb.DELETE, "v"), (Verb.DELETE, "w")]
    assert {action.grace for action in step.actions} == {grace}
    assert not step.waiting


def test_a_waiting_drain_wakes_when_its_mode_changes() -> None:
    soon = Mode(Force.NONE, kubelet_dead=False, next_change=NOW + timedelta(seconds=5))
    leaving = pod("a", deleted=NOW + timedelta(minutes=10))
    step = plan(snapshot([leaving], mode=soon))
    assert step.look_again == pytest.approx(5.0, abs=0.01)
    assert step.look_again is not None and step.look_again > 5.0


pods_strategy = st.lists(
    st.builds(
        pod,
        st.from_regex(r"[a-z]{3}", fullmatch=True),
        claims=st.sampled_from([(), ("c",)]),
        priority=st.integers(-2, 2),
        phase=st.sampled_from(["Running", "Succeeded", "Pending"]),
        deleted=st.sampled_from([None, NOW - timedelta(hours=1), NOW + timedelta(seconds=9)]),
    ),
    max_size=8,
    unique_by=lambda p: p.metadata.name,
)


@given(pods=pods_strategy, refused=st.sets(st.integers(0, 7)), at=st.floats(0, 400))
def test_every_pod_is_asked_or_waited_for_and_waiting_has_an_end(
    pods: list[Pod], refused: set[int], at: float
) -> None:
    attempts = new_attempts()
    for index in refused:
        if index < len(pods):
            attempts.refused(pods[index].metadata.uid, 0.0, "no")
    step = plan(snapshot(pods, attempts, monotonic=at))
    seen = [a.pod.metadata.name for a in step.actions] + [p.metadata.name for p in step.waiting]
    assert sorted(seen) == sorted(p.metadata.name for p in pods)
    assert not step.waiting or (step.look_again is not None and step.look_again > 0)


@given(pods=pods_strategy)
def test_never_are_two_pods_with_volumes_asked_in_one_step(pods: list[Pod]) -> None:
    serial = {p.metadata.uid for p in pods if must_go(p) and uses_claims(p)}
    step = plan(snapshot(pods))
    assert sum(action.pod.metadata.uid in serial for action in step.actions) <= 1
