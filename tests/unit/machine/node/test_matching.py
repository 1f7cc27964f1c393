from __future__ import annotations

from mcm.controllers.machine.node.matching import machine_keys_of
from tests.unit.machine.objects import machine, node


def test_a_node_concerns_those_who_name_it_and_whom_it_names() -> None:
    named = node("n", labels={"node.gardener.cloud/machine-name": "b"})
    assert machine_keys_of(named, [machine("a", node="n")], "ns") == ("ns/a", "ns/b")
    assert machine_keys_of(named, [machine("b", node="n")], "ns") == ("ns/b",)
    assert machine_keys_of(node("n"), [], "ns") == ()
