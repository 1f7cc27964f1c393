"""Wires the MachineDeployment controller: its stores, its queue, what wakes it."""

from __future__ import annotations

from collections.abc import Sequence

from mcm.api.core import NODES
from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    Machine,
    MachineDeployment,
    MachineSet,
)
from mcm.controllers.context import ControllerContext
from mcm.controllers.deployment.fleet import OWNERSHIP
from mcm.controllers.deployment.in_place_update.hand_over import HandOver
from mcm.controllers.deployment.in_place_update.wakeups import (
    Deployments,
    keys_of_machine_change,
    keys_of_node_change,
)
from mcm.controllers.deployment.nodes import NodeMarker
from mcm.controllers.deployment.reconciler import DeploymentReconciler
from mcm.controllers.deployment.sets.orphaned_machines import concerned_by_orphan
from mcm.controllers.deployment.surge_pool.membership import (
    concerned_by_member,
    concerned_by_set,
)
from mcm.controllers.enqueue import enqueue, enqueue_changes
from mcm.controllers.node_ownership import NodeOwners
from mcm.controllers.overshooting.limits import Margins, SetLimits
from mcm.controllers.owning import children_of, count_children, index_by_owner, wake_owners
from mcm.controllers.pacing import Pacing
from mcm.controllers.runtime import Controller
from mcm.informers import Store

NAME = "machinedeployment"


def build(ctx: ControllerContext) -> Sequence[Controller]:
    """Make the controller and register its handlers; nothing runs yet."""
    deployments = ctx.control_informers.informer(MACHINE_DEPLOYMENTS)
    sets = ctx.control_informers.informer(MACHINE_SETS)
    machines = ctx.control_informers.informer(MACHINES)
    index_by_owner(machines.store)
    owners = _node_owners(ctx)
    queue = ctx.queue(NAME)
    reconciler = DeploymentReconciler(
        deployments=deployments.store,
        sets=sets.store,
        machines=machines.store,
        reader=ctx.control,
        writer=ctx.control_informers.writer,
        events=ctx.events,
        clock=ctx.clock,
        nodes=_node_marker(ctx, owners) if owners is not None else None,
        mover=HandOver(owners, ctx.control_informers.writer, ctx.events) if owners else None,
        max_replicas=ctx.options.max_replicas,
        wake=lambda keys: enqueue(queue, keys),
        limits=SetLimits(deployments.store, Margins.of(ctx.options)),
    )
    pacing = Pacing(
        ctx.clock,
        lambda key: _count_machines(deployments.store.get(key), sets.store, machines.store),
    )
    wake_owners(queue, OWNERSHIP, deployments, sets, pacing=pacing)
    enqueue_changes(queue, deployments, lambda c: concerned_by_member(c, deployments.store))
    enqueue_changes(queue, sets, lambda c: concerned_by_set(c, deployments.store))
    enqueue_changes(queue, machines, lambda c: concerned_by_orphan(c, deployments.store))
    if ctx.target_informers is not None and owners is not None:
        found, known = Deployments(deployments.store, sets.store), owners
        nodes = ctx.target_informers.informer(NODES)
        enqueue_changes(
            queue, machines, lambda change: keys_of_machine_change(change, found), pacing=pacing
        )
        enqueue_changes(
            queue, nodes, lambda change: keys_of_node_change(change, known, found), pacing=pacing
        )
    workers = ctx.options.concurrent_syncs
    reconcile = pacing.of(reconciler.reconcile)
    return (ctx.controller(NAME, queue, reconcile, workers=workers, regards=deployments),)


def _count_machines(
    deployment: MachineDeployment | None, sets: Store[MachineSet], machines: Store[Machine]
) -> int:
    if deployment is None:
        return 0
    owned = children_of(sets, deployment.metadata.uid)
    return sum(count_children(machines, s.metadata.uid) for s in owned)


def _node_owners(ctx: ControllerContext) -> NodeOwners | None:
    if ctx.target_informers is None:
        return None
    return NodeOwners(
        ctx.control_informers.store(MACHINES), ctx.target_informers.store(NODES), ctx.namespace
    )


def _node_marker(ctx: ControllerContext, owners: NodeOwners) -> NodeMarker | None:
    if ctx.target_informers is None:
        return None
    return NodeMarker(
        owners,
        ctx.target_informers.writer,
        annotating=ctx.options.autoscaler_scaledown_annotation,
    )
