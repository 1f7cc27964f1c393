from __future__ import annotations

import msgspec
import pytest

from mcm.api.core import AttachedVolume, Node, VolumeAttachment, VolumeAttachmentSpec
from mcm.api.machine import Machine, MachinePhase
from mcm.api.meta import ObjectMeta
from mcm.controllers.indexes import index_machines
from mcm.controllers.machine import last_operation
from mcm.controllers.machine.deletion.wakeups import of_attachment, of_node_volumes
from mcm.controllers.machine.last_operation import Marker
from mcm.informers import Change, Store
from tests.unit.machine.objects import after, machine

WAITING = last_operation.out_of_service("n", 2, after(), after(minutes=2))
DRAINING = last_operation.terminating(Marker.DRAIN)


def machines() -> Store[Machine]:
    store: Store[Machine] = Store()
    index_machines(store)
    going = MachinePhase.TERMINATING
    store.put(machine("waits", node="n", phase=going, operation=WAITING))
    store.put(machine("drains", node="n", phase=going, operation=DRAINING))
    store.put(machine("runs", node="n", phase=MachinePhase.RUNNING))
    store.put(machine("elsewhere", node="other", phase=going, operation=WAITING))
    return store


def attachment(node: str) -> VolumeAttachment:
    return VolumeAttachment(
        metadata=ObjectMeta(name="va"), spec=VolumeAttachmentSpec(node_name=node)
    )


def node(*volumes: str) -> Node:
    bare = Node(metadata=ObjectMeta(name="n"))
    attached = tuple(AttachedVolume(name=volume) for volume in volumes)
    status = msgspec.structs.replace(bare.status, volumes_attached=attached)
    return msgspec.structs.replace(bare, status=status)


def test_an_attachment_wakes_the_deletion_that_waits_on_its_node() -> None:
    for change in (
        Change(None, attachment("n")),
        Change(attachment("n"), attachment("n")),
        Change(attachment("n"), None),
    ):
        assert list(of_attachment(change, machines())) == ["ns/waits"]
    assert list(of_attachment(Change(None, attachment("nobodys")), machines())) == []


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        (node("a", "b"), node("a"), ["ns/waits"]),
        (node("a"), node("a"), []),
        (None, node("a"), []),
        (node("a"), None, []),
    ],
)
def test_a_node_wakes_it_when_its_volumes_change(
    old: Node | None, new: Node | None, woken: list[str]
) -> None:
    assert list(of_node_volumes(Change(old, new), machines())) == woken
