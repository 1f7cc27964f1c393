"""DaemonSets: one pod on every Node that takes it, whatever state the Node is in."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import final

import msgspec

from mcm.client.client import Client
from mcm.client.errors import Conflict, NotFound
from mcm.clock import Clock
from mcm.controllers.runtime import DONE, Outcome
from mcm.informers.change import Change
from mcm.informers.factory import InformerFactory
from mcm.sandbox.world.actor import Actor
from mcm.sandbox.world.daemon_placement import LABEL_HASH, belongs_on, plan, tolerations_of
from mcm.sandbox.world.kinds import (
    DAEMON_SETS,
    NODES,
    PODS,
    DaemonSet,
    DaemonSetStatus,
    Node,
    Pod,
    PodSpec,
    PodTemplate,
)
from mcm.sandbox.world.owned_pods import BY_OWNER, pod_from_template, template_hash
from mcm.sandbox.world.replica_sets import explicit


@final
class DaemonSets(Actor):
    """Keyed by DaemonSet. Its pods are made with their Node's name and need no scheduler."""

    name = "daemonset-controller"

    def __init__(self, client: Client, mirror: InformerFactory, *, clock: Clock) -> None:
        super().__init__(client, mirror, clock=clock)
        self._sets = mirror.store(DAEMON_SETS)
        self._nodes = mirror.store(NODES)
        self._pods = mirror.store(PODS)
        mirror.informer(DAEMON_SETS).add_handler(self._on_set)
        mirror.informer(NODES).add_handler(self._on_node)
        mirror.informer(PODS).add_handler(self._on_pod)

    def _on_set(self, change: Change[DaemonSet]) -> None:
        self._queue.add(change.object.metadata.key)

    def _on_node(self, change: Change[Node]) -> None:
        old, new = change.old, change.new
        if old is not None and new is not None and _placed_by(old) == _placed_by(new):
            return
        for daemon_set in self._sets.list():
            self._queue.add(daemon_set.metadata.key)

    def _on_pod(self, change: Change[Pod]) -> None:
        meta = change.object.metadata
        ref = meta.controller_ref()
        if ref is not None and ref.kind == DAEMON_SETS.kind:
            self._queue.add(f"{meta.namespace}/{ref.name}")

    async def _reconcile(self, key: str) -> Outcome:
        daemon_set = self._sets.get(key)
        if daemon_set is None or daemon_set.metadata.deletion_timestamp is not None:
            return DONE
        wanted = msgspec.convert(daemon_set.spec.template.get("spec") or {}, PodSpec)
        nodes = [n.metadata.name for n in self._nodes.list() if belongs_on(n, wanted)]
        revision = template_hash(daemon_set.spec.template)
        found = plan(
            nodes,
            self._pods_of(daemon_set),
            revision=revision,
            rolls=daemon_set.spec.update_strategy.type != "OnDelete",
        )
        for name in found.missing:
            await self._create(daemon_set, name, revision)
        for pod in found.surplus:
            await self._delete(pod)
        await self._report(daemon_set, nodes, revision)
        return DONE

    def _pods_of(self, daemon_set: DaemonSet) -> Sequence[Pod]:
        return self._pods.by_index(BY_OWNER, daemon_set.metadata.uid)

    async def _create(self, daemon_set: DaemonSet, node_name: str, revision: str) -> None:
        template = PodTemplate.read(daemon_set.spec.template)
        manifest = pod_from_template(
            DAEMON_SETS,
            daemon_set,
            daemon_set.spec.template,
            labels={LABEL_HASH: revision},
            spec={"nodeName": node_name, "tolerations": tolerations_of(template.spec)},
        )
        await self._writer.create(PODS, manifest, namespace=daemon_set.metadata.namespace)

    async def _delete(self, pod: Pod) -> None:
        with suppress(NotFound, Conflict):  # somebody else was faster
            await self._writer.delete(
                PODS,
                pod.metadata.name,
                namespace=pod.metadata.namespace,
                uid=pod.metadata.uid,
            )

    async def _report(self, daemon_set: DaemonSet, nodes: Sequence[str], revision: str) -> None:
        pods = [pod for pod in self._pods_of(daemon_set) if pod.active]
        placed = [pod for pod in pods if pod.spec.node_name in nodes]
        updated = [p for p in placed if p.metadata.labels.get(LABEL_HASH) == revision]
        ready = sum(1 for pod in placed if pod.ready)
        status = DaemonSetStatus(
            desired_number_scheduled=len(nodes),
            current_number_scheduled=len(placed),
            updated_number_scheduled=len(updated),
            number_ready=ready,
            number_available=ready,
            number_unavailable=len(nodes) - ready,
            number_misscheduled=len(pods) - len(placed),
            observed_generation=daemon_set.metadata.generation,
        )
        if status == daemon_set.status:
            return
        meta = daemon_set.metadata
        with suppress(NotFound):
            await self._writer.patch(
                DAEMON_SETS,
                meta.name,
                {"metadata": {"uid": meta.uid}, "status": explicit(status)},
                namespace=meta.namespace,
                subresource="status",
            )


def _placed_by(node: Node) -> tuple[object, ...]:
    """What of a Node decides whether daemons belong on it."""
    return (node.metadata.uid, node.metadata.labels, node.spec.taints)
