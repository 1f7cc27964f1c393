"""A deployment of strategy Recreate that the Go original leaves between two of its steps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.takeover.as_left import Document, LeftFleet
from tests.simulation.takeover.handed_over import HandedOver, take_over

RECREATE: Document = {"type": "Recreate"}


def begun() -> LeftFleet:
    left = LeftFleet(replicas=3, strategy=RECREATE)
    old = left.add_set("a", 3)
    left.complete(old)
    left.want("b")
    return left


def only_the_template(left: LeftFleet) -> None:
    """Nothing was done yet."""


def the_old_set_is_to_be_empty(left: LeftFleet) -> None:
    left.sets[0].scaled(0)


def the_old_machines_leave(left: LeftFleet) -> None:
    left.sets[0].scaled(0)
    texts = ("Initiate node drain", "Drain successful. Initiate VM deletion")
    for machine, text in zip(left.machines, texts, strict=False):
        machine.deleted(text)


def they_are_gone_and_their_set_counts_them(left: LeftFleet) -> None:
    left.sets[0].scaled(0)
    del left.sets[0].machines[:]


def they_are_gone(left: LeftFleet) -> None:
    they_are_gone_and_their_set_counts_them(left)
    left.sets[0].report()


def a_set_without_machines(left: LeftFleet) -> None:
    they_are_gone(left)
    new = left.add_set("b", 3, machines=0, revision=2)
    del new.document["status"], new.document["metadata"]["finalizers"]


def a_set_with_some_machines(left: LeftFleet) -> None:
    they_are_gone(left)
    new = left.add_set("b", 3, machines=1, revision=2)
    left.add_new_machine(new, seen=True)


@pytest.mark.parametrize(
    ("write", "there"),
    [
        (only_the_template, 0),
        (the_old_set_is_to_be_empty, 0),
        (the_old_machines_leave, 0),
        (they_are_gone_and_their_set_counts_them, 0),
        (they_are_gone, 0),
        (a_set_without_machines, 0),
        (a_set_with_some_machines, 2),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_all_old_ones_go_before_a_new_one_is_made(
    write: Callable[[LeftFleet], None], there: int
) -> None:
    left = begun()
    write(left)
    new = {m.uid for s in left.sets[1:] for m in s.machines}

    async def scenario(seen: HandedOver) -> None:
        await seen.ends("b")
        assert not seen.lost & new
        assert seen.made == 3 - there
        assert seen.witness.most == 3

    take_over(left, scenario)
