"""Wiring of the MachineSet controller."""

from __future__ import annotations

from collections.abc import Sequence

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_SETS, MACHINES, Machine, MachineSet
from mcm.controllers.context import ControllerContext
from mcm.controllers.machineset.reconciler import MachineSetReconciler
from mcm.controllers.machineset.triggers import set_of_own_change, sets_of_machine_change
from mcm.controllers.ownership import index_by_owner
from mcm.controllers.runtime import Controller
from mcm.informers import Change
from mcm.workqueue import INITIAL_PRIORITY

NAME = "machineset"


def build(ctx: ControllerContext) -> Sequence[Controller]:
    """Make the controller and register its handlers; nothing runs yet."""
    sets = ctx.control_informers.informer(MACHINE_SETS)
    machines = ctx.control_informers.informer(MACHINES)
    nodes = ctx.target_informers.store(NODES) if ctx.target_informers is not None else None
    index_by_owner(machines.store)
    reconciler = MachineSetReconciler(
        sets=sets.store,
        machines=machines.store,
        nodes=nodes,
        writer=ctx.control_informers.writer,
        events=ctx.events,
        clock=ctx.clock,
        randomness=ctx.random,
        preserve_timeout=ctx.options.preserve_timeout,
    )
    queue = ctx.queue(NAME)

    def on_set(change: Change[MachineSet]) -> None:
        for key in set_of_own_change(change):
            queue.add(key, priority=_priority(initial=change.initial or change.resync))

    def on_machine(change: Change[Machine]) -> None:
        for key in sets_of_machine_change(change, sets.store):
            queue.add(key, priority=_priority(initial=change.initial))

    sets.add_handler(on_set)
    machines.add_handler(on_machine)
    workers = ctx.options.concurrent_syncs
    return (ctx.controller(NAME, queue, reconciler.reconcile, workers=workers),)


def _priority(*, initial: bool) -> int:
    return INITIAL_PRIORITY if initial else 0
