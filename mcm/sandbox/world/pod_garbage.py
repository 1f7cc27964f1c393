"""Pods that nobody runs any more: their Node is gone from the cluster."""

from __future__ import annotations

from contextlib import suppress
from typing import final

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
    registering just now, or be known to the mirror of pods before that of Nodes."""

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
        else:
            self._missing_since.pop(name, None)

    def _on_pod(self, change: Change[Pod]) -> None:
        name = change.object.spec.node_name
        if change.new is not None and name and name not in self._nodes:
            self._queue.add(name)

    async def _reconcile(self, key: str) -> Outcome:
        pods = self._pods.by_index(BY_NODE, key)
        if key in self._nodes or not pods:
            self._missing_since.pop(key, None)
            return DONE
        now = self._clock.monotonic()
        left = self._missing_since.setdefault(key, now) + self._patience - now
        if left > 0:
            return Outcome(after=left, reason="the node may still come")
        for pod in pods:
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
