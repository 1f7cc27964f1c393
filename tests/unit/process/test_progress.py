from __future__ import annotations

from mcm.api.core import Node, NodeCondition, NodeStatus
from mcm.api.machine import CurrentStatus, Machine, MachineStatus
from mcm.api.meta import ObjectMeta
from mcm.launcher.progress import summary


def machine(name: str, phase: str) -> Machine:
    status = MachineStatus(current_status=CurrentStatus(phase=phase))
    return Machine(metadata=ObjectMeta(name=name), status=status)


def node(name: str, ready: str) -> Node:
    condition = NodeCondition(type="Ready", status=ready)
    return Node(metadata=ObjectMeta(name=name), status=NodeStatus(conditions=(condition,)))


def test_the_summary_counts_machines_by_phase_and_nodes_by_readiness() -> None:
    machines = [machine("a", "Running"), machine("b", "Running"), machine("c", "")]
    nodes = [node("a", "True"), node("b", "Unknown")]
    assert summary(machines, nodes).plain == ("machines: 2 Running, 1 new   nodes: 1 Ready, 1 not")


def test_an_empty_fleet_has_no_machines() -> None:
    assert summary([], []).plain == "machines: none   nodes: 0 Ready, 0 not"
