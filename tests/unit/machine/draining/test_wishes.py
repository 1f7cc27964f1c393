"""Which changes end a pass that waits for answers."""

from __future__ import annotations

import random
from datetime import timedelta

import msgspec
import pytest

from mcm.api.core import Node, NodeSpec
from mcm.api.machine import Machine
from mcm.api.meta import ObjectMeta
from mcm.controllers import indexes
from mcm.controllers.machine.draining.wishes import changed_on_machine, changed_on_node
from mcm.controllers.machine.drains_under_way import Drain
from mcm.drain.memory import DrainMemory
from mcm.drain.request import Purpose
from mcm.drain.watch import DrainWatch
from mcm.informers import Change, Store
from tests.unit.machine.objects import BORN, machine

PRESERVE = "node.machine.sapcloud.io/preserve"
FORCED = machine("a", labels={"force-deletion": "True"})


def drain() -> Drain:
    return Drain("ns/a", DrainMemory(random.Random(1)), DrainWatch(Purpose.DELETION))


def with_timeout(text: str) -> Machine:
    found = machine("a")
    spec = msgspec.structs.replace(found.spec, drain_timeout=text)
    return msgspec.structs.replace(found, spec=spec)


def node(*, uid: str = "n", unschedulable: bool = False, **meta: dict[str, str]) -> Node:
    return Node(
        metadata=ObjectMeta(name="node", uid=uid, **meta),  # type: ignore[arg-type]
        spec=NodeSpec(unschedulable=unschedulable),
    )


@pytest.mark.parametrize(
    ("new", "ends"),
    [
        (FORCED, True),
        (machine("a", labels={"force-drain": "True"}), True),
        (machine("a", deleted=BORN), True),
        (machine("a", annotations={PRESERVE: "false"}), True),
        (with_timeout("1m"), True),
        (None, True),
        # What a drain, or anybody else, writes while it goes on.
        (machine("a", node="n"), False),
        (machine("a", provider_id="p"), False),
        (machine("a", labels={"team": "x"}), False),
        (machine("a", annotations={"machine.sapcloud.io/drain-record": "{}"}), False),
        (machine("a", phase="Terminating", since=BORN + timedelta(hours=1)), False),
    ],
)
def test_on_the_machine(new: Machine | None, *, ends: bool) -> None:
    known = drain()
    change = Change(machine("a"), new)
    assert list(changed_on_machine(change, {"uid-a": known})) == ([known] if ends else [])
    assert list(changed_on_machine(change, {"uid-b": known})) == []


@pytest.mark.parametrize(
    ("new", "ends"),
    [
        (node(labels={"node.machine.sapcloud.io/selected-for-update": ""}), True),
        (node(annotations={PRESERVE: "now"}), True),
        (node(uid="another"), True),
        (None, True),
        (node(unschedulable=True), False),
        (node(labels={"zone": "a"}, annotations={"csi": "x"}), False),
    ],
)
def test_on_the_node(new: Node | None, *, ends: bool) -> None:
    machines: Store[Machine] = Store()
    indexes.index_machines(machines)
    machines.put(machine("a", node="node"))
    known = drain()
    found = changed_on_node(Change(node(), new), machines, {"uid-a": known})
    assert list(found) == ([known] if ends else [])
