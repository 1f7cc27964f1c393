"""A rolling update of the Go original's, carried on after each of its writes.

The sizes are those of its own traces, its double step after a set's creation included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.simulation.takeover.as_left import (
    BY_MCM,
    HISTORY,
    OLD_NODE_TAINT,
    PREFER_NO_SCHEDULE,
    SCALE_DOWN_DISABLED,
    LeftFleet,
    LeftSet,
    rolling,
)
from tests.simulation.takeover.handed_over import HandedOver, take_over
from tests.thoroughness import part_of


@dataclass(frozen=True)
class Trace:
    """Sizes (old, new) after each pass of the original, by R, surge and unavailability."""

    replicas: int
    surge: int | str
    unavailable: int | str
    extra: int
    fewer: int
    sizes: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        return f"{self.replicas}-{self.surge}-{self.unavailable}"


TRACES = (
    Trace(3, 1, 0, 1, 0, ((3, 2), (1, 2), (1, 3), (0, 3))),
    Trace(5, 1, 1, 1, 1, ((5, 2), (2, 2), (2, 4), (0, 4), (0, 5))),
    Trace(4, 0, 1, 0, 1, ((3, 0), (3, 1), (2, 1), (2, 2), (1, 2), (1, 3), (0, 3), (0, 4))),
    Trace(10, "25%", "25%", 3, 2, ((10, 6), (2, 6), (2, 10), (0, 10))),
    Trace(2, "1%", "25%", 1, 0, ((2, 2), (0, 2))),
    Trace(2, "0%", "1%", 0, 1, ((1, 0), (1, 1), (0, 1), (0, 2))),
    Trace(1, "1%", "25%", 1, 0, ((1, 1), (0, 1))),
    Trace(1, "0%", "1%", 0, 1, ((0, 0), (0, 1))),
)


def moments() -> Iterator[tuple[Trace, int, str]]:
    for trace in TRACES:
        for number in range(len(trace.sizes)):
            for followed in ("written", "begun", "followed"):
                yield trace, number, followed


def left_at(trace: Trace, number: int, followed: str) -> LeftFleet:
    """The sizes were just written, or the sets have begun to follow, or they have followed."""
    before = trace.sizes[number - 1] if number else (trace.replicas, 0)
    old_size, new_size = trace.sizes[number]
    left = LeftFleet(
        replicas=trace.replicas,
        strategy=rolling(trace.surge, trace.unavailable),
        surge=trace.extra,
    )
    old = left.add_set("a", before[0])
    left.want("b")
    new = left.add_set("b", before[1], revision=2)
    decorated(left, old)
    left.report(updated=new)
    left.annotations["deployment.kubernetes.io/revision"] = "2"
    for owner, size in ((old, old_size), (new, new_size)):
        if size != owner.size:
            owner.scaled(size)
    if followed == "followed":
        while len(new.machines) < new_size:
            left.add_machine(new)
        del old.machines[old_size:]
        old.report()
        new.report()
    elif followed == "begun":
        for number_of_new in range(len(new.machines), new_size):
            left.add_new_machine(new, seen=number_of_new % 2 == 0)
        for number_gone, machine in enumerate(old.machines[old_size:]):
            machine.deleted(
                ("Initiate node drain", "Drain successful. Initiate VM deletion")[number_gone % 2]
            )
    return left


def decorated(left: LeftFleet, old: LeftSet) -> None:
    old.annotations[PREFER_NO_SCHEDULE] = "True"
    for machine in left.machines:
        machine.keep_from_autoscaler()
    for machine in old.machines:
        machine.taint(OLD_NODE_TAINT)


def promises(left: LeftFleet, *, extra: int, fewer: int) -> tuple[int, int]:
    """Return how many machines there may be at most, and how many must serve, from now on."""
    promised = sum(max(s.size, len(s.machines)) for s in left.sets)
    serving = sum(
        "deletionTimestamp" not in m.document["metadata"] and m.phase == "Running"
        for s in left.sets
        for m in s.machines
    )
    kept = sum(min(s.size, len(s.machines)) for s in left.sets)
    return max(left.replicas + extra, promised), min(left.replicas - fewer, serving, kept)


def new_ones(left: LeftFleet) -> set[str]:
    return {
        m.uid
        for s in left.sets
        for m in s.machines
        if s.version == left.spec["template"]["metadata"]["labels"]["version"]
    }


def carried_on(left: LeftFleet, *, extra: int, fewer: int) -> None:
    """See that only what is old is replaced, each machine once, and the promises hold."""
    updated = new_ones(left)
    most, least = promises(left, extra=extra, fewer=fewer)

    async def scenario(seen: HandedOver) -> None:
        await seen.ends("b")
        assert not seen.lost & updated, "none that is new is replaced"
        assert seen.made == left.replicas - len(updated)
        assert seen.witness.most <= most
        assert seen.witness.fewest_serving >= least

    take_over(left, scenario)


@pytest.mark.parametrize(
    ("trace", "number", "followed"),
    [
        pytest.param(*moment, id=f"{moment[0]}-pass-{moment[1] + 1}-{moment[2]}")
        for moment in part_of(tuple(moments())[::2], one_in=4, in_ci=2)
    ],
)
def test_each_pass_of_its_traces_is_carried_on(trace: Trace, number: int, followed: str) -> None:
    carried_on(left_at(trace, number, followed), extra=trace.extra, fewer=trace.fewer)


# ---- between the writes of one pass --------------------------------------------------------------


def begun(*, new: int | None = None) -> LeftFleet:
    """Five machines of a, b is wanted; nothing is marked. ``new``: the size of the new set."""
    left = LeftFleet(replicas=5, strategy=rolling(1, 1), surge=1)
    old = left.add_set("a", 5)
    left.complete(old)
    left.want("b")
    if new is not None:
        left.add_set("b", new, machines=0, revision=2)
        del left.sets[1].document["status"]
    return left


def nothing_but_the_template(left: LeftFleet) -> None:
    del left.sets[1:]


def a_set_that_nobody_saw_yet(left: LeftFleet) -> None:
    """It has no finalizer, and the deployment says neither its revision nor that it is there."""
    del left.sets[1].document["metadata"]["finalizers"]


def the_deployment_told_of_it(left: LeftFleet) -> None:
    left.sets[1].document["status"] = {}
    left.report(progress="NewMachineSetCreated")


def some_nodes_are_tainted(left: LeftFleet) -> None:
    for machine in left.machines[:3]:
        machine.taint(OLD_NODE_TAINT)


def all_are_tainted_and_their_set_does_not_say_so(left: LeftFleet) -> None:
    for machine in left.machines:
        machine.taint(OLD_NODE_TAINT)


def some_are_kept_from_the_autoscaler(left: LeftFleet) -> None:
    all_are_tainted_and_their_set_does_not_say_so(left)
    left.sets[0].annotations[PREFER_NO_SCHEDULE] = "True"
    for machine in left.machines[:2]:
        machine.keep_from_autoscaler()


def two_steps_at_once(left: LeftFleet) -> None:
    some_are_kept_from_the_autoscaler(left)
    left.sets[1].scaled(2)


def grown_too_far(left: LeftFleet) -> None:
    """Passes before the set's status was written added more each time."""
    left.sets[1].scaled(5)


