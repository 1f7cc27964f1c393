"""Wiring of the node controller: machines use Nodes."""

from __future__ import annotations

from collections.abc import Sequence

from mcm.api.core import NODES, Node
from mcm.api.machine import MACHINES, Machine
from mcm.api.names import LABEL_NODE_MACHINE_NAME
from mcm.controllers.context import ControllerContext
from mcm.controllers.finalizers import InUse, InUseDecision, build_in_use
from mcm.controllers.indexes import index_machines, machines_on
from mcm.controllers.node.management import decide
from mcm.controllers.runtime import Controller
from mcm.informers import Change, Store

NAME = "node"


def build(ctx: ControllerContext) -> Sequence[Controller]:
    """Make the controller and register its handlers; nothing runs yet."""
    if ctx.target_informers is None:
        return ()
    machines = ctx.control_informers.store(MACHINES)
    index_machines(machines)

    def decide_now(node: Node, has_machine: bool) -> InUseDecision:
        patience = ctx.options.creation_timeout
        return decide(node, has_machine=has_machine, now=ctx.clock.now(), patience=patience)

    in_use = InUse(
        used=NODES,
        users=MACHINES,
        uses=node_names_of,
        is_used=lambda node: has_machine(node, machines, ctx.namespace),
        decide=decide_now,
        heeded=concerns_mark,
    )
    return (
        build_in_use(
            ctx,
            NAME,
            in_use,
            used_from=ctx.target_informers,
            users_from=ctx.control_informers,
        ),
    )


def node_names_of(machine: Machine) -> Sequence[str]:
    """Return the name of the Node that a machine claims, if it does."""
    return (machine.node_name,) if machine.node_name else ()


def has_machine(node: Node, machines: Store[Machine], namespace: str) -> bool:
    """Tell whether a machine names the Node, or the Node a machine of ``namespace``."""
    if machines_on(machines, node.metadata.name):
        return True
    name = node.metadata.labels.get(LABEL_NODE_MACHINE_NAME, "")
    return bool(name) and f"{namespace}/{name}" in machines


def concerns_mark(change: Change[Node]) -> bool:
    """Tell whether a Node's change can matter here: heartbeats and pods' comings do not."""
    old, new = change.old, change.new
    if new is None:
        return False
    if old is None or change.resync:
        return True
    before, after = old.metadata, new.metadata
    return (before.labels, before.annotations, before.finalizers) != (
        after.labels,
        after.annotations,
        after.finalizers,
    )
