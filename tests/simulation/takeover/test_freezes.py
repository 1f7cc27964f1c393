"""Freezing and unfreezing of the Go original's, left between two of its writes.

Three machines are wanted, one on top: a set is frozen at six and unfrozen at five.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.takeover.as_left import LeftFleet, condition, rolling
from tests.simulation.takeover.handed_over import HandedOver, take_over
from tests.thoroughness import part_of

UNFREEZE = "safety.machine.sapcloud.io/unfreeze"


def fleet(machines: int) -> LeftFleet:
    left = LeftFleet(replicas=3, strategy=rolling(1, 0), surge=1)
    only = left.add_set("a", 3, machines=machines)
    left.complete(only)
    return left


def set_condition(left: LeftFleet) -> None:
    left.sets[0].frozen_condition()


def set_label(left: LeftFleet) -> None:
    left.sets[0].labels["freeze"] = "True"


def deployment_condition(left: LeftFleet) -> None:
    left.deployment["status"]["conditions"].append(
        condition("Frozen", "True", "OverShootingReplicaCount")
    )


def deployment_label(left: LeftFleet) -> None:
    left.deployment["metadata"]["labels"]["freeze"] = "True"


def deployment_asked(left: LeftFleet) -> None:
    left.annotations[UNFREEZE] = "True"


def set_asked(left: LeftFleet) -> None:
    left.sets[0].annotations[UNFREEZE] = "True"


Writes = tuple[Callable[[LeftFleet], None], ...]
WRITES: dict[str, Writes] = {
    "nothing": (),
    "the set's condition": (set_condition,),
    "the set's label alone": (set_label,),
    "the set's label too": (set_condition, set_label),
    "the deployment's condition": (set_condition, set_label, deployment_condition),
    "all": (set_condition, set_label, deployment_condition, deployment_label),
    "unfreezing asked for": (
        set_condition,
        set_label,
        deployment_condition,
        deployment_label,
        deployment_asked,
    ),
    "the deployment's condition gone": (set_condition, set_label, deployment_label),
    "the deployment free, the set asked": (set_condition, set_label, set_asked),
    "the set's condition gone": (set_label, set_asked),
    "the deployment alone": (deployment_condition, deployment_label),
    "the deployment's label alone": (deployment_label,),
    "asked for without a freeze": (deployment_asked,),
    "the set asked without a freeze": (set_asked,),
}


def frozen(seen: HandedOver) -> tuple[bool, bool, bool, bool]:
    (only,) = seen.sets
    shown = []
    for obj in (only, seen.deployment):
        shown.append(obj["metadata"].get("labels", {}).get("freeze") == "True")
        shown.append(seen.condition(obj, "Frozen") is not None)
    return (shown[0], shown[1], shown[2], shown[3])


def bears(seen: HandedOver, annotation: str) -> list[str]:
    return [
        obj["metadata"]["name"]
        for obj in (*seen.sets, seen.deployment)
        if annotation in obj["metadata"].get("annotations", {})
    ]


@pytest.mark.parametrize(
    ("name", "machines"),
    part_of([(name, count) for count in (1, 3, 7) for name in WRITES], one_in=6, in_ci=3),
)
def test_it_ends_with_the_machines_that_are_wanted(name: str, machines: int) -> None:
    left = fleet(machines)
    for write in WRITES[name]:
        write(left)

    async def scenario(seen: HandedOver) -> None:
        await seen.ends("a")
        assert seen.made == max(0, 3 - machines)
        assert len(seen.lost) == max(0, machines - 3)
        assert seen.witness.most == max(3, machines)
        assert frozen(seen) == (False,) * 4
        assert bears(seen, UNFREEZE) == []

    take_over(left, scenario)


@pytest.mark.parametrize("writes", [WRITES["the set's condition"], WRITES["the set's label too"]])
def test_a_freeze_half_done_is_completed_while_there_are_too_many(writes: Writes) -> None:
    """They are held by finalizers of somebody else."""
    left = fleet(7)
    for write in writes:
        write(left)
    for machine in left.machines:
        machine.document["metadata"]["finalizers"].append("example.com/held")

    async def scenario(seen: HandedOver) -> None:
        await seen.sim.until(lambda: frozen(seen) == (True,) * 4, within=30, what="frozen")
        await seen.sim.pass_time(60)
        assert frozen(seen) == (True,) * 4
        assert seen.made == 0
        assert len([m for m in seen.machines if "deletionTimestamp" not in m["metadata"]]) == 3

    take_over(left, scenario)


@pytest.mark.parametrize("step", ["the old set", "the new set"])
def test_a_freeze_in_the_middle_of_a_rollout_costs_no_machine_of_the_new_template(
    step: str,
) -> None:
    left = LeftFleet(replicas=3, strategy=rolling(1, 0), surge=1)
    old = left.add_set("a", 3)
    left.want("b")
    new = left.add_set("b", 1, revision=2)
    left.report(updated=new)
    frozen_one = {"the old set": old, "the new set": new}[step]
    frozen_one.frozen_condition()
    frozen_one.labels["freeze"] = "True"
    deployment_label(left)
    deployment_condition(left)
    updated = {m.uid for m in new.machines}

    async def scenario(seen: HandedOver) -> None:
        await seen.ends("b")
        assert not seen.lost & updated
        assert seen.made == 2
        assert seen.witness.fewest_serving >= 3
        assert seen.witness.most == 4

    take_over(left, scenario)
