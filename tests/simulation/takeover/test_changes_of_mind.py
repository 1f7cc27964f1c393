"""An update in place of the Go original's whose user changes their mind as our manager begins."""

from __future__ import annotations

import pytest

from tests.simulation.takeover.as_left import rolling
from tests.simulation.takeover.handed_over import HandedOver, take_over
from tests.simulation.takeover.test_updates_in_place import STEPS, UPDATED_FROM, Update
from tests.thoroughness import part_of

WITH_THE_AGENT = tuple(STEPS).index("one is drained")

ON_ITS_WAY = ("one is selected", "one drains")
"""An empty Node is drained at once: the revert or the agent may come first."""


def step_of(name: str) -> int:
    return tuple(STEPS).index(name)


REVERTS_GONE_WRONG = [
    ("all Nodes are tainted", 0),
    ("one is its agent's", 0),
    ("the new set is larger", 0),
]
STRATEGIES_GONE_WRONG = ["one has moved", "it is unpinned"]
SIZES_GONE_WRONG = [("the machine says so", 2)]


@pytest.mark.parametrize(
    ("name", "surge"),
    sorted(
        {
            *part_of([(n, s) for s in (0, 1) for n in tuple(STEPS)[::2]], one_in=8, in_ci=4),
            *REVERTS_GONE_WRONG,
        }
    ),
)
def test_a_revert_updates_back_who_was_updated(name: str, surge: int) -> None:
    update = STEPS[name](Update(surge=surge))
    update.left.want("a")
    one = update.one
    there = len(update.left.machines) - 4
    touched = step_of(name) >= WITH_THE_AGENT

    async def scenario(seen: HandedOver) -> None:
        await seen.ends("a", within=1800)
        assert seen.made <= there, "one on top for one that went as too many"
        assert len(seen.lost) <= there + seen.made
        worked = seen.agents.worked
        assert set(worked) <= {one.name} | {m.name for m in update.left.sets[-1].machines}
        if not there and name in ON_ITS_WAY:
            assert worked[one.name] in (0, 2)  # called off, or drained before that and updated back
        elif not there:
            assert worked[one.name] == touched + (WITH_THE_AGENT <= step_of(name) < UPDATED_FROM)

    take_over(update.left, scenario)


@pytest.mark.parametrize("name", part_of(tuple(STEPS)[1::2], one_in=4, in_ci=2))
def test_a_third_template_replaces_nobody(name: str) -> None:
    update = STEPS[name](Update())
    update.left.want("c")

    async def scenario(seen: HandedOver) -> None:
        await seen.ends("c", within=1800)
        assert (seen.made, seen.lost) == (0, set())

    take_over(update.left, scenario)


@pytest.mark.parametrize(
    "name", sorted({*part_of(tuple(STEPS)[1::2], one_in=4, in_ci=2), *STRATEGIES_GONE_WRONG})
)
def test_another_strategy_keeps_who_is_updated(name: str) -> None:
    update = STEPS[name](Update())
    update.left.spec["strategy"] = rolling(1, 0)
    one, done = update.one, step_of(name) >= UPDATED_FROM

    async def scenario(seen: HandedOver) -> None:
        await seen.ends("b", within=1800)
        assert seen.made == len(seen.lost)
        if done:
            assert one.uid not in seen.lost
            assert seen.made == 3
        else:
            assert seen.made == 4

    take_over(update.left, scenario)


@pytest.mark.parametrize(
    ("name", "replicas"),
    sorted(
        {
            *part_of([(n, r) for r in (2, 6) for n in tuple(STEPS)[::2]], one_in=8, in_ci=4),
            *SIZES_GONE_WRONG,
        }
    ),
)
def test_another_size_holds_nothing_up(name: str, replicas: int) -> None:
    update = STEPS[name](Update())
    update.left.spec["replicas"] = replicas
    one, done = update.one, step_of(name) >= UPDATED_FROM
    shown = step_of(name) >= tuple(STEPS).index("the machine says so")

    async def scenario(seen: HandedOver) -> None:
        await seen.ends("b", within=1800)
        assert seen.made == max(0, replicas - 4)
        assert len(seen.lost) == max(0, 4 - replicas)
        assert not (shown and one.uid in seen.lost)
        assert not (done and one.name in seen.agents.worked)

    take_over(update.left, scenario)


@pytest.mark.parametrize("name", part_of(tuple(STEPS)[1::2], one_in=4, in_ci=2))
def test_paused_nobody_more_is_selected(name: str) -> None:
    update = STEPS[name](Update())
    update.left.spec["paused"] = True

    async def scenario(seen: HandedOver) -> None:
        await seen.sim.pass_time(180)
        assert set(seen.agents.worked) <= {update.one.name}
        assert (seen.made, seen.lost) == (0, set())
        await seen.patch_deployment({"spec": {"paused": None}})
        await seen.ends("b", within=1800)
        assert (seen.made, seen.lost) == (0, set())

    take_over(update.left, scenario)


def test_who_failed_is_replaced_after_a_while_and_nobody_else() -> None:
    update = Update().handed_to_its_agent()
    one = update.one
    one.label_node(update_result="failed")
    one.its_node["metadata"]["annotations"]["node.machine.sapcloud.io/update-failed-reason"] = (
        "disk full"
    )
    update.shows(one, "UpdateFailed")
    update.mirrors(one)
    one.set_phase("InPlaceUpdateFailed", "InPlaceUpdate", "Failed", "disk full")

    async def scenario(seen: HandedOver) -> None:
        await seen.ends("b", within=1800)
        assert seen.lost == {one.uid}
        assert seen.made == 1
        assert seen.witness.most <= 4 + 1

    take_over(update.left, scenario)


def test_marks_of_an_update_long_over_hold_nothing_up() -> None:
    """The original never unlocks a set that it has locked; here a rolling update begins."""
    update = Update().sized()
    left = update.left
    for machine in update.old.machines:
        machine.its_node["spec"].pop("taints", None)
    update.old.labels["node.machine.sapcloud.io/scale-up-disabled"] = "true"
    left.spec["strategy"] = rolling(1, 0)
    left.want("a")

    async def scenario(seen: HandedOver) -> None:
        await seen.ends("a", within=900)
        assert seen.made == 1
        assert seen.lost == {update.one.uid}

    take_over(left, scenario)
