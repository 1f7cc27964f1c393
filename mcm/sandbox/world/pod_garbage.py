"""Pods that nobody runs any more: their Node is gone from the cluster, or out of service."""

from __future__ import annotations

from contextlib import suppress
from typing import final

from mcm.api.names import EFFECT_NO_EXECUTE, TAINT_OUT_OF_SERVICE
from mcm.api.tolerations import tolerates
from mcm.client.client import Client
from mcm.client.errors import Conflict, NotFound
from mcm.clock import Clock
from mcm.controllers.runtime import DONE, Outcome
from mcm.informers.change import Change
from mcm.informers.factory import InformerFactory
from mcm.sandbox.world.actor import Actor
from mcm.sandbox.world.kinds import NODES, PODS, Node, Pod
from mcm.sandbox.world.owned_pods import BY_NODE


@final
class PodGarbage(Actor):
    """Keyed by Node. ``patience`` is for how many seconds a Node must have been missing: it may be
    registering just now, or be known to the mirror of pods before that of Nodes. The pods of one
    that is not ready and tainted as out of service are deleted by force."""

    name = "pod-garbage-collector"

    def __init__(
        self, client: Client, mirror: InformerFactory, *, clock: Clock, patience: float = 5.0
    ) -> None:
        super().__init__(client, mirror, clock=clock)
        self._patience = patience
        self._missing_since: dict[str, float] = {}
        self._nodes = mirror.store(NODES)
        self._pods = mirror.store(PODS)
        mirror.informer(NODES).add_handler(self._on_node)
        mirror.informer(PODS).add_handler(self._on_pod)

    def _on_node(self, change: Change[Node]) -> None:
        name = change.object.metadata.name
        if change.new is None:
            self._queue.add(name)
            return
        self._missing_since.pop(name, None)
        if is_out_of_service(change.new):
            self._queue.add(name)

    def _on_pod(self, change: Change[Pod]) -> None:
        name = change.object.spec.node_name
        if change.new is None or not name:
            return
        node = self._nodes.get(name)
        if node is None or is_out_of_service(node):
            self._queue.add(name)

    async def _reconcile(self, key: str) -> Outcome:
        pods, node = self._pods.by_index(BY_NODE, key), self._nodes.get(key)
        if node is None and pods:
            now = self._clock.monotonic()
            left = self._missing_since.setdefault(key, now) + self._patience - now
            if left > 0:
                return Outcome(after=left, reason="the node may still come")
        else:
            self._missing_since.pop(key, None)
        for pod in pods:
            if node is None or (is_out_of_service(node) and loses(node, pod)):
                await self._delete(pod)
        return DONE

    async def _delete(self, pod: Pod) -> None:
        with suppress(NotFound, Conflict):
            await self._writer.delete(
                PODS,
                pod.metadata.name,
                namespace=pod.metadata.namespace,
                uid=pod.metadata.uid,
                grace_period_seconds=0,
            )


def is_out_of_service(node: Node) -> bool:
    """Tell whether somebody vouches for it that nothing runs on this Node any more. Of a Node that
    is ready, nobody is believed."""
    return not node.ready and any(t.key == TAINT_OUT_OF_SERVICE for t in node.spec.taints)


def loses(node: Node, pod: Pod) -> bool:
    """Tell whether a Node out of service loses a pod: one that is terminating, or does not
    tolerate the taint where that one evicts."""
    if pod.terminating:
        return True
    taints = (t for t in node.spec.taints if t.key == TAINT_OUT_OF_SERVICE)
    evicting = (t for t in taints if t.effect == EFFECT_NO_EXECUTE)
    return any(not tolerates(pod.spec.tolerations, taint) for taint in evicting)
