"""Wiring and body of the node controller."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import final

from mcm.api.core import NODES, Node
from mcm.api.machine import MACHINES, Machine
from mcm.api.names import LABEL_NODE_MACHINE_NAME
from mcm.client.errors import NotFound
from mcm.clock import Clock
from mcm.controllers.context import ControllerContext
from mcm.controllers.indexes import index_machines, machines_on
from mcm.controllers.node.management import decide
from mcm.controllers.runtime import DONE, Controller, Outcome
from mcm.controllers.seams import ObjectWriter
from mcm.informers import Change, Store
from mcm.workqueue import INITIAL_PRIORITY

NAME = "node"

_LOOK_AGAIN = 60.0
"""Seconds, while a machine that cannot be read might claim any Node."""


@final
class NodeReconciler:
    """Keeps the mark of each Node in step with whether a machine claims it."""

    def __init__(
        self,
        nodes: Store[Node],
        machines: Store[Machine],
        writer: ObjectWriter,
        *,
        clock: Clock,
        namespace: str,
        patience: timedelta,
    ) -> None:
        self._nodes = nodes
        self._machines = machines
        self._writer = writer
        self._clock = clock
        self._namespace = namespace
        self._patience = patience

    async def reconcile(self, key: str) -> Outcome:
        node = self._nodes.get(key)
        if node is None:
            return DONE
        has_machine = self._has_machine(node)
        decision = decide(
            node, has_machine=has_machine, now=self._clock.now(), patience=self._patience
        )
        if decision.patch is None:
            return Outcome(after=decision.after, reason="node without machine")
        if not has_machine and self._machines.unreadable:
            return Outcome(after=_LOOK_AGAIN, reason="machines that cannot be read")
        try:
            await self._writer.patch(NODES, node.metadata.name, decision.patch)
        except NotFound:
            return DONE
        return DONE

    def _has_machine(self, node: Node) -> bool:
        if machines_on(self._machines, node.metadata.name):
            return True
        name = node.metadata.labels.get(LABEL_NODE_MACHINE_NAME, "")
        return bool(name) and f"{self._namespace}/{name}" in self._machines


def nodes_of_machine_change(change: Change[Machine]) -> Sequence[str]:
    """Return the names of the Nodes a machine claims or claimed, unless neither changed."""
    old, new = change.old, change.new
    if change.resync or (old and new and old.node_name == new.node_name):
        return ()
    return tuple(dict.fromkeys(m.node_name for m in (old, new) if m is not None and m.node_name))


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


def build(ctx: ControllerContext) -> Sequence[Controller]:
    """Make the controller and register its handlers; nothing runs yet."""
    if ctx.target_informers is None:
        return ()
    nodes = ctx.target_informers.informer(NODES)
    machines = ctx.control_informers.informer(MACHINES)
    index_machines(machines.store)
    queue = ctx.queue(NAME)
    reconciler = NodeReconciler(
        nodes.store,
        machines.store,
        ctx.target_informers.writer,
        clock=ctx.clock,
        namespace=ctx.namespace,
        patience=ctx.options.creation_timeout,
    )

    def on_node(change: Change[Node]) -> None:
        if concerns_mark(change):
            priority = INITIAL_PRIORITY if change.initial or change.resync else 0
            queue.add(change.object.metadata.key, priority=priority)

    def on_machine(change: Change[Machine]) -> None:
        for name in nodes_of_machine_change(change):
            queue.add(name, priority=INITIAL_PRIORITY if change.initial else 0)

    nodes.add_handler(on_node)
    machines.add_handler(on_machine)
    workers = ctx.options.machine_concurrent_syncs
    return (ctx.controller(NAME, queue, reconciler.reconcile, workers=workers),)
