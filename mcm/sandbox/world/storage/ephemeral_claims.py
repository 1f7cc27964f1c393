"""The claims of generic ephemeral volumes: made for a pod, and gone with it."""

from __future__ import annotations

from contextlib import suppress
from typing import final

from mcm.api.meta import JSONObject
from mcm.client.client import Client
from mcm.client.errors import AlreadyExists
from mcm.clock import Clock
from mcm.controllers.runtime import DONE, Outcome
from mcm.informers.change import Change
from mcm.informers.factory import InformerFactory
from mcm.providers.simulated.volumes import ephemeral_claim_name
from mcm.sandbox.world.actor import Actor
from mcm.sandbox.world.kinds import PERSISTENT_VOLUME_CLAIMS, PODS, Pod
from mcm.sandbox.world.owned_pods import owner_reference


@final
class EphemeralClaims(Actor):
    """Keyed by pod. The garbage collector takes the claims away."""

    name = "ephemeral-volume-controller"

    def __init__(self, client: Client, mirror: InformerFactory, *, clock: Clock) -> None:
        super().__init__(client, mirror, clock=clock)
        self._pods = mirror.store(PODS)
        self._claims = mirror.store(PERSISTENT_VOLUME_CLAIMS)
        mirror.informer(PODS).add_handler(self._on_pod)

    def _on_pod(self, change: Change[Pod]) -> None:
        pod = change.new
        if pod is not None and any(v.ephemeral is not None for v in pod.spec.volumes):
            self._queue.add(pod.metadata.key)

    async def _reconcile(self, key: str) -> Outcome:
        pod = self._pods.get(key)
        if pod is None or not pod.active:
            return DONE
        namespace = pod.metadata.namespace
        for volume in pod.spec.volumes:
            if volume.ephemeral is None:
                continue
            name = ephemeral_claim_name(pod, volume)
            if f"{namespace}/{name}" in self._claims:
                continue
            with suppress(AlreadyExists):
                manifest = _claim(pod, name, volume.ephemeral)
                await self._writer.create(PERSISTENT_VOLUME_CLAIMS, manifest, namespace=namespace)
        return DONE


def _claim(pod: Pod, name: str, source: JSONObject) -> JSONObject:
    template = source.get("volumeClaimTemplate")
    template = template if isinstance(template, dict) else {}
    metadata = template.get("metadata")
    return {
        "metadata": {
            **(metadata if isinstance(metadata, dict) else {}),
            "name": name,
            "ownerReferences": [owner_reference(PODS, pod)],
        },
        "spec": template.get("spec") or {},
    }
