from __future__ import annotations

import asyncio
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from mcm.clock import LoopClock
from mcm.drain.execution import Turns
from mcm.simulation.virtualtime import run_virtual
from tests.unit.drain.pods import NOW

CLOCK = LoopClock(NOW)


async def test_a_drain_has_so_many_requests_under_way_and_all_together_so_many() -> None:
    turns = Turns(total=5, each=2)
    under_way: Counter[str] = Counter()
    most: Counter[str] = Counter()

    async def request(drain: str) -> None:
        async with turns.turn(drain):
            under_way[drain] += 1
            under_way["all"] += 1
            for name in (drain, "all"):
                most[name] = max(most[name], under_way[name])
            await CLOCK.sleep(0)
            under_way[drain] -= 1
            under_way["all"] -= 1

    await asyncio.gather(*(request(drain) for drain in "aaaaabbbbbcccccddddd"))
    assert dict(most) == {"a": 2, "b": 2, "c": 2, "d": 2, "all": 5}


def test_a_drain_of_one_pod_does_not_wait_for_one_of_hundreds() -> None:
    async def main() -> None:
        turns = Turns(total=4, each=3)
        ended: dict[str, float] = {}

        async def request(drain: str, pod: int) -> None:
            async with turns.turn(drain):
                await CLOCK.sleep(1.0)
            ended[f"{drain}{pod}"] = CLOCK.monotonic()

        async with asyncio.TaskGroup() as group:
            for pod in range(300):
                group.create_task(request("large", pod))
            for other in range(3):
                group.create_task(request("other", other))
            group.create_task(request("small", 0))
        assert ended["small0"] <= 2.0
        assert ended["other2"] <= 3.0
        assert max(ended.values()) < 110.0

    run_virtual(main)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.integers(0, 5)), max_size=25)
)
def test_who_gives_up_loses_nobody_a_turn(requests: list[tuple[str, int, int]]) -> None:
    async def main() -> None:
        turns = Turns(total=2, each=1)
        done: list[int] = []

        async def request(number: int, drain: str, takes: int, patience: int) -> None:
            try:
                async with asyncio.timeout(patience + 0.5):
                    async with turns.turn(drain):
                        await CLOCK.sleep(takes)
                        done.append(number)
            except TimeoutError:
                pass

        async with asyncio.TaskGroup() as group:
            for number, (drain, takes, patience) in enumerate(requests):
                group.create_task(request(number, drain, takes, patience))
        async with asyncio.timeout(1.0), turns.turn("a"), turns.turn("b"):
            pass

    run_virtual(main)


async def test_who_is_cancelled_in_the_moment_of_its_turn_gives_it_on() -> None:
    turns = Turns(total=1, each=1)
    holder = turns.turn("a")
    await holder.__aenter__()

    async def wait() -> None:
        async with turns.turn("b"):
            raise AssertionError("it was cancelled before")

    waiting = asyncio.create_task(wait())
    await CLOCK.sleep(0)
    await holder.__aexit__(None, None, None)  # its turn has come, and it does not know yet
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(1.0), turns.turn("c"):
        pass