def a_history_that_grew_by_itself(left: LeftFleet) -> None:
    left.sets[1].annotations[HISTORY] = ",".join(["2"] * 50)


@pytest.mark.parametrize(
    "write",
    [
        nothing_but_the_template,
        a_set_that_nobody_saw_yet,
        the_deployment_told_of_it,
        some_nodes_are_tainted,
        all_are_tainted_and_their_set_does_not_say_so,
        some_are_kept_from_the_autoscaler,
        two_steps_at_once,
        grown_too_far,
        a_history_that_grew_by_itself,
    ],
    ids=lambda write: write.__name__,
)
def test_the_first_pass_is_carried_on_after_each_write(write: Callable[[LeftFleet], None]) -> None:
    left = begun(new=1)
    write(left)
    carried_on(left, extra=1, fewer=1)


def finished() -> tuple[LeftFleet, LeftSet]:
    left = LeftFleet(replicas=3, strategy=rolling(1, 1), surge=1)
    old = left.add_set("a", 0)
    old.annotations[PREFER_NO_SCHEDULE] = "True"
    left.want("b")
    new = left.add_set("b", 3, revision=2)
    left.annotations["deployment.kubernetes.io/revision"] = "2"
    for machine in new.machines:
        machine.keep_from_autoscaler()
    return left, new


@pytest.mark.parametrize("told", [False, True], ids=["its end untold", "its end told"])
@pytest.mark.parametrize("freed", [0, 1, 3])
def test_at_the_end_the_nodes_go_back_to_the_autoscaler(told: bool, freed: int) -> None:
    left, new = finished()
    if told:
        left.complete(new)
    else:
        left.report(updated=new)
    for machine in new.machines[:freed]:
        annotations = machine.its_node["metadata"]["annotations"]
        del annotations[BY_MCM], annotations[SCALE_DOWN_DISABLED]

    async def scenario(seen: HandedOver) -> None:
        await seen.ends("b")
        assert (seen.made, seen.lost) == (0, set())
        for node in seen.nodes.values():
            assert SCALE_DOWN_DISABLED not in node["metadata"]["annotations"]

    take_over(left, scenario)


def test_what_a_person_keeps_from_the_autoscaler_stays_so() -> None:
    left, new = finished()
    left.complete(new)
    del new.machines[0].its_node["metadata"]["annotations"][BY_MCM]

    async def scenario(seen: HandedOver) -> None:
        await seen.ends("b")
        kept = {
            name
            for name, node in seen.nodes.items()
            if SCALE_DOWN_DISABLED in node["metadata"]["annotations"]
        }
        assert kept == {new.machines[0].name}

    take_over(left, scenario)


def test_a_revert_while_the_new_machines_never_came_up_keeps_all_that_run() -> None:
    """R=10, 13 machines, five of the new ones unwell; the former template is wanted again."""
    left = LeftFleet(replicas=10, strategy=rolling(3, 2), surge=3, version="b")
    old = left.add_set("a", 8)
    new = left.add_set("b", 5, machines=0, revision=2)
    decorated(left, old)
    for _ in range(5):
        left.add_new_machine(new, seen=True)
    new.report()
    left.report(updated=new)
    left.want("a")
    running = {m.uid for m in old.machines}

    async def scenario(seen: HandedOver) -> None:
        await seen.ends("a")
        assert not seen.lost & running
        assert seen.made == 2
        assert seen.witness.fewest_serving >= 8

    take_over(left, scenario)
