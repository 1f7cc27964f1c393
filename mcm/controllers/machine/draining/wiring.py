"""Builds the drain engine of the target cluster, and registers what wakes drains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mcm.api.core import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    VOLUME_ATTACHMENTS,
    Node,
    Pod,
    PodDisruptionBudget,
    VolumeAttachment,
)
from mcm.api.machine import MACHINES, Machine
from mcm.controllers.context import ControllerContext
from mcm.controllers.enqueue import enqueue, enqueue_changes
from mcm.controllers.indexes import machines_on
from mcm.controllers.machine.draining import surge_settling, wakeups, wishes
from mcm.controllers.machine.draining.metrics import DrainMetrics
from mcm.controllers.machine.memory import Memory
from mcm.controllers.machine.ports import ControlCluster
from mcm.controllers.runtime import Controller
from mcm.drain.budgets import Disruptions
from mcm.drain.engine import DrainEngine
from mcm.drain.execution import PodRequests
from mcm.drain.observation import DrainStores, Observation, Staleness
from mcm.drain.pass_turns import PassTurns
from mcm.drain.surge import Surges
from mcm.informers import Change, InformerFactory
from mcm.workqueue import WorkQueue


def build_engine(
    ctx: ControllerContext,
    control: ControlCluster,
    memory: Memory,
    queue: WorkQueue[str],
    *,
    ids: Mapping[str, tuple[str, ...]],
) -> tuple[DrainEngine | None, Sequence[Controller]]:
    """Make it, if there is a target cluster, and the controllers that go with it. ``ids``: what the
    provider calls volumes that only it can name, by PersistentVolume, as far as it was asked."""
    informers = ctx.target_informers
    if informers is None or ctx.target is None:
        return None, ()
    stores = DrainStores.of(informers)

    def freed(namespace: str) -> None:
        enqueue(queue, wakeups.of_freed_budgets(namespace, memory.drains))

    def has_turn(node: str) -> None:
        enqueue(queue, [machine.metadata.key for machine in machines_on(control.machines, node)])

    metrics = DrainMetrics.of(ctx.registry)
    metrics.show(lambda: [drain.watch for drain in memory.drains.values()])
    disruptions = Disruptions(
        pods=stores.pods.get, budgets=stores.budgets.get, random=ctx.random, freed=freed
    )
    staleness = Staleness.of(informers, ctx.clock)
    marked = ctx.queue(surge_settling.NAME)
    surges = Surges(
        ctx.target,
        stores.pods,
        clock=ctx.clock,
        blind=staleness.pods,
        marked=marked.add_after,
        wake=has_turn,
    )
    _listen(informers, disruptions, surges, control, memory, queue)
    _listen_to_people(ctx, informers, control, memory)
    engine = DrainEngine(
        Observation(stores, staleness, ids=ids),
        PodRequests(
            ctx.target,
            disruptions,
            monotonic=ctx.clock.monotonic,
            random=ctx.random,
            told=metrics.answered,
        ),
        tracer=ctx.tracer,
        clock=ctx.clock,
        disruptions=disruptions,
        turns=PassTurns(wake=has_turn),
        surges=surges,
        witness=metrics,
    )
    return engine, (surge_settling.build(ctx, marked, surges),)


def _listen_to_people(
    ctx: ControllerContext, informers: InformerFactory, control: ControlCluster, memory: Memory
) -> None:
    """End passes under way that were begun with other wishes."""

    def machine_changed(change: Change[Machine]) -> None:
        for drain in wishes.changed_on_machine(change, memory.drains):
            drain.memory.interruption.call()

    def node_changed(change: Change[Node]) -> None:
        for drain in wishes.changed_on_node(change, control.machines, memory.drains):
            drain.memory.interruption.call()

    ctx.control_informers.informer(MACHINES).add_handler(machine_changed)
    informers.informer(NODES).add_handler(node_changed)


def _listen(
    informers: InformerFactory,
    disruptions: Disruptions,
    surges: Surges,
    control: ControlCluster,
    memory: Memory,
    queue: WorkQueue[str],
) -> None:
    drains = memory.drains

    def of_node(change: Change[Node]) -> Iterable[str]:
        return wakeups.of_node(change, control.machines, drains)

    def of_pod(change: Change[Pod]) -> Iterable[str]:
        disruptions.pod_changed(change.object.metadata.uid)
        surges.pod_changed(change.object)
        return wakeups.of_pod(change, control.machines, drains)

    def of_budget(change: Change[PodDisruptionBudget]) -> Iterable[str]:
        disruptions.budget_changed(change.object.metadata.key, change.new)
        return wakeups.of_budget(change, drains)

    def of_attachment(change: Change[VolumeAttachment]) -> Iterable[str]:
        return wakeups.of_attachment(change, drains)

    def can_observe_or_not() -> None:
        enqueue(queue, [drain.machine_key for drain in drains.values()])

    enqueue_changes(queue, informers.informer(NODES), of_node)
    enqueue_changes(queue, informers.informer(PODS), of_pod)
    enqueue_changes(queue, informers.informer(POD_DISRUPTION_BUDGETS), of_budget)
    enqueue_changes(queue, informers.informer(VOLUME_ATTACHMENTS), of_attachment)
    for resource in (PODS, VOLUME_ATTACHMENTS, PERSISTENT_VOLUME_CLAIMS):
        informers.informer(resource).when_current(can_observe_or_not)
    informers.informer(PODS).when_stale(can_observe_or_not)  # it is to be said
