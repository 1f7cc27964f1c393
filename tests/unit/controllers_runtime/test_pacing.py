"""Passes over large owners keep a distance; those over small ones, and first ones, never wait."""

from __future__ import annotations

import pytest

from mcm.clock import LoopClock
from mcm.controllers.pacing import LONGEST, SMALL, Pacing, distance
from mcm.controllers.runtime import DONE, Outcome
from mcm.simulation.harness import EPOCH
from mcm.simulation.virtualtime import run_virtual

KEY = "ns/owner"


class _Owner:
    """One owner with so many children, and how often it was looked at."""

    def __init__(self, children: int) -> None:
        self.children = children
        self.passes = 0
        self.clock = LoopClock(EPOCH)
        self.pacing = Pacing(self.clock, lambda _: self.children)
        self.reconcile = self.pacing.of(self._look)

    async def _look(self, _: str) -> Outcome:
        self.passes += 1
        return DONE


def test_what_comes_soon_after_a_pass_waits_for_the_others() -> None:
    async def main() -> None:
        owner = _Owner(1_000)
        assert owner.pacing.wait(KEY) == 0
        await owner.reconcile(KEY)
        assert owner.pacing.wait(KEY) == pytest.approx(distance(1_000))
        await owner.clock.sleep(0.15)
        assert owner.pacing.wait(KEY) == pytest.approx(distance(1_000) - 0.15)
        await owner.clock.sleep(1)
        assert owner.pacing.wait(KEY) == 0
        assert owner.passes == 1

    run_virtual(main)


def test_small_owners_never_wait() -> None:
    async def main() -> None:
        owner = _Owner(SMALL)
        await owner.reconcile(KEY)
        assert owner.pacing.wait(KEY) == 0

    run_virtual(main)


def test_an_owner_that_became_small_or_went_waits_no_more() -> None:
    async def main() -> None:
        owner = _Owner(10_000)
        await owner.reconcile(KEY)
        owner.children = 0
        assert owner.pacing.wait(KEY) == 0
        await owner.reconcile(KEY)
        owner.children = 10_000
        assert owner.pacing.wait(KEY) == 0, "nothing is remembered of it"

    run_virtual(main)


def test_owners_do_not_wait_for_one_another() -> None:
    async def main() -> None:
        owner = _Owner(1_000)
        await owner.reconcile(KEY)
        assert owner.pacing.wait("ns/another") == 0

    run_virtual(main)


def test_nobody_waits_for_longer_than_the_longest() -> None:
    assert distance(1_000_000) == LONGEST
    assert [distance(n) for n in (0, 1, SMALL)] == [0, 0, 0]
