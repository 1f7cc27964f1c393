"""Look after a machine that has a Node: keep the Node as its template, and judge its health."""

from __future__ import annotations

from mcm.api.core import NODES, Node
from mcm.api.machine import MACHINES, Machine, MachinePhase, OperationType
from mcm.client.errors import NotFound
from mcm.client.requests import PatchType
from mcm.controllers.machine import status
from mcm.controllers.machine.creation.bootstrap_token import revoke_token
from mcm.controllers.machine.health.decision import Verdict, judge
from mcm.controllers.machine.health.failure_permit import moving_with
from mcm.controllers.machine.node.matching import is_managed
from mcm.controllers.machine.node.template import capacity_patch, node_patch
from mcm.controllers.machine.ports import Ports, Progress, Target
from mcm.controllers.machine.writes import write_status
from mcm.controllers.runtime import Outcome
from mcm.events import EventType

_ROUNDS = 4
"""A verdict can lead to the next one (joined, then timed); more than a few in a row is a fault."""


async def tend(ports: Ports, target: Target, machine: Machine) -> Progress:
    """Do what the machine's Node calls for. Raises Conflict if either changed meanwhile."""
    node = target.nodes.get(machine.node_name)
    if await _leaves_with_its_node(ports, target, machine, node):
        return Progress(machine)
    if node is not None and is_managed(node):
        node = await _keep_node(ports, target, machine, node)
    return await _keep_healthy(ports, target, machine, node)


async def _leaves_with_its_node(
    ports: Ports, target: Target, machine: Machine, node: Node | None
) -> bool:
    """Delete a machine whose Node somebody deletes or deleted; tell whether that was so.

    An absent Node alone says nothing: it may not have joined yet, or we may not see well. Only a
    deletion that was witnessed counts, and only if the server still says so.
    """
    if node is not None:
        ports.memory.departed.discard(machine.metadata.uid)
        if node.metadata.deletion_timestamp is None or not is_managed(node):
            return False
    elif machine.metadata.uid not in ports.memory.departed:
        return False
    if not ports.reachability().reachable or not await _is_leaving(target, machine.node_name):
        return False
    note = f"Node {machine.node_name} was deleted, so its machine goes too"
    ports.tell(machine, EventType.WARNING, "NodeDeleted", note)
    meta = machine.metadata
    try:
        await ports.control.delete(MACHINES, meta.name, namespace=meta.namespace, uid=meta.uid)
    except NotFound:
        return True
    return True


async def _is_leaving(target: Target, node_name: str) -> bool:
    node = await _live(target, node_name)
    return node is None or node.metadata.deletion_timestamp is not None


async def _live(target: Target, node_name: str) -> Node | None:
    """Read the Node from the server, into the store: before anything is destroyed, be sure."""
    try:
        node = await target.client.get(NODES, node_name)
    except NotFound:
        return None
    target.nodes.observe(node)
    return node


async def _keep_node(ports: Ports, target: Target, machine: Machine, node: Node) -> Node:
    class_ = ports.class_of(machine)
    capacity = capacity_patch(node, class_)
    if capacity is not None:
        node = await target.writer.patch(NODES, node.metadata.name, capacity, subresource="status")
    patch = node_patch(node, machine, class_)
    if patch is not None:
        node = await target.writer.patch(
            NODES, node.metadata.name, patch, patch_type=PatchType.STRATEGIC
        )
    return node


async def _keep_healthy(
    ports: Ports, target: Target, machine: Machine, node: Node | None
) -> Progress:
    for _ in range(_ROUNDS):
        verdict = _judge(ports, machine, node)
        if verdict.phase is MachinePhase.FAILED:
            # What ends in destruction is decided on what the server says now.
            node = await _live(target, machine.node_name)
            verdict = _judge(ports, machine, node)
        if not verdict.changes_something:
            return Progress(machine, Outcome(after=verdict.after, reason="health limit"))
        machine = await _apply(ports, machine, node, verdict)
    raise AssertionError(f"the health of {machine.metadata.key} does not settle")


def _judge(ports: Ports, machine: Machine, node: Node | None) -> Verdict:
    return judge(
        machine,
        node,
        ports.limits(machine),
        ports.now(),
        may_fail=lambda: ports.permits.may_fail(machine, moving_with(ports.machines, machine)),
        servers=ports.reachability(),
    )


async def _apply(ports: Ports, machine: Machine, node: Node | None, verdict: Verdict) -> Machine:
    now, wanted = ports.now(), machine.status
    if verdict.conditions is not None:
        wanted = status.with_conditions(wanted, verdict.conditions)
    if verdict.operation is not None:
        wanted = status.with_operation(wanted, verdict.operation, now)
    if verdict.phase is not None:
        wanted = status.with_phase(wanted, verdict.phase, now)
    if verdict.gives_up:
        with ports.permits.writing(machine):
            written = await write_status(ports, machine, wanted)
    else:
        written = await write_status(ports, machine, wanted)
    await _tell(ports, machine, written, verdict)
    return written


async def _tell(ports: Ports, before: Machine, machine: Machine, verdict: Verdict) -> None:
    """Let people and dashboards know, and take away what a machine needed only to get here."""
    if verdict.phase is None or verdict.operation is None:
        return
    note, class_ = verdict.operation.description, ports.class_of(machine)
    match verdict.phase:
        case MachinePhase.RUNNING if verdict.operation.type == OperationType.CREATE:
            ports.tell(machine, EventType.NORMAL, "Joined", note)
            ports.metrics.joined(machine, class_, ports.now())
            await revoke_token(ports, machine)
        case MachinePhase.RUNNING:
            ports.tell(machine, EventType.NORMAL, "Rejoined", note)
        case MachinePhase.UNKNOWN:
            ports.tell(machine, EventType.WARNING, "Unhealthy", note)
        case MachinePhase.FAILED:
            ports.tell(machine, EventType.WARNING, "Failed", note)
            if before.phase == MachinePhase.PENDING:
                ports.metrics.failed_to_join(machine, class_)
