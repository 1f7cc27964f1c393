"""Wiring of the machine controller: its stores, its queue, what wakes it, and who else it needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from mcm.api.core import (
    NODES,
    PERSISTENT_VOLUMES,
    PODS,
    SECRETS,
    VOLUME_ATTACHMENTS,
    Node,
    Secret,
    VolumeAttachment,
)
from mcm.api.machine import (
    MACHINE_CLASSES,
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    Machine,
    MachineClass,
    MachineSet,
)
from mcm.controllers import indexes, reachability
from mcm.controllers.context import ControllerContext
from mcm.controllers.enqueue import enqueue, enqueue_changes
from mcm.controllers.machine import wakeups
from mcm.controllers.machine.assembly import Assembly
from mcm.controllers.machine.backoff import MachineBackoff
from mcm.controllers.machine.class_migration.references import References
from mcm.controllers.machine.creation.metrics import BackoffMetrics
from mcm.controllers.machine.creation.shared_backoff import SharedBackoff
from mcm.controllers.machine.deletion.wakeups import of_attachment as of_attachment_in_deletion
from mcm.controllers.machine.deletion.wakeups import of_node_volumes
from mcm.controllers.machine.draining.metrics import DrainMetrics
from mcm.controllers.machine.draining.telling import DrainTelling
from mcm.controllers.machine.draining.volume_ids import VolumeIds
from mcm.controllers.machine.draining.wiring import build_engine
from mcm.controllers.machine.health import meltdown
from mcm.controllers.machine.health.failure_permit import FailurePermits, index_waiting
from mcm.controllers.machine.health.giving_up import GivingUp, failure_permits
from mcm.controllers.machine.health.moving_machines import MovingMachines
from mcm.controllers.machine.health.waiting_line import WaitingLine
from mcm.controllers.machine.hot_update.pace import HotUpdatePace
from mcm.controllers.machine.hot_update.progress import HotUpdateMetrics, HotUpdateProgress
from mcm.controllers.machine.memory import Memory
from mcm.controllers.machine.metrics import MachineMetrics
from mcm.controllers.machine.ports import ControlCluster, TargetCluster
from mcm.controllers.machine.reconciler import MachineReconciler
from mcm.controllers.node_ownership import NodeOwners
from mcm.controllers.provider import Places
from mcm.controllers.rollouts import Rollouts
from mcm.controllers.runtime import Controller
from mcm.drain.volumes import index_attachments
from mcm.informers import Change, InformerFactory, Store
from mcm.metrics import once_per_registry
from mcm.workqueue import WorkQueue

NAME = "machine"

_SPARE_WORKERS = 16
"""Beyond the places for calls: passes that call no provider never wait for one that does."""


def build(ctx: ControllerContext) -> Sequence[Controller]:
    """Make the controllers and register their handlers; nothing runs yet."""
    queue = ctx.queue(NAME)
    control, memory = _control(ctx), _memory(ctx, queue)
    target = _target(ctx, control.machines)

    def recovered() -> None:
        # Whoever's time ran out while an API server was out of reach waits for this.
        enqueue(queue, tuple(control.machines.keys()), initial=True)

    progress = HotUpdateProgress(
        control.machines, control.classes, HotUpdateMetrics.of(ctx.registry)
    )
    ctx.control_informers.informer(MACHINE_CLASSES).add_handler(progress.class_changed)
    ctx.control_informers.informer(MACHINES).add_handler(progress.machine_changed)
    probe, probing = reachability.build(ctx, recovered=recovered)
    giving_up, protecting = _giving_up(ctx, control, queue)
    _listen_to_control(ctx, control, target, memory, queue, giving_up.line)
    _listen_to_target(ctx, control, memory, queue)
    ids = VolumeIds(control, ctx.provider, target.volumes) if target is not None else None
    drains, settling = build_engine(
        ctx, control, memory, queue, ids=ids.known if ids is not None else {}
    )
    assembly = Assembly(
        control=control,
        target=target,
        references=_references(ctx, control),
        rollouts=_rollouts(ctx, control),
        provider=ctx.provider,
        memory=memory,
        giving_up=giving_up,
        metrics=_metrics(ctx),
        drain_telling=DrainTelling(control, DrainMetrics.of(ctx.registry)),
        random=ctx.random,
        reachability=lambda: probe.reachability,
        hot_progress=progress,
        drains=drains,
        volume_ids=ids,
    )
    reconciler = MachineReconciler(
        control.machines,
        assembly.acts(),
        places=memory.places,
        line=giving_up.line,
        wake_after=queue.add_after,
    )
    workers = memory.places.most + _SPARE_WORKERS
    mirror = ctx.control_informers.informer(MACHINES)
    return (
        ctx.controller(NAME, queue, reconciler.reconcile, workers=workers, regards=mirror),
        probing,
        protecting,
        *settling,
    )


def _metrics(ctx: ControllerContext) -> MachineMetrics:
    metrics, informers = MachineMetrics.of(ctx.registry), ctx.control_informers
    metrics.keep_of_those_there(
        informers.informer(MACHINES), informers.informer(MACHINE_DEPLOYMENTS)
    )
    return metrics


# ---- clusters and memory ------------------------------------------------------------------------


def _control(ctx: ControllerContext) -> ControlCluster:
    informers = ctx.control_informers
    control = ControlCluster(
        machines=informers.store(MACHINES),
        classes=informers.store(MACHINE_CLASSES),
        secrets=informers.store(SECRETS),
        client=ctx.control,
        writer=informers.writer,
        events=ctx.events,
        clock=ctx.clock,
        defaults=ctx.options,
    )
    indexes.index_machines(control.machines)
    index_waiting(control.machines)
    indexes.index_classes(control.classes)
    return control


def _references(ctx: ControllerContext, control: ControlCluster) -> References:
    informers = ctx.control_informers
    return References(
        machines=control.machines,
        sets=informers.store(MACHINE_SETS),
        deployments=informers.store(MACHINE_DEPLOYMENTS),
        writer=informers.writer,
    )


def _target(ctx: ControllerContext, machines: Store[Machine]) -> TargetCluster | None:
    informers = ctx.target_informers
    if informers is None or ctx.target is None:
        return None
    nodes = informers.store(NODES)
    target = TargetCluster(
        client=ctx.target,
        writer=informers.writer,
        nodes=nodes,
        pods=informers.store(PODS),
        volumes=informers.store(PERSISTENT_VOLUMES),
        attachments=informers.store(VOLUME_ATTACHMENTS),
        owners=NodeOwners(machines, nodes, ctx.namespace),
    )
    index_attachments(target.attachments)
    return target


def _rollouts(ctx: ControllerContext, control: ControlCluster) -> Rollouts | None:
    if not ctx.options.autoscaler_scaledown_annotation:
        return None
    informers = ctx.control_informers
    return Rollouts(
        control.machines, informers.store(MACHINE_SETS), informers.store(MACHINE_DEPLOYMENTS)
    )


def _memory(ctx: ControllerContext, queue: WorkQueue[str]) -> Memory:
    exhausted = ctx.options.resource_exhausted_retry.total_seconds()
    hot_updates = HotUpdatePace(
        clock=ctx.clock, backoff=MachineBackoff(exhausted=exhausted, random=ctx.random)
    )
    shared = SharedBackoff(exhausted=exhausted, random=ctx.random, wake=queue.add)
    BackoffMetrics.of(ctx.registry).show(shared.held_back)
    return Memory(
        backoff=MachineBackoff(exhausted=exhausted, random=ctx.random),
        places=Places(
            width=ctx.options.machine_concurrent_syncs,
            wake=queue.add,
            updating=hot_updates.at_once,
        ),
        hot_updates=hot_updates,
        shared=shared,
    )


def _giving_up(
    ctx: ControllerContext, control: ControlCluster, queue: WorkQueue[str]
) -> tuple[GivingUp, Controller]:
    sets = ctx.control_informers.store(MACHINE_SETS)
    moving = MovingMachines(sets)
    ctx.control_informers.informer(MACHINES).add_handler(moving.note)

    def wake(keys: Iterable[str]) -> None:
        enqueue(queue, keys, initial=True)

    def of_set(change: Change[MachineSet]) -> Iterable[str]:
        return wakeups.of_set(change, control.machines, moving)

    enqueue_changes(queue, ctx.control_informers.informer(MACHINE_SETS), of_set)
    protection, protecting = meltdown.build(ctx, wake=wake)
    limit = ctx.options.max_concurrent_replacements
    line = WaitingLine(wake=queue.add, wake_after=queue.add_after)
    permits = FailurePermits(unused=line.offer, limit=limit)
    allowed = GivingUp(
        sets=sets,
        moving=moving,
        permits=permits,
        line=line,
        protection=protection,
        asked=once_per_registry(ctx.registry, failure_permits),
    )
    return allowed, protecting


# ---- what wakes a machine -----------------------------------------------------------------------


def _listen_to_control(
    ctx: ControllerContext,
    control: ControlCluster,
    target: TargetCluster | None,
    memory: Memory,
    queue: WorkQueue[str],
    line: WaitingLine,
) -> None:
    owners = target.owners if target is not None else None

    def of_machine(change: Change[Machine]) -> Iterable[str]:
        uid = change.object.metadata.uid
        if change.new is None:
            memory.forget(uid)
        if change.new is None or change.new.metadata.deletion_timestamp is not None:
            memory.shared.forget(uid, ctx.clock.monotonic())
        keys = wakeups.of_machine(change, line)
        if owners is None:
            return keys
        return chain(keys, wakeups.of_node_change_of_machine(change, owners))

    def of_class(change: Change[MachineClass]) -> Iterable[str]:
        if change.new is None:
            memory.hot_updates.forget_class(change.object.metadata.key)
        return wakeups.of_class(change, control.machines)

    def of_secret(change: Change[Secret]) -> Iterable[str]:
        return wakeups.of_secret(change, control.classes, control.machines)

    informers = ctx.control_informers
    enqueue_changes(queue, informers.informer(MACHINES), of_machine, skip_own=True)
    enqueue_changes(queue, informers.informer(MACHINE_CLASSES), of_class)
    enqueue_changes(queue, informers.informer(SECRETS), of_secret)


def _listen_to_target(
    ctx: ControllerContext, control: ControlCluster, memory: Memory, queue: WorkQueue[str]
) -> None:
    def of_node(change: Change[Node]) -> Iterable[str]:
        for machine in wakeups.losing_node(change, control.machines):
            memory.lost_node.add(machine.metadata.uid)
        return wakeups.of_node(change, control.machines, ctx.namespace)

    informers = ctx.target_informers
    if informers is not None:
        enqueue_changes(queue, informers.informer(NODES), of_node, skip_own=True)
        _listen_to_detachments(informers, control, queue)


def _listen_to_detachments(
    informers: InformerFactory, control: ControlCluster, queue: WorkQueue[str]
) -> None:
    def of_attachment(change: Change[VolumeAttachment]) -> Iterable[str]:
        return of_attachment_in_deletion(change, control.machines)

    def of_volumes(change: Change[Node]) -> Iterable[str]:
        return of_node_volumes(change, control.machines)

    enqueue_changes(queue, informers.informer(VOLUME_ATTACHMENTS), of_attachment)
    enqueue_changes(queue, informers.informer(NODES), of_volumes)
