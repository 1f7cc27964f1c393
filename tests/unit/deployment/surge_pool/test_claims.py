"""Claims last until the mirror tells what became of a write."""

from __future__ import annotations

from mcm.api.machine import MachineSet
from mcm.clock import LoopClock
from mcm.controllers.deployment.surge_pool.claims import BELIEVED_FOR, Claim, Claims
from mcm.controllers.deployment.surge_pool.usage import PossibleChanges
from mcm.simulation.harness import EPOCH
from mcm.simulation.virtualtime import run_virtual
from tests.unit.deployment.objects import owned_set

KEY = "ns/zone"
NOTHING = PossibleChanges()


def at_generation(generation: int) -> MachineSet:
    return owned_set("set", 3, generation=generation)


def test_a_claim_under_way_counts_whatever_the_mirror_shows_and_ends_with_its_answer() -> None:
    async def main() -> None:
        claims = Claims(LoopClock(EPOCH))
        growth, creation = Claim("set", 4, 1), Claim("other", 2, None)
        claims.add(KEY, [growth, creation])
        for generation in (1, 2):
            possible = claims.possible(KEY, [at_generation(generation)])
            assert possible == PossibleChanges(sizes=(("set-uid", 4),), created=(2,))
        claims.drop(KEY, [growth, creation])
        assert claims.possible(KEY, [at_generation(1)]) == NOTHING
        assert len(claims) == 0

    run_virtual(main)


def test_a_lost_change_counts_until_a_newer_spec_is_seen() -> None:
    async def main() -> None:
        claims = Claims(LoopClock(EPOCH))
        growth = Claim("set", 4, 1)
        claims.add(KEY, [growth])
        claims.lose([growth])
        assert claims.possible(KEY, [at_generation(1)]).sizes == (("set-uid", 4),)
        assert claims.possible(KEY, [at_generation(2)]) == NOTHING
        assert len(claims) == 0

    run_virtual(main)


def test_a_lost_creation_counts_until_the_set_is_seen() -> None:
    async def main() -> None:
        claims = Claims(LoopClock(EPOCH))
        creation = Claim("set", 2, None)
        claims.add(KEY, [creation])
        claims.lose([creation])
        assert claims.possible(KEY, []).created == (2,)
        assert claims.possible(KEY, [at_generation(1)]) == NOTHING

    run_virtual(main)


def test_a_lost_change_of_a_set_that_is_gone_counts_no_more() -> None:
    async def main() -> None:
        claims = Claims(LoopClock(EPOCH))
        growth = Claim("set", 4, 1)
        claims.add(KEY, [growth])
        claims.lose([growth])
        assert claims.possible(KEY, []) == NOTHING

    run_virtual(main)


def test_what_nobody_ever_sees_is_believed_for_a_time_only() -> None:
    async def main() -> None:
        clock = LoopClock(EPOCH)
        claims = Claims(clock)
        growth = Claim("set", 4, 1)
        claims.add(KEY, [growth])
        assert claims.next_expiry([KEY, "ns/other"]) is None  # under way: whoever made it tells
        claims.lose([growth])
        assert claims.next_expiry([KEY, "ns/other"]) == BELIEVED_FOR
        await clock.sleep(BELIEVED_FOR - 1)
        assert claims.next_expiry([KEY]) == 1.0
        assert claims.possible(KEY, [at_generation(1)]).sizes
        await clock.sleep(1)
        assert claims.possible(KEY, [at_generation(1)]) == NOTHING
        assert claims.next_expiry([KEY]) is None

    run_virtual(main)


def test_of_a_deployment_that_is_gone_nothing_is_kept() -> None:
    async def main() -> None:
        claims = Claims(LoopClock(EPOCH))
        claims.add(KEY, [Claim("set", 4, 1)])
        claims.forget(KEY)
        assert len(claims) == 0

    run_virtual(main)


def test_a_machine_selected_for_its_update_counts_until_it_is_seen_to_be() -> None:
    async def main() -> None:
        claims = Claims(LoopClock(EPOCH))
        selections = [Claim("m1", selects=True), Claim("m2", selects=True)]
        claims.add(KEY, selections)
        assert claims.possible(KEY, []) == PossibleChanges(selected=2)
        assert claims.possible(KEY, [], {"m1"}) == PossibleChanges(selected=1)
        claims.lose(selections)
        assert claims.possible(KEY, [], {"m1"}) == PossibleChanges(selected=1)
        assert claims.possible(KEY, [], {"m1", "m2"}) == NOTHING
        assert len(claims) == 0

    run_virtual(main)
