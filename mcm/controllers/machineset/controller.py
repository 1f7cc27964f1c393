"""Wires the MachineSet controller: its stores, its queue, what wakes it."""

from __future__ import annotations

from collections.abc import Sequence

from mcm.api.core import NODES
from mcm.api.machine import (
    MACHINE_CLASSES,
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    Machine,
    MachineSet,
)
from mcm.controllers.context import ControllerContext
from mcm.controllers.machineset.metrics import StaleMachines
from mcm.controllers.machineset.ownership import OWNERSHIP
from mcm.controllers.machineset.reconciler import MachineSetReconciler
from mcm.controllers.node_ownership import NodeOwners
from mcm.controllers.overshooting.limits import Margins, SetLimits
from mcm.controllers.owning import count_children, wake_owners
from mcm.controllers.pacing import Pacing
from mcm.controllers.proven_classes import ProvenClasses
from mcm.controllers.runtime import Controller
from mcm.informers import Store

NAME = "machineset"


def build(ctx: ControllerContext) -> Sequence[Controller]:
    """Make the controller and register its handlers; nothing runs yet."""
    sets = ctx.control_informers.informer(MACHINE_SETS)
    machines = ctx.control_informers.informer(MACHINES)
    owners = None
    if ctx.target_informers is not None:
        owners = NodeOwners(machines.store, ctx.target_informers.store(NODES), ctx.namespace)
    reconciler = MachineSetReconciler(
        sets=sets.store,
        machines=machines.store,
        proven=ProvenClasses(machines.store, ctx.control_informers.store(MACHINE_CLASSES)),
        owners=owners,
        reader=ctx.control,
        writer=ctx.control_informers.writer,
        events=ctx.events,
        clock=ctx.clock,
        randomness=ctx.random,
        preserve_timeout=ctx.options.preserve_timeout,
        max_replicas=ctx.options.max_replicas,
        limits=SetLimits(ctx.control_informers.store(MACHINE_DEPLOYMENTS), Margins.of(ctx.options)),
        stale=StaleMachines.of(ctx.registry),
    )
    queue = ctx.queue(NAME)
    pacing = Pacing(ctx.clock, lambda key: _count_machines(sets.store.get(key), machines.store))
    wake_owners(queue, OWNERSHIP, sets, machines, pacing=pacing)
    workers = ctx.options.concurrent_syncs
    reconcile = pacing.of(reconciler.reconcile)
    return (ctx.controller(NAME, queue, reconcile, workers=workers, regards=sets),)


def _count_machines(machine_set: MachineSet | None, machines: Store[Machine]) -> int:
    return count_children(machines, machine_set.metadata.uid) if machine_set is not None else 0
