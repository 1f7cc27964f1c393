"""Wiring of the MachineDeployment controller."""

from __future__ import annotations

from collections.abc import Sequence

from mcm.api.core import NODES
from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    MachineDeployment,
    MachineSet,
)
from mcm.controllers.context import ControllerContext
from mcm.controllers.deployment.node_actions import NodeActions
from mcm.controllers.deployment.reconciler import DeploymentReconciler
from mcm.controllers.deployment.triggers import (
    deployment_of_own_change,
    deployments_of_set_change,
)
from mcm.controllers.ownership import index_by_owner
from mcm.controllers.runtime import Controller
from mcm.informers import Change
from mcm.workqueue import INITIAL_PRIORITY

NAME = "machinedeployment"


def build(ctx: ControllerContext) -> Sequence[Controller]:
    """Make the controller and register its handlers; nothing runs yet."""
    deployments = ctx.control_informers.informer(MACHINE_DEPLOYMENTS)
    sets = ctx.control_informers.informer(MACHINE_SETS)
    machines = ctx.control_informers.store(MACHINES)
    index_by_owner(sets.store)
    index_by_owner(machines)
    reconciler = DeploymentReconciler(
        deployments=deployments.store,
        sets=sets.store,
        machines=machines,
        writer=ctx.control_informers.writer,
        events=ctx.events,
        clock=ctx.clock,
        nodes=_node_actions(ctx),
    )
    queue = ctx.queue(NAME)

    def on_deployment(change: Change[MachineDeployment]) -> None:
        for key in deployment_of_own_change(change):
            queue.add(key, priority=_priority(initial=change.initial or change.resync))

    def on_set(change: Change[MachineSet]) -> None:
        for key in deployments_of_set_change(change, deployments.store):
            queue.add(key, priority=_priority(initial=change.initial))

    deployments.add_handler(on_deployment)
    sets.add_handler(on_set)
    workers = ctx.options.concurrent_syncs
    return (ctx.controller(NAME, queue, reconciler.reconcile, workers=workers),)


def _node_actions(ctx: ControllerContext) -> NodeActions | None:
    if ctx.target_informers is None:
        return None
    return NodeActions(
        ctx.target_informers.store(NODES),
        ctx.target_informers.writer,
        annotating=ctx.options.autoscaler_scaledown_annotation,
    )


def _priority(*, initial: bool) -> int:
    return INITIAL_PRIORITY if initial else 0
