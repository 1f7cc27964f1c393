"""Refused writes, lost answers, a lagging mirror, a user of two minds: in any order.

What holds for the made-up family must hold for MachineSets in the same words.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcm.api.machine import MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject, KubeObject, Resource
from mcm.api.names import MACHINE_FINALIZER
from mcm.client.errors import Conflict, Forbidden, KubeError, RequestTimeout, ServerError
from mcm.controllers import machineset
from mcm.controllers.context import ControllerContext
from mcm.controllers.runtime import Controller
from tests.unit.machineset import objects
from tests.unit.machineset.cluster import Cluster, Running, Write, play
from tests.unit.owning import test_third_family, widgets


@dataclass(frozen=True)
class Family:
    """An owner called ``set``, and a child as somebody might make it by hand."""

    owners: Resource[KubeObject]
    children: Resource[KubeObject]
    finalizer: str
    build: Callable[[ControllerContext], Sequence[Controller]]
    owner: Callable[[int], JSONObject]
    child: Callable[[str], JSONObject]


def machine_set(replicas: int) -> JSONObject:
    labels = {"labels": objects.LABELS, "finalizers": [MACHINE_FINALIZER]}
    spec: JSONObject = {
        "replicas": replicas,
        "selector": {"matchLabels": objects.LABELS},
        "template": {"metadata": labels, "spec": objects.SPEC},
    }
    return {"metadata": {"name": "set"}, "spec": spec}


def machine(name: str) -> JSONObject:
    return {"metadata": {"name": name, "labels": objects.LABELS}, "spec": objects.SPEC}


WIDGETS = Family(
    widgets.WIDGET_SETS,
    widgets.WIDGETS,
    widgets.FINALIZER,
    lambda ctx: (widgets.build(ctx),),
    test_third_family.widget_set,
    test_third_family.widget,
)
MACHINE = Family(MACHINE_SETS, MACHINES, MACHINE_FINALIZER, machineset.build, machine_set, machine)

REFUSED = (
    RequestTimeout("no answer, and nothing done"),
    ServerError(500, "InternalError", "nothing done"),
    Conflict(409, "Conflict", "nothing done"),
    Forbidden(403, "Forbidden", "quota"),
)
LOST = (RequestTimeout("no answer, though done"), ServerError(504, "Timeout", "though done"))


class World:
    """A cluster whose writes fail by ``chance`` for as long as the weather is foul."""

    def __init__(self, family: Family, chance: random.Random) -> None:
        self.foul = False
        self.most_owned = 0
        self.family = family
        self.cluster = Cluster()
        self._chance = chance
        self.cluster.api.refuse = lambda _: self._fault(REFUSED)
        self.cluster.api.lose = self._after

    def living(self) -> list[KubeObject]:
        children = self.cluster.all(self.family.children)
        return [child for child in children if child.metadata.deletion_timestamp is None]

    def owned(self) -> list[KubeObject]:
        return [child for child in self.living() if child.metadata.controller_ref()]

    def status(self) -> tuple[int, int]:
        """Return the replicas and the generation that the owner's status tells of."""
        stored = self.cluster.api.stored(self.family.owners, "set", "ns")["status"]
        assert isinstance(stored, dict)
        return stored.get("replicas", 0), stored["observedGeneration"]

    def catch_up(self) -> None:
        """The watch brings what no answer told."""
        for resource in (self.family.children, self.family.owners):
            self.cluster.catch_up(resource)

    async def vanish(self) -> None:
        """Whoever held back what is being deleted lets it go."""
        for child in self.cluster.all(self.family.children):
            if child.metadata.deletion_timestamp is not None:
                change: JSONObject = {"metadata": {"finalizers": None}}
                await self.cluster.patch(self.family.children, child.metadata.name, change)

    def _fault(self, errors: tuple[KubeError, ...]) -> KubeError | None:
        if not self.foul or self._chance.random() > 0.25:
            return None
        return self._chance.choice(errors)

    def _after(self, _: Write) -> KubeError | None:
        self.most_owned = max(self.most_owned, len(self.owned()))
        return self._fault(LOST)


@pytest.mark.parametrize("family", [WIDGETS, MACHINE], ids=["widgets", "machines"])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32))
@example(seed=282)  # a refusal after a lost answer
@example(seed=110098453)  # a status without an answer
def test_never_a_child_too_many_and_the_right_number_in_the_end(family: Family, seed: int) -> None:
    async def scenario() -> None:
        chance = random.Random(seed)
        world, asked, strays = World(family, chance), [chance.randint(0, 5)], 0
        cluster = world.cluster
        async with Running(cluster, family.build(cluster.context)) as controllers:
            await cluster.create(family.owners, family.owner(asked[0]))
            for _ in range(chance.randint(1, 5)):
                world.foul = True
                await controllers.settle(chance.choice((0.001, 0.1, 3.0, 60.0)))
                world.foul = False
                if chance.random() < 0.5:
                    world.catch_up()
                if chance.random() < 0.3:
                    strays += 1
                    await cluster.create(family.children, family.child(f"stray{strays}"))
                if chance.random() < 0.5:
                    asked.append(chance.randint(0, 5))
                    await cluster.patch(family.owners, "set", {"spec": {"replicas": asked[-1]}})
            world.catch_up()
            await controllers.settle(3000)
            assert world.most_owned <= max(asked) + strays
            assert len(world.owned()) == len(world.living()) == asked[-1]
            await world.vanish()
            await controllers.settle(3000)
            owner = cluster.get(family.owners, "set").metadata
            assert owner.finalizers == (family.finalizer,)
            assert world.status() == (asked[-1], owner.generation)
            writes = len(cluster.writes)
            await controllers.settle(24 * 3600)
            assert len(cluster.writes) == writes

    play(scenario)
