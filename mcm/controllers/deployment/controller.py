"""Wiring of the MachineDeployment controller, and which deployments a change concerns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mcm.api.core import NODES
from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    MachineDeployment,
    MachineSet,
)
from mcm.api.meta import ObjectMeta
from mcm.api.selectors import is_empty, matches
from mcm.controllers.context import ControllerContext
from mcm.controllers.deployment.nodes import NodeMarker
from mcm.controllers.deployment.reconciler import DeploymentReconciler
from mcm.controllers.ownership import index_by_owner
from mcm.controllers.runtime import Controller
from mcm.informers import Change
from mcm.informers.store import Store
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
        nodes=_node_marker(ctx),
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


def _node_marker(ctx: ControllerContext) -> NodeMarker | None:
    if ctx.target_informers is None:
        return None
    return NodeMarker(
        ctx.target_informers.store(NODES),
        ctx.target_informers.writer,
        annotating=ctx.options.autoscaler_scaledown_annotation,
    )


def _priority(*, initial: bool) -> int:
    return INITIAL_PRIORITY if initial else 0


# ---- which deployments a change concerns ---------------------------------------------------------


def deployments_of_set_change(
    change: Change[MachineSet], deployments: Store[MachineDeployment]
) -> Iterable[str]:
    """Return the keys of the deployments that a set belongs to, belonged to, or could belong to.

    Machines need no way of their own to a deployment: whatever counts of them shows in the status
    of their set.
    """
    old, new = change.old, change.new
    if change.resync:
        return ()
    keys = dict.fromkeys(_owner_keys(old.metadata, deployments) if old else ())
    if new is not None:
        keys |= dict.fromkeys(_owner_keys(new.metadata, deployments))
        if new.metadata.controller_ref() is None and _may_be_adopted(old, new):
            keys |= dict.fromkeys(_selecting(new.metadata, deployments))
    return keys


def deployment_of_own_change(change: Change[MachineDeployment]) -> Iterable[str]:
    """Return its own key, unless the status is all that changed: only we write that."""
    old, new = change.old, change.new
    if old and new and not change.resync and _wanted(old) == _wanted(new):
        return ()
    return (change.object.metadata.key,)


def _may_be_adopted(old: MachineSet | None, new: MachineSet) -> bool:
    """An orphan is offered when it appears, loses its owner, or is labelled anew."""
    if old is None or old.metadata.labels != new.metadata.labels:
        return True
    return old.metadata.owner_references != new.metadata.owner_references


def _owner_keys(machine_set: ObjectMeta, deployments: Store[MachineDeployment]) -> Iterator[str]:
    ref = machine_set.controller_ref()
    if ref is None or ref.kind != MACHINE_DEPLOYMENTS.kind:
        return
    key = f"{machine_set.namespace}/{ref.name}"
    owner = deployments.get(key)
    if owner is not None and owner.metadata.uid == ref.uid:
        yield key


def _selecting(orphan: ObjectMeta, deployments: Store[MachineDeployment]) -> Iterator[str]:
    for deployment in deployments.list(orphan.namespace):
        selector = deployment.spec.selector
        if not is_empty(selector) and matches(selector, orphan.labels):
            yield deployment.metadata.key


def _wanted(deployment: MachineDeployment) -> tuple[object, ...]:
    meta = deployment.metadata
    return (
        meta.uid,
        meta.labels,
        meta.annotations,
        meta.finalizers,
        meta.deletion_timestamp,
        meta.generation,
        deployment.spec,
    )
