"""Wires overshoot safety: what wakes a look at a set, and what one at a deployment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    Machine,
    MachineDeployment,
    MachineSet,
)
from mcm.api.meta import ObjectMeta, T
from mcm.api.names import ANNOTATION_UNFREEZE, LABEL_FREEZE
from mcm.controllers.context import ControllerContext
from mcm.controllers.enqueue import enqueue_changes
from mcm.controllers.overshooting.decision import is_frozen
from mcm.controllers.overshooting.deployment_freeze import DeploymentFreeze
from mcm.controllers.overshooting.forced_unfreezes import ForcedUnfreezes
from mcm.controllers.overshooting.limits import Margins, SetLimits
from mcm.controllers.overshooting.metrics import FreezeMetrics
from mcm.controllers.overshooting.set_freeze import SetFreeze
from mcm.controllers.owning import children_of, index_by_owner
from mcm.controllers.runtime import Controller
from mcm.controllers.write_guard import author_of
from mcm.informers import Change, Store

SETS_NAME = "machinesafetyovershooting"
DEPLOYMENTS_NAME = "machinesafetyfreeze"


def build(ctx: ControllerContext) -> Sequence[Controller]:
    """Make the controllers and register their handlers; nothing runs yet."""
    index_by_owner(ctx.control_informers.store(MACHINES))
    index_by_owner(ctx.control_informers.store(MACHINE_SETS))
    return (_of_sets(ctx), _of_deployments(ctx))


def _of_sets(ctx: ControllerContext) -> Controller:
    informers, settings = ctx.control_informers, ctx.options
    deployments = informers.informer(MACHINE_DEPLOYMENTS)
    sets = informers.informer(MACHINE_SETS)
    machines = informers.informer(MACHINES)
    period = settings.overshooting_period.total_seconds()
    forced = ForcedUnfreezes(ctx.clock, period)
    freeze = SetFreeze(
        sets=sets.store,
        machines=machines.store,
        limits=SetLimits(deployments.store, Margins.of(settings)),
        forced=forced,
        writer=informers.writer,
        events=ctx.events,
        metrics=FreezeMetrics.of(ctx.registry),
        period=period,
    )
    sets.add_handler(noting_unfreezes(forced))  # before the look that this wakes
    queue = ctx.queue(SETS_NAME)
    enqueue_changes(queue, sets, set_to_look_at)
    enqueue_changes(queue, machines, lambda change: sets_of_machine(change, sets.store))
    enqueue_changes(queue, deployments, lambda change: sets_of_deployment(change, sets.store))
    workers = settings.concurrent_syncs
    return ctx.controller(SETS_NAME, queue, freeze.reconcile, workers=workers, regards=sets)


def _of_deployments(ctx: ControllerContext) -> Controller:
    informers = ctx.control_informers
    deployments = informers.informer(MACHINE_DEPLOYMENTS)
    sets = informers.informer(MACHINE_SETS)
    freeze = DeploymentFreeze(
        deployments=deployments.store, sets=sets.store, writer=informers.writer, events=ctx.events
    )
    queue = ctx.queue(DEPLOYMENTS_NAME)
    enqueue_changes(queue, deployments, deployment_to_look_at)
    enqueue_changes(queue, sets, lambda change: deployments_of_set(change, deployments.store))
    workers = ctx.options.concurrent_syncs
    return ctx.controller(
        DEPLOYMENTS_NAME, queue, freeze.reconcile, workers=workers, regards=deployments
    )


# ---- which changes wake whom ---------------------------------------------------------------------


def noting_unfreezes(forced: ForcedUnfreezes) -> Callable[[Change[MachineSet]], None]:
    """Return the handler that notes when anybody but the look at a set itself unfreezes it."""

    def handle(change: Change[MachineSet]) -> None:
        old, new = change.old, change.new
        if old is None or new is None or not is_frozen(old.metadata) or is_frozen(new.metadata):
            return
        if change.author != author_of(SETS_NAME, new.metadata.key):
            forced.note(new.metadata.key)

    return handle


def set_to_look_at(change: Change[MachineSet]) -> Iterable[str]:
    """Return a set's key if it changed in what freezing turns on."""
    return _key_if_differs(change, _seen_in_set)


def deployment_to_look_at(change: Change[MachineDeployment]) -> Iterable[str]:
    """Return a deployment's key if it was frozen or unfrozen, or somebody asks for that."""
    return _key_if_differs(change, lambda deployment: _marks(deployment.metadata))


def sets_of_machine(change: Change[Machine], sets: Store[MachineSet]) -> Iterable[str]:
    """Return the sets that have one machine more or less. One that is leaving counts until it has
    left."""
    old, new = change.old, change.new
    owners = {_owner(m.metadata, MACHINE_SETS.kind) for m in (old, new) if m is not None}
    if old is not None and new is not None and len(owners) == 1:
        return ()
    return _existing(owners, sets)


def sets_of_deployment(change: Change[MachineDeployment], sets: Store[MachineSet]) -> Iterable[str]:
    """Return the sets whose limits may have changed with their deployment."""
    old, new = change.old, change.new
    if old is not None and new is not None and old.spec == new.spec:
        return ()
    return [s.metadata.key for s in children_of(sets, change.object.metadata.uid)]


def deployments_of_set(
    change: Change[MachineSet], deployments: Store[MachineDeployment]
) -> Iterable[str]:
    """Return the deployments that have, or had, a set which was frozen or unfrozen."""
    old, new = change.old, change.new
    if old is not None and new is not None and _seen_of_set(old) == _seen_of_set(new):
        return ()
    kind = MACHINE_DEPLOYMENTS.kind
    owners = {_owner(s.metadata, kind) for s in (old, new) if s is not None}
    return _existing(owners, deployments)


def _key_if_differs(change: Change[T], seen: Callable[[T], object]) -> Iterable[str]:
    old, new = change.old, change.new
    if old is not None and new is not None and seen(old) == seen(new):
        return ()
    return (change.object.metadata.key,)


def _seen_in_set(machine_set: MachineSet) -> object:
    meta = machine_set.metadata
    return (_marks(meta), _owner(meta, MACHINE_DEPLOYMENTS.kind), machine_set.spec)


def _seen_of_set(machine_set: MachineSet) -> object:
    meta = machine_set.metadata
    leaving = meta.deletion_timestamp is not None
    return (is_frozen(meta), leaving, _owner(meta, MACHINE_DEPLOYMENTS.kind))


def _marks(meta: ObjectMeta) -> object:
    return (
        meta.labels.get(LABEL_FREEZE),
        meta.annotations.get(ANNOTATION_UNFREEZE),
        meta.deletion_timestamp is not None,
    )


def _owner(meta: ObjectMeta, kind: str) -> tuple[str, str]:
    """Return key and UID of the controller of that kind, empty if there is none."""
    ref = meta.controller_ref()
    if ref is None or ref.kind != kind:
        return ("", "")
    return (f"{meta.namespace}/{ref.name}", ref.uid)


def _existing(owners: Iterable[tuple[str, str]], store: Store[T]) -> Iterable[str]:
    for key, uid in owners:
        found = store.get(key)
        if found is not None and found.metadata.uid == uid:
            yield key
