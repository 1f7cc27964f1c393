from __future__ import annotations

import random

import pytest

from mcm.controllers.machine.backoff import MachineBackoff, Pace


def backoff(exhausted: float = 600.0) -> MachineBackoff:
    return MachineBackoff(exhausted=exhausted, random=random.Random(1))


@pytest.mark.parametrize(
    ("pace", "first", "longest"),
    [(Pace.TRANSIENT, 5.0, 180.0), (Pace.LASTING, 30.0, 600.0)],
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


def test_quota_is_asked_for_no_sooner_than_configured_and_never_in_step() -> None:
    memory = backoff(exhausted=240.0)
    waits = [memory.failed("m", Pace.EXHAUSTED, 0.0) for _ in range(12)]
    assert all(240.0 <= wait <= 300.0 for wait in waits)
    assert len(set(waits)) == 12


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
