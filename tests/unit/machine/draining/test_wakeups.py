"""What wakes a drain: what lets it go on, and nothing else."""

from __future__ import annotations

import random
from collections.abc import Iterable

import msgspec
import pytest

from mcm.api.core import (
    AttachedVolume,
    Node,
    NodeStatus,
    Pod,
    PodSpec,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeAttachmentStatus,
)
from mcm.api.machine import Machine
from mcm.api.meta import ObjectMeta
from mcm.controllers import indexes
from mcm.controllers.machine.draining import wakeups
from mcm.controllers.machine.drains_under_way import Drain, DrainsUnderWay
from mcm.drain.memory import DrainMemory, Watched
from mcm.drain.request import Purpose
from mcm.drain.watch import DrainWatch
from mcm.informers import Change, Store
from tests.unit.drain.pods import budget, pod
from tests.unit.machine.objects import BORN, machine


def machines(*items: Machine) -> Store[Machine]:
    store: Store[Machine] = Store()
    indexes.index_machines(store)
    for item in items:
        store.put(item)
    return store


DRAINED = machines(machine("a", node="n", deleted=BORN), machine("b", node="m"))


def drains(**watched: Watched) -> DrainsUnderWay:
    """``a`` and ``b`` are machines."""
    found = DrainsUnderWay()
    for name, what in watched.items():
        memory = DrainMemory(random.Random(1))
        memory.watched = what
        found[f"uid-{name}"] = Drain(f"ns/{name}", memory, DrainWatch(Purpose.DELETION))
    return found


def keys(found: Iterable[str]) -> list[str]:
    return sorted(found)


def on_node(subject: Pod, name: str = "n") -> Pod:
    spec = msgspec.structs.replace(subject.spec, node_name=name)
    return msgspec.structs.replace(subject, spec=spec)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, pod("p"), ["ns/a"]),
        (pod("p"), None, ["ns/a"]),
        (pod("p"), pod("p", deleted=BORN), ["ns/a"]),
        (pod("p"), pod("p", phase="Succeeded"), ["ns/a"]),
        (pod("p", phase="Pending"), pod("p"), []),
        (pod("p"), pod("p", labels={"x": "y"}), []),
    ],
)
def test_a_pod_wakes_a_drain_when_its_way_out_went_on(
    old: Pod | None, new: Pod | None, expected: list[str]
) -> None:
    before, after = (None if p is None else on_node(p) for p in (old, new))
    assert keys(wakeups.of_pod(Change(before, after), DRAINED, drains())) == expected
    assert keys(wakeups.of_pod(Change(before, after, resync=True), DRAINED, drains())) == []


@pytest.mark.parametrize("held", [True, False])
def test_what_budgets_look_at_wakes_a_drain_that_they_hold(*, held: bool) -> None:
    watched = Watched(budgets=frozenset({"default/b"}) if held else frozenset())
    under_way = drains(a=watched)
    relabelled = Change(on_node(pod("p")), on_node(pod("p", labels={"x": "y"})))
    assert keys(wakeups.of_pod(relabelled, DRAINED, under_way)) == (["ns/a"] if held else [])
    broken = Change(on_node(pod("p")), on_node(pod("p", ready=False)))
    assert keys(wakeups.of_pod(broken, DRAINED, under_way)) == (["ns/a"] if held else [])


def test_a_pod_of_a_machine_that_stays_wakes_nobody() -> None:
    assert keys(wakeups.of_pod(Change(None, on_node(pod("p"), "m")), DRAINED, drains())) == []


def test_a_pod_wakes_a_machine_that_stays_if_it_is_being_drained() -> None:
    change = Change(None, on_node(pod("p"), "m"))
    assert keys(wakeups.of_pod(change, DRAINED, drains(b=Watched()))) == ["ns/b"]


def test_a_successor_wakes_the_drain_whose_volumes_it_takes_over() -> None:
    under_way = drains(a=Watched(claims=frozenset({"default/c"})), b=Watched())
    unplaced = on_node(pod("p", claims=("c",)), "")
    placed = on_node(unplaced, "elsewhere")
    other = on_node(pod("q", claims=("d",)), "elsewhere")
    relabelled = on_node(pod("p", claims=("c",), labels={"x": "y"}), "elsewhere")
    assert keys(wakeups.of_pod(Change(None, unplaced), DRAINED, under_way)) == ["ns/a"]
    assert keys(wakeups.of_pod(Change(unplaced, placed), DRAINED, under_way)) == ["ns/a"]
    assert keys(wakeups.of_pod(Change(placed, relabelled), DRAINED, under_way)) == []
    assert keys(wakeups.of_pod(Change(None, other), DRAINED, under_way)) == []


HELD = drains(
    a=Watched(budgets=frozenset({"default/b"})), b=Watched(budgets=frozenset({"other/b"}))
)


def test_a_budget_wakes_the_drains_it_holds_back_once_it_says_something_else() -> None:
    assert keys(wakeups.of_budget(Change(budget("b"), budget("b", allowed=1)), HELD)) == ["ns/a"]
    assert keys(wakeups.of_budget(Change(budget("b"), None), HELD)) == ["ns/a"]
    healthier = Change(budget("b"), budget("b", healthy=5, version="2"))
    assert keys(wakeups.of_budget(healthier, HELD)) == []
    assert keys(wakeups.of_budget(Change(budget("c"), budget("c", allowed=1)), HELD)) == []


def test_what_another_drain_leaves_of_a_budget_wakes_those_it_holds_back() -> None:
    assert keys(wakeups.of_freed_budgets("other", HELD)) == ["ns/b"]
    assert keys(wakeups.of_freed_budgets("oth", HELD)) == []


def attachment(volume: str, *, attached: bool = True) -> VolumeAttachment:
    return VolumeAttachment(
        metadata=ObjectMeta(name="va"),
        spec=VolumeAttachmentSpec(
            node_name="x", source=VolumeAttachmentSource(persistent_volume_name=volume)
        ),
        status=VolumeAttachmentStatus(attached=attached),
    )


def test_an_attachment_wakes_the_drain_whose_volume_it_is() -> None:
    under_way = drains(a=Watched(volumes=frozenset({"pv"})), b=Watched())
    change = Change(attachment("pv", attached=False), attachment("pv"))
    assert keys(wakeups.of_attachment(change, under_way)) == ["ns/a"]
    assert keys(wakeups.of_attachment(Change(None, attachment("")), under_way)) == []
    assert keys(wakeups.of_attachment(Change(None, attachment("w")), under_way)) == []


def test_volumes_in_a_nodes_status_wake_its_drain_while_any_is_on_its_way() -> None:
    before = Node(
        metadata=ObjectMeta(name="n"),
        status=NodeStatus(volumes_attached=(AttachedVolume(name="v"),)),
    )
    after = msgspec.structs.replace(before, status=NodeStatus())
    waiting, none = drains(a=Watched(volumes=frozenset({"pv"}))), drains(a=Watched())
    assert keys(wakeups.of_node(Change(before, after), DRAINED, waiting)) == ["ns/a"]
    assert keys(wakeups.of_node(Change(before, after), DRAINED, none)) == []
    assert keys(wakeups.of_node(Change(before, before), DRAINED, waiting)) == []


def test_the_spec_of_a_pod_is_nobodys_business() -> None:
    subject = on_node(pod("p"))
    other = msgspec.structs.replace(subject, spec=PodSpec(node_name="n", priority=5))
    assert keys(wakeups.of_pod(Change(subject, other), DRAINED, drains(a=Watched()))) == []
