from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thoroughness import THOROUGH
from tests.unit.drain.budgets.world import World

STEPS = (
    "drain", "drain", "answer", "answer", "lose", "other", "recount", "end", "budget", "pod",
    "relist", "serve",
)  # fmt: skip
_worlds = st.builds(
    lambda sizes, spare: World(
        [[f"p{d}-{i}" for i in range(size)] for d, size in enumerate(sizes)],
        needed=max(1, sum(sizes) - spare),
    ),
    st.lists(st.integers(1, 3), min_size=1, max_size=4),
    st.integers(0, 3),
)
_histories = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 7)), max_size=60)


def take(world: World, step: str, choice: int) -> None:
    match step:
        case "drain":
            world.drain(choice % len(world.pods_of))
        case "answer":
            world.answer(choice)
        case "lose":
            world.answer(choice, lost=True)
        case "other":
            world.evict_by_another(choice)
        case "recount":
            world.recount()
        case "end":
            world.end_pod(choice)
        case "budget":
            world.deliver_budget()
        case "serve":
            world.serve(choice)
        case "relist":
            world.relist_budget()
        case _:
            world.deliver_pod()


def settle(world: World, chance: Random) -> None:
    """Let everything happen that was begun, and tell the mirrors all of it, in any order."""
    world.recount()
    while world.in_flight or world.is_behind:
        steps = (world.relist_budget, world.deliver_budget, world.deliver_pod)
        chance.choice((*steps, lambda: world.serve(0), lambda: world.answer(0)))()


@settings(max_examples=1500 if THOROUGH else 150, deadline=None)
@given(_worlds, _histories)
def test_a_budget_refuses_only_what_somebody_else_has_taken(
    world: World, history: list[tuple[str, int]]
) -> None:
    for step, choice in history:
        take(world, step, choice)
    assert not world.unexcused


@settings(max_examples=1500 if THOROUGH else 150, deadline=None)
@given(_worlds, _histories, st.randoms(use_true_random=False))
def test_every_allowance_is_used_by_drains_that_only_events_and_timers_wake(
    world: World, history: list[tuple[str, int]], chance: Random
) -> None:
    for step, choice in history:
        take(world, step, choice)
    for _ in range(500):
        settle(world, chance)
        while world.woken:
            world.drain(min(world.woken))
        if world.in_flight or world.pass_time():
            continue
        assert world.budget is not None
        assert not (held(world) and world.budget.status.disruptions_allowed)
        before = world.version
        world.end_pod(0)
        world.recount()
        if world.version == before:
            break
    assert not held(world) or world.needed >= sum(map(len, world.pods_of))


def held(world: World) -> int:
    return sum(len(world.waiting(drain)) for drain in range(len(world.pods_of)))
