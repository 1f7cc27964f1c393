from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.controllers.machine.backoff import Backoff, Pace
from mcm.controllers.machine.lanes import DriverLanes, Lane


def backoff(exhausted: float = 600.0) -> Backoff:
    return Backoff(exhausted=exhausted, random=random.Random(1))


@pytest.mark.parametrize(
    ("pace", "first", "longest"),
    [(Pace.TRANSIENT, 5.0, 180.0), (Pace.LASTING, 30.0, 600.0), (Pace.EXHAUSTED, 30.0, 240.0)],
)
def test_waits_double_up_to_a_limit_and_never_in_step(
    pace: Pace, first: float, longest: float
) -> None:
    memory = backoff(exhausted=240.0)
    waits = [memory.failed("m", pace, 0.0) for _ in range(12)]
    assert 0.75 * first <= waits[0] <= first
    assert all(wait <= longest for wait in waits)
    assert waits[-1] >= 0.75 * longest
    assert len(set(waits[-4:])) == 4


def test_a_key_waits_for_what_is_left() -> None:
    memory = backoff()
    wait = memory.failed("m", Pace.TRANSIENT, 100.0)
    assert memory.wait("m", 101.0) == pytest.approx(wait - 1.0)
    assert memory.wait("m", 200.0) == 0.0
    assert memory.wait("other", 101.0) == 0.0


def test_what_was_mended_is_tried_at_once_and_counts_anew() -> None:
    memory = backoff()
    for _ in range(5):
        memory.failed("m", Pace.LASTING, 0.0, circumstances="class@1")
    assert memory.wait("m", 1.0, circumstances="class@1") > 0
    assert memory.wait("m", 1.0, circumstances="class@2") == 0.0
    assert memory.failed("m", Pace.LASTING, 1.0, circumstances="class@2") <= 30.0
    assert memory.count("m") == 1


def test_another_kind_of_failure_counts_anew() -> None:
    memory = backoff()
    for _ in range(5):
        memory.failed("m", Pace.EXHAUSTED, 0.0)
    assert memory.failed("m", Pace.TRANSIENT, 0.0) <= 5.0


def test_success_clears_the_memory() -> None:
    memory = backoff()
    memory.failed("m", Pace.LASTING, 0.0)
    memory.forget("m")
    assert memory.wait("m", 0.0) == 0.0
    assert len(memory) == 0


def test_a_thousand_failures_do_no_harm() -> None:
    memory = backoff()
    waits = [memory.failed("m", Pace.LASTING, 0.0) for _ in range(2000)]
    assert max(waits) <= 600.0


def test_a_full_lane_turns_away_and_calls_when_there_is_room() -> None:
    woken: list[str] = []
    lanes = DriverLanes(width=1, wake=woken.append)
    with lanes.place(Lane.CREATION, "a") as a:
        assert a
        with lanes.place(Lane.CREATION, "b") as b:
            assert not b
        with lanes.place(Lane.DELETION, "c") as c:
            assert c
        assert woken == []
    assert woken == ["b"]


def test_who_was_called_and_does_not_come_in_passes_the_call_on() -> None:
    woken: list[str] = []
    lanes = DriverLanes(width=1, wake=woken.append)
    with lanes.place(Lane.CREATION, "a"):
        for key in ("b", "c"):
            with lanes.place(Lane.CREATION, key) as placed:
                assert not placed
    lanes.forget("b")
    assert woken == ["b", "c"]


def test_a_place_is_free_again_after_an_error() -> None:
    lanes = DriverLanes(width=1, wake=lambda _: None)
    with pytest.raises(RuntimeError), lanes.place(Lane.CREATION, "a"):
        raise RuntimeError
    with lanes.place(Lane.CREATION, "b") as placed:
        assert placed


@given(
    width=st.integers(1, 3),
    needs=st.lists(st.booleans(), min_size=1, max_size=10),
    chance=st.randoms(use_true_random=False),
)
def test_nobody_who_waits_is_forgotten(
    width: int, needs: list[bool], chance: random.Random
) -> None:
    """Workers take ready keys in any order; each key that needs a place gets one in the end."""
    ready = [f"k{n}" for n in range(len(needs))]
    wanting = {f"k{n}" for n, need in enumerate(needs) if need}
    lanes = DriverLanes(width=width, wake=lambda key: ready.append(key))
    inside: list[tuple[str, object]] = []
    served: set[str] = set()
    while ready or inside:
        if inside and (not ready or chance.random() < 0.4):
            key, context = inside.pop(chance.randrange(len(inside)))
            context.__exit__(None, None, None)  # type: ignore[attr-defined]
            continue
        key = ready.pop(chance.randrange(len(ready)))
        lanes.forget(key)
        if key not in wanting or key in served:
            continue
        context = lanes.place(Lane.CREATION, key)
        if context.__enter__():
            served.add(key)
            inside.append((key, context))
        else:
            context.__exit__(None, None, None)
        assert len(inside) <= width
    assert served == wanting
