from __future__ import annotations

import random

from mcm.clock import LoopClock
from mcm.controllers.machine.backoff import MachineBackoff, Pace
from mcm.controllers.machine.hot_update.pace import A_SECOND, AT_ONCE, HotUpdatePace
from tests.unit.machine.bench import EPOCH, on_bench


def new_pace() -> tuple[HotUpdatePace, LoopClock]:
    clock = LoopClock(EPOCH)
    backoff = MachineBackoff(exhausted=600.0, random=random.Random(1))
    return HotUpdatePace(clock=clock, backoff=backoff), clock


@on_bench
async def test_turns_are_given_in_the_order_of_asking_so_many_a_second() -> None:
    pace, clock = new_pace()
    pace.regard("c", "now")
    waits = [pace.turn(f"m{n}", "c") for n in range(AT_ONCE + 20)]
    assert waits[:AT_ONCE] == [0.0] * AT_ONCE
    assert [round(w, 6) for w in waits[AT_ONCE:]] == [(n + 1) / A_SECOND for n in range(20)]
    await clock.sleep(1.0)
    last = f"m{AT_ONCE + 19}"
    assert round(pace.turn(last, "c"), 6) == 3.0, "to ask again costs no other turn"
    await clock.sleep(3.0)
    assert pace.turn(last, "c") == 0.0


@on_bench
async def test_one_is_tried_until_one_has_succeeded_and_none_soon_after_a_failure() -> None:
    pace, clock = new_pace()
    assert pace.at_once("c") == 1
    pace.regard("c", "now")
    wait = pace.failed("a", "c", Pace.TRANSIENT)
    assert pace.at_once("c") == 0
    await clock.sleep(wait)
    assert pace.at_once("c") == 1
    assert pace.failed("b", "c", Pace.TRANSIENT) > wait, "it is the class that fails"
    pace.succeeded("b", "c")
    assert pace.at_once("c") == AT_ONCE
    pace.failed("a", "c", Pace.TRANSIENT)
    assert pace.at_once("c") == AT_ONCE, "what succeeded for one is not at fault"
    assert pace.wait("a", "c") > 0
    assert pace.wait("b", "c") == 0


@on_bench
async def test_what_is_new_is_tried_at_once_and_on_one() -> None:
    pace, _ = new_pace()
    pace.regard("c", "now")
    pace.failed("a", "c", Pace.LASTING)
    pace.regard("c", "mended")
    assert pace.at_once("c") == 1
    assert pace.wait("a", "c") == 0
    pace.unsupported("a", "c")
    assert pace.is_unsupported("c")
    pace.regard("c", "mended")
    assert pace.is_unsupported("c"), "nothing is new"
    pace.regard("c", "changed")
    assert not pace.is_unsupported("c")
    assert pace.at_once("c") == 1
