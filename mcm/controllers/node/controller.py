"""Wiring of the node controller: machines use Nodes."""

from __future__ import annotations

from collections.abc import Sequence

from mcm.api.core import NODES, Node
from mcm.api.machine import MACHINES
from mcm.api.names import ANNOTATION_NODE_NAMESPACE
from mcm.controllers.context import ControllerContext
from mcm.controllers.finalizers import InUse, InUseDecision, build_in_use
from mcm.controllers.node.management import decide
from mcm.controllers.node_ownership import NodeOwners, is_of_another_namespace
from mcm.controllers.runtime import Controller
from mcm.informers import Change

NAME = "node"


def build(ctx: ControllerContext) -> Sequence[Controller]:
    """Make the controller and register its handlers; nothing runs yet."""
    if ctx.target_informers is None:
        return ()
    owners = NodeOwners(
        ctx.control_informers.store(MACHINES), ctx.target_informers.store(NODES), ctx.namespace
    )

    def is_ours(node: Node) -> bool:
        if is_of_another_namespace(node, ctx.namespace):
            return False
        said = ANNOTATION_NODE_NAMESPACE in node.metadata.annotations
        return said or not ctx.options.sibling_namespaces

    def decide_now(node: Node, has_machine: bool) -> InUseDecision:
        if owners.of(node).contested:
            return InUseDecision()  # nobody touches it before it is known whose it is
        return decide(
            node,
            has_machine=has_machine,
            now=ctx.clock.now(),
            patience=ctx.options.creation_timeout,
            ours=is_ours(node),
        )

    in_use = InUse(
        used=NODES,
        users=MACHINES,
        uses=lambda machine: tuple(dict.fromkeys(owners.nodes_about(machine))),
        told_at=("metadata.labels",),
        is_used=lambda node: owners.of(node).owner is not None,
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
