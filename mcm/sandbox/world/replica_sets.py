"""ReplicaSets: as many pods of one template as they ask for, no more and no fewer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import final

import msgspec

from mcm.api.meta import JSONObject
from mcm.client.client import Client
from mcm.client.errors import Conflict, NotFound
from mcm.clock import Clock
from mcm.controllers.runtime import DONE, Outcome
from mcm.informers.change import Change
from mcm.informers.factory import InformerFactory
from mcm.sandbox.world.actor import Actor
from mcm.sandbox.world.kinds import PODS, REPLICA_SETS, Pod, ReplicaSet, ReplicaSetStatus
from mcm.sandbox.world.owned_pods import (
    BY_OWNER,
    Tally,
    least_useful,
    pod_from_template,
    tally,
)


@final
class ReplicaSets(Actor):
    """Keyed by ReplicaSet. Pods that others made are left alone: there is no adoption here."""

    name = "replicaset-controller"

    def __init__(self, client: Client, mirror: InformerFactory, *, clock: Clock) -> None:
        super().__init__(client, mirror, clock=clock)
        self._sets = mirror.store(REPLICA_SETS)
        self._pods = mirror.store(PODS)
        mirror.informer(REPLICA_SETS).add_handler(self._on_set)
        mirror.informer(PODS).add_handler(self._on_pod)

    def _on_set(self, change: Change[ReplicaSet]) -> None:
        self._queue.add(change.object.metadata.key)

    def _on_pod(self, change: Change[Pod]) -> None:
        meta = change.object.metadata
        ref = meta.controller_ref()
        if ref is not None and ref.kind == REPLICA_SETS.kind:
            self._queue.add(f"{meta.namespace}/{ref.name}")

    async def _reconcile(self, key: str) -> Outcome:
        replica_set = self._sets.get(key)
        if replica_set is None:
            return DONE
        if replica_set.metadata.deletion_timestamp is None:
            await self._scale(replica_set)
        count = tally(
            self._active(replica_set),
            min_ready_seconds=replica_set.spec.min_ready_seconds,
            now=self._clock.now(),
        )
        await self._report(replica_set, count)
        return Outcome(after=count.wait, reason="until a pod is available")

    def _active(self, replica_set: ReplicaSet) -> Sequence[Pod]:
        pods = self._pods.by_index(BY_OWNER, replica_set.metadata.uid)
        return [pod for pod in pods if pod.active]

    async def _scale(self, replica_set: ReplicaSet) -> None:
        pods = self._active(replica_set)
        missing = replica_set.spec.replicas - len(pods)
        for _ in range(missing):
            await self._create(replica_set)
        for pod in least_useful(pods, -missing) if missing < 0 else ():
            await self._delete(pod)

    async def _create(self, replica_set: ReplicaSet) -> None:
        manifest = pod_from_template(REPLICA_SETS, replica_set, replica_set.spec.template)
        await self._writer.create(PODS, manifest, namespace=replica_set.metadata.namespace)

    async def _delete(self, pod: Pod) -> None:
        with suppress(NotFound, Conflict):  # somebody else was faster
            await self._writer.delete(
                PODS,
                pod.metadata.name,
                namespace=pod.metadata.namespace,
                uid=pod.metadata.uid,
            )

    async def _report(self, replica_set: ReplicaSet, count: Tally) -> None:
        status = ReplicaSetStatus(
            replicas=count.total,
            fully_labeled_replicas=count.total,
            ready_replicas=count.ready,
            available_replicas=count.available,
            observed_generation=replica_set.metadata.generation,
        )
        if status == replica_set.status:
            return
        with suppress(NotFound):
            await self._writer.patch(
                REPLICA_SETS,
                replica_set.metadata.name,
                {"metadata": {"uid": replica_set.metadata.uid}, "status": explicit(status)},
                namespace=replica_set.metadata.namespace,
                subresource="status",
            )


def explicit(status: msgspec.Struct) -> JSONObject:
    """Return a status as JSON with its zeros, which a merge patch must not leave out."""
    return {
        field.encode_name: msgspec.to_builtins(getattr(status, field.name))
        for field in msgspec.structs.fields(type(status))
    }
