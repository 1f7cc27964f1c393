"""Wiring of the machine controller: its stores, its queue, what wakes it, and who else it needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcm.api.core import (
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    SECRETS,
    VOLUME_ATTACHMENTS,
    Node,
    Pod,
    PodDisruptionBudget,
    Secret,
)
from mcm.api.machine import MACHINE_CLASSES, MACHINES, Machine, MachineClass
from mcm.controllers import indexes, reachability
from mcm.controllers.context import ControllerContext
from mcm.controllers.machine import wakeups
from mcm.controllers.machine.backoff import Backoff
from mcm.controllers.machine.health.failure_permit import FailurePermits, index_groups
from mcm.controllers.machine.metrics import MachineMetrics
from mcm.controllers.machine.ports import Ports, Target
from mcm.controllers.machine.reconciler import MachineReconciler
from mcm.controllers.provider import Places
from mcm.controllers.reachability import ReachabilityProbe
from mcm.controllers.runtime import Controller
from mcm.informers import Change
from mcm.workqueue import INITIAL_PRIORITY, WorkQueue

NAME = "machine"

_SPARE_WORKERS = 16
"""Beyond the places for calls: passes that call no provider never wait for one that does."""


def build(ctx: ControllerContext) -> Sequence[Controller]:
    """Make the controllers and register their handlers; nothing runs yet."""
    queue = ctx.queue(NAME)
    machines = ctx.control_informers.store(MACHINES)

    def recovered() -> None:
        # Whoever's time ran out while an API server was out of reach waits for this.
        _add(queue, tuple(machines.keys()), initial=True)

    probe, probing = reachability.build(ctx, recovered=recovered)
    ports = _ports(ctx, queue, probe)
    _listen_to_control(ctx, ports, queue)
    _listen_to_target(ctx, ports, queue)
    reconciler = MachineReconciler(ports)
    workers = 2 * ctx.options.machine_concurrent_syncs + _SPARE_WORKERS
    return (
        ctx.controller(NAME, queue, reconciler.reconcile, workers=workers),
        probing,
    )


def _ports(ctx: ControllerContext, queue: WorkQueue[str], probe: ReachabilityProbe) -> Ports:
    control = ctx.control_informers
    ports = Ports(
        machines=control.store(MACHINES),
        classes=control.store(MACHINE_CLASSES),
        secrets=control.store(SECRETS),
        control=control.writer,
        target=_target(ctx),
        provider=ctx.provider,
        clock=ctx.clock,
        events=ctx.events,
        settings=ctx.options,
        random=ctx.random,
        backoff=Backoff(
            exhausted=ctx.options.resource_exhausted_retry.total_seconds(), random=ctx.random
        ),
        places=Places(width=ctx.options.machine_concurrent_syncs, wake=queue.add),
        permits=FailurePermits(),
        reachability=lambda: probe.reachability,
        metrics=MachineMetrics.of(ctx.registry),
    )
    indexes.index_machines(ports.machines)
    index_groups(ports.machines)
    indexes.index_classes(ports.classes)
    return ports


def _target(ctx: ControllerContext) -> Target | None:
    informers = ctx.target_informers
    if informers is None or ctx.target is None:
        return None
    target = Target(
        client=ctx.target,
        writer=informers.writer,
        nodes=informers.store(NODES),
        pods=informers.store(PODS),
        budgets=informers.store(POD_DISRUPTION_BUDGETS),
        attachments=informers.store(VOLUME_ATTACHMENTS),
    )
    indexes.index_nodes(target.nodes)
    indexes.index_pods(target.pods)
    indexes.index_attachments(target.attachments)
    return target


def _listen_to_control(ctx: ControllerContext, ports: Ports, queue: WorkQueue[str]) -> None:
    def on_machine(change: Change[Machine]) -> None:
        if change.new is None:
            _forget(ports, change.object)
        _add(queue, wakeups.of_machine(change, ports.machines), initial=change.initial)

    def on_class(change: Change[MachineClass]) -> None:
        _add(queue, wakeups.of_class(change, ports.machines))

    def on_secret(change: Change[Secret]) -> None:
        _add(queue, wakeups.of_secret(change, ports.classes, ports.machines))

    ctx.control_informers.informer(MACHINES).add_handler(on_machine)
    ctx.control_informers.informer(MACHINE_CLASSES).add_handler(on_class)
    ctx.control_informers.informer(SECRETS).add_handler(on_secret)


def _listen_to_target(ctx: ControllerContext, ports: Ports, queue: WorkQueue[str]) -> None:
    def on_node(change: Change[Node]) -> None:
        for machine in wakeups.losing_node(change, ports.machines):
            ports.memory.departed.add(machine.metadata.uid)
        keys = wakeups.of_node(change, ports.machines, ctx.namespace)
        _add(queue, keys, initial=change.initial)

    def on_pod(change: Change[Pod]) -> None:
        _add(queue, wakeups.of_pod(change, ports.machines), initial=change.initial)

    def on_budget(change: Change[PodDisruptionBudget]) -> None:
        _add(queue, wakeups.of_budget(change, ports.memory.drains.values()))

    informers = ctx.target_informers
    if informers is not None:
        informers.informer(NODES).add_handler(on_node)
        informers.informer(PODS).add_handler(on_pod)
        informers.informer(POD_DISRUPTION_BUDGETS).add_handler(on_budget)


def _forget(ports: Ports, machine: Machine) -> None:
    ports.memory.forget(machine.metadata.uid)
    ports.backoff.forget(machine.metadata.uid)


def _add(queue: WorkQueue[str], keys: Iterable[str], *, initial: bool = False) -> None:
    for key in keys:
        queue.add(key, priority=INITIAL_PRIORITY if initial else 0)
