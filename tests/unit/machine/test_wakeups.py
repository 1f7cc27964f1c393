from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from mcm.api.core import Node, Secret
from mcm.api.machine import LastOperation, Machine, MachineClass, MachineClassNodeTemplate
from mcm.api.meta import ObjectMeta
from mcm.controllers import indexes
from mcm.controllers.machine import wakeups
from mcm.controllers.machine.health.failure_permit import index_waiting
from mcm.controllers.machine.health.waiting_line import WaitingLine
from mcm.informers import Change, Store
from tests.unit.machine.objects import BORN, NOT_READY, READY, class_, machine, node


def machines(*objects: Machine) -> Store[Machine]:
    store: Store[Machine] = Store()
    indexes.index_machines(store)
    index_waiting(store)
    for obj in objects:
        store.put(obj)
    return store


def line_of(*waiting: Machine) -> WaitingLine:
    line = WaitingLine(wake=lambda _: None, wake_after=lambda _, __: None)
    for subject in waiting:
        line.refused(subject)
    return line


def keys(found: Iterable[str]) -> list[str]:
    return sorted(found)


def test_a_machine_concerns_itself() -> None:
    change = Change(None, machine("a"))
    assert keys(wakeups.of_machine(change, line_of())) == ["ns/a"]


@pytest.mark.parametrize("new", [machine("a", phase="Running", group="d"), None])
def test_a_machine_that_comes_to_rest_wakes_who_is_next_to_fail(new: Machine | None) -> None:
    line = line_of(
        machine("b", phase="Unknown", group="d"),
        machine("c", phase="Unknown", group="d"),
        machine("e", phase="Unknown", group="other"),
    )
    change = Change(machine("a", phase="Pending", group="d"), new)
    assert keys(wakeups.of_machine(change, line)) == ["ns/a", "ns/b"]


def test_a_machine_that_begins_to_move_wakes_nobody_else() -> None:
    line = line_of(machine("b", phase="Unknown", group="d"))
    change = Change(
        machine("a", phase="Running", group="d"), machine("a", phase="Failed", group="d")
    )
    assert keys(wakeups.of_machine(change, line)) == ["ns/a"]


STORE = machines(machine("a", node="n"), machine("b", node="other"))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, node(), ["ns/a"]),
        (node(), None, ["ns/a"]),
        (node(conditions=(READY,)), node(conditions=(NOT_READY,)), ["ns/a"]),
        (node(), node(deleted=BORN), ["ns/a"]),
        (node(), node(labels={"x": "y"}), ["ns/a"]),
        (node(), node(), []),
    ],
)
def test_a_node_wakes_its_machine_when_something_changed_that_counts(
    old: Node | None, new: Node | None, expected: list[str]
) -> None:
    assert keys(wakeups.of_node(Change(old, new), STORE, "ns")) == expected


def test_volumes_that_come_and_go_wake_nobody() -> None:
    used = msgspec.structs.replace(
        node(), status=msgspec.structs.replace(node().status, volumes_in_use=("v",))
    )
    assert keys(wakeups.of_node(Change(node(), used), STORE, "ns")) == []


def test_a_deleted_node_is_lost_to_the_machines_that_name_it() -> None:
    store = machines(machine("a", node="n"), machine("b", node="n", deleted=BORN))
    assert [m.metadata.name for m in wakeups.losing_node(Change(node(), None), store)] == ["a"]
    unmanaged = node(annotations={"node.machine.sapcloud.io/not-managed-by-mcm": "1"})
    assert not list(wakeups.losing_node(Change(unmanaged, None), store))
    assert not list(wakeups.losing_node(Change(node(), node()), store))


FLEET = machines(
    machine("new"),
    machine("broken", phase="CrashLoopBackOff", provider_id="p"),
    machine("running", phase="Running", provider_id="p"),
    machine("going", phase="Terminating", deleted=BORN, provider_id="p"),
)


def test_a_class_wakes_those_who_wait_for_it() -> None:
    mended = Change(class_(), class_(secret="s"))
    assert keys(wakeups.of_class(mended, FLEET)) == ["ns/broken", "ns/going", "ns/new"]
    assert len(keys(wakeups.of_class(Change(None, class_()), FLEET))) == 4, "unknown until now"
    assert keys(wakeups.of_class(Change(None, class_(), initial=True), FLEET)) == []


def test_a_new_provider_spec_concerns_all_of_a_class() -> None:
    changed = msgspec.structs.replace(class_(), provider_spec={"tags": {"a": "1"}})
    assert len(keys(wakeups.of_class(Change(class_(), changed), FLEET))) == 4


def test_an_update_that_is_not_finished_waits_for_class_and_secret() -> None:
    failed = LastOperation(type="Update", state="Failed")
    fleet = machines(
        machine("a", phase="Running", provider_id="p", operation=failed),
        machine("b", phase="Running", provider_id="p", annotations={"inflight-providerspecs": ""}),
        machine("c", phase="Running", provider_id="p"),
    )
    mended = Change(class_(), class_(secret="s"))
    assert keys(wakeups.of_class(mended, fleet)) == ["ns/a", "ns/b"]


def test_a_new_virtual_capacity_concerns_all_of_a_class() -> None:
    template = MachineClassNodeTemplate(virtual_capacity={"x": "1"})
    changed = msgspec.structs.replace(class_(), node_template=template)
    assert len(keys(wakeups.of_class(Change(class_(), changed), FLEET))) == 4


def test_a_secret_wakes_those_whose_class_refers_to_it() -> None:
    classes: Store[MachineClass] = Store()
    indexes.index_classes(classes)
    classes.put(class_(secret="s"))
    change = Change(None, Secret(metadata=ObjectMeta(name="s", namespace="ns")))
    other = Change(None, Secret(metadata=ObjectMeta(name="t", namespace="ns")))
    assert keys(wakeups.of_secret(change, classes, FLEET)) == ["ns/broken", "ns/going", "ns/new"]
    assert keys(wakeups.of_secret(other, classes, FLEET)) == []
