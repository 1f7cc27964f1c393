from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from mcm.api.core import Pod
from mcm.drain.request import Limits
from mcm.drain.volumes import Handover, Lanes, LaneWidths, Stage
from mcm.drain.volumes.lane_widths import Lesson, lesson_of, next_width
from tests.unit.drain.volumes.small_cluster import START, SmallCluster


def one(_attacher: str) -> int:
    return 1


def lanes(
    cluster: SmallCluster, *handovers: Handover, width: Callable[[str], int] = one
) -> tuple[Lanes, Callable[[Pod], bool]]:
    view = cluster.view()
    made = Lanes(handovers, view, width)

    def ask(pod: Pod) -> bool:
        holdings = view.exclusive_of(pod)
        if not made.admits(holdings):
            return False
        made.take(holdings)
        return True

    return made, ask


def test_one_pod_of_an_attacher_is_on_its_way_at_a_time() -> None:
    cluster = SmallCluster()
    first, second = cluster.stateful("a"), cluster.stateful("b")
    other = cluster.stateful("c", attacher="other.example.com")
    _, ask = lanes(cluster)
    assert [ask(first), ask(second), ask(other)] == [True, False, True]


def test_a_lane_is_held_until_the_handover_is_over() -> None:
    cluster = SmallCluster()
    first, second = cluster.stateful("a"), cluster.stateful("b")
    handover = cluster.ask(first)
    cluster.end(first)
    cluster.detach("pv-data-a")
    handover = cluster.look(handover, after=1)
    assert handover.stage is Stage.DETACHED
    assert not lanes(cluster, handover)[1](second)
    handover = cluster.look(handover, after=15)
    assert handover.over
    assert lanes(cluster, handover)[1](second)


def test_a_wider_lane_takes_more() -> None:
    cluster = SmallCluster()
    pods = [cluster.stateful(name) for name in "abcd"]
    made, ask = lanes(cluster, width=lambda _: 3)
    assert [ask(pod) for pod in pods] == [True, True, True, False]
    assert made.held("csi.example.com") == 3


def test_a_width_below_one_stops_nothing_for_ever() -> None:
    cluster = SmallCluster()
    assert lanes(cluster, width=lambda _: 0)[1](cluster.stateful("a"))


def test_pods_without_exclusive_volumes_need_no_lane() -> None:
    cluster = SmallCluster()
    busy = cluster.ask(cluster.stateful("a"))
    assert lanes(cluster, busy)[1](cluster.pod("plain"))


def test_the_second_pod_of_a_shared_volume_goes_along_with_the_first() -> None:
    cluster = SmallCluster()
    cluster.attach(cluster.claim("c"))
    first, second = (cluster.pod(name, "c") for name in "ab")
    third = cluster.stateful("d")
    _, ask = lanes(cluster)
    assert [ask(first), ask(second), ask(third)] == [True, True, False]
    handover = cluster.ask(first)
    _, ask = lanes(cluster, handover)
    assert [ask(third), ask(second)] == [False, True]


def test_pods_that_share_volumes_through_a_third_are_one_unit() -> None:
    cluster = SmallCluster()
    for claim in "cd":
        cluster.attach(cluster.claim(claim))
    first, last = cluster.pod("first", "c"), cluster.pod("last", "d")
    cluster.pod("between", "c", "d")
    _, ask = lanes(cluster, cluster.ask(first))
    assert ask(last)


def test_both_lanes_are_taken_or_none() -> None:
    cluster = SmallCluster()
    cluster.attach(cluster.claim("x"), attacher="x")
    cluster.attach(cluster.claim("y"), attacher="y")
    both = cluster.pod("both", "x", "y")
    only = cluster.stateful("only", attacher="y")
    busy = cluster.ask(cluster.stateful("busy", attacher="x"))
    made, ask = lanes(cluster, busy)
    assert not ask(both)
    assert made.held("y") == 0
    assert ask(only)


def test_a_unit_takes_the_lanes_of_all_its_pods_before_its_first_one_goes() -> None:
    """Else its second pod could find its own lane taken, and the first one's volume held."""
    cluster = SmallCluster()
    cluster.attach(cluster.claim("x"), attacher="x")
    cluster.attach(cluster.claim("y"), attacher="y")
    first, second = cluster.pod("first", "x"), cluster.pod("second", "x", "y")
    busy = cluster.ask(cluster.stateful("busy", attacher="y"))
    _, ask = lanes(cluster, busy)
    assert [ask(first), ask(second)] == [False, False]
    handover, late = cluster.ask(first), cluster.stateful("late", attacher="y")
    _, ask = lanes(cluster, handover)
    assert [ask(late), ask(second)] == [False, True]


# ---- widths --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("width", "lesson", "then"),
    [
        (1, Lesson.QUICK, 2),
        (7, Lesson.QUICK, 8),
        (8, Lesson.QUICK, 8),
        (5, Lesson.SLOW, 5),
        (5, Lesson.FAILED, 1),
        (1, Lesson.FAILED, 1),
    ],
)
def test_widths_grow_by_one_and_fall_to_one(width: int, lesson: Lesson, then: int) -> None:
    assert next_width(width, lesson) == then


def gone(**changes: object) -> Handover:
    cluster = SmallCluster()
    handover = cluster.ask(cluster.stateful("a"))
    state = replace(handover, stage=Stage.GONE, gone_at=START, since=START)
    return replace(state, **changes)  # type: ignore[arg-type]


def left(seconds: float) -> dict[str, object]:
    moment = START + timedelta(seconds=seconds)
    return {"stage": Stage.DETACHED, "since": moment, "detached_at": moment}


@pytest.mark.parametrize(
    ("changes", "lesson"),
    [
        ({}, None),
        (left(14.9), Lesson.QUICK),
        (left(15), Lesson.SLOW),
        ({**left(1), "error": "busy"}, Lesson.FAILED),
        ({"error": "busy"}, Lesson.FAILED),
        ({"stage": Stage.SKIPPED, "late": True, "blamed": True}, Lesson.FAILED),
        ({"stage": Stage.SKIPPED, "late": True}, None),
        ({"stage": Stage.SKIPPED}, None),
    ],
)
def test_what_a_handover_teaches(changes: dict[str, object], lesson: Lesson | None) -> None:
    assert lesson_of(gone(), gone(**changes)) is lesson


def test_the_same_state_teaches_nothing_twice() -> None:
    for state in (
        gone(**left(1)),
        gone(error="busy"),
        gone(stage=Stage.SKIPPED, late=True, blamed=True),
    ):
        assert lesson_of(state, state) is None


def test_learned_widths_count_in_the_adaptive_mode_only_and_by_attacher() -> None:
    widths, adaptive = LaneWidths(), Limits(adaptive=True)
    for _ in range(3):
        widths.learn(gone(), gone(**left(1)))
    assert widths.of("csi.example.com", adaptive) == 4
    assert widths.of("csi.example.com", Limits()) == 1
    assert widths.of("csi.example.com", Limits(lane_width=6, adaptive=True)) == 6
    assert widths.of("other", adaptive) == 1
    widths.learn(gone(), gone(error="busy"))
    assert widths.of("csi.example.com", adaptive) == 1
