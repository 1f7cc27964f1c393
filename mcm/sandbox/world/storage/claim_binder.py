"""Claims get volumes: those reserved for them, free ones that satisfy them, or new ones."""

from __future__ import annotations

from contextlib import suppress
from typing import ClassVar, final

from mcm.api.meta import JSONObject
from mcm.client.client import Client
from mcm.client.errors import AlreadyExists, NotFound
from mcm.clock import Clock
from mcm.controllers.runtime import DONE, Outcome
from mcm.events import EventSink, EventType
from mcm.informers.change import Change
from mcm.informers.factory import InformerFactory
from mcm.sandbox.world.actor import Actor
from mcm.sandbox.world.kinds import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from mcm.sandbox.world.storage.classes import default_class, provisions, waits_for_consumer
from mcm.sandbox.world.storage.indexes import BY_CLAIM, FREE
from mcm.sandbox.world.storage.matching import is_reserved_for, smallest_match
from mcm.sandbox.world.storage.provisioning import (
    SELECTED_NODE,
    claim_reference,
    volume_manifest,
    zone_for,
)

_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"


@final
class ClaimBinder(Actor):
    """Keyed by claim; one worker, so that no volume is given away twice.

    First the volume names the claim, then the claim the volume: whatever comes between, the next
    look carries on. A claim of a class that waits for its first consumer is left alone until the
    scheduler has named a Node, or reserved a volume.
    """

    name = "persistentvolume-binder"
    workers: ClassVar[int] = 1

    def __init__(
        self, client: Client, mirror: InformerFactory, *, clock: Clock, events: EventSink
    ) -> None:
        super().__init__(client, mirror, clock=clock)
        self._events = events
        self._claims = mirror.store(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = mirror.store(PERSISTENT_VOLUMES)
        self._classes = mirror.store(STORAGE_CLASSES)
        self._nodes = mirror.store(NODES)
        mirror.informer(PERSISTENT_VOLUME_CLAIMS).add_handler(self._on_claim)
        mirror.informer(PERSISTENT_VOLUMES).add_handler(self._on_volume)
        mirror.informer(STORAGE_CLASSES).add_handler(self._on_class)

    # ---- what an event concerns -----------------------------------------------------------------

    def _on_claim(self, change: Change[PersistentVolumeClaim]) -> None:
        if change.new is not None:
            self._queue.add(change.new.metadata.key)

    def _on_volume(self, change: Change[PersistentVolume]) -> None:
        """A reserved volume concerns one claim, a free one all that have none; of one that is gone
        the claim must hear."""
        ref = change.object.spec.claim_ref
        if ref is not None:
            self._queue.add(ref.key)
        else:
            self._wake_unbound()

    def _on_class(self, change: Change[StorageClass]) -> None:
        if change.new is not None:
            self._wake_unbound()

    def _wake_unbound(self) -> None:
        for claim in self._claims.list():
            if not claim.spec.volume_name:
                self._queue.add(claim.metadata.key)

    # ---- one claim ------------------------------------------------------------------------------

    async def _reconcile(self, key: str) -> Outcome:
        claim = self._claims.get(key)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return DONE
        with suppress(NotFound):  # gone meanwhile, or its volume: an event tells
            if claim.spec.volume_name:
                await self._follow(claim)
            else:
                await self._find_volume(claim)
        return DONE

    async def _follow(self, claim: PersistentVolumeClaim) -> None:
        """Complete a binding that the claim knows of; what it was bound to may be lost."""
        volume = self._volumes.get(claim.spec.volume_name)
        if volume is not None and volume.spec.claim_ref is None:
            volume = await self._reserve(volume, claim)
        if volume is not None and is_reserved_for(volume, claim):
            await self._bind(claim, volume)
        elif claim.status.phase == "Bound" or _BIND_COMPLETED in claim.metadata.annotations:
            await self._set_status(claim, {"phase": "Lost"})

    async def _find_volume(self, claim: PersistentVolumeClaim) -> None:
        reserved = self._volumes.by_index(BY_CLAIM, claim.metadata.key)
        ours = next((v for v in reserved if is_reserved_for(v, claim)), None)
        if ours is not None:
            await self._bind(claim, ours)
            return
        if claim.spec.storage_class_name is None:
            await self._take_default_class(claim)
            return
        storage_class = self._classes.get(claim.spec.storage_class_name)
        if waits_for_consumer(storage_class) and SELECTED_NODE not in claim.metadata.annotations:
            return
        free = self._volumes.by_index(FREE, claim.spec.storage_class_name)
        match = smallest_match(claim, free)
        if match is not None and not waits_for_consumer(storage_class):
            await self._bind(claim, match)
        elif storage_class is not None and provisions(storage_class):
            await self._provision(claim, storage_class)

    async def _take_default_class(self, claim: PersistentVolumeClaim) -> None:
        """Without a default class it waits for one."""
        found = default_class(self._classes.list())
        if found is not None:
            await self._patch(claim, {"spec": {"storageClassName": found.metadata.name}})

    async def _provision(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> None:
        name = claim.metadata.annotations.get(SELECTED_NODE, "")
        node = self._nodes.get(name)
        if name and node is None:
            # The scheduler is to choose again.
            await self._patch(claim, {"metadata": {"annotations": {SELECTED_NODE: None}}})
            return
        zone = zone_for(claim, storage_class, node, self._nodes.list())
        try:
            manifest = volume_manifest(claim, storage_class, zone)
        except ValueError as error:
            self._tell(claim, EventType.WARNING, "ProvisioningFailed", str(error))
            return
        try:
            volume = await self._writer.create(PERSISTENT_VOLUMES, manifest)
        except AlreadyExists:
            return  # made before, not seen yet: its event tells
        self._tell(
            claim,
            EventType.NORMAL,
            "ProvisioningSucceeded",
            f"Successfully provisioned volume {volume.metadata.name}",
        )
        await self._bind(claim, volume)

    # ---- both directions of a binding -----------------------------------------------------------

    async def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        ref = volume.spec.claim_ref
        if ref is None or not ref.uid:
            volume = await self._reserve(volume, claim)
        if claim.spec.volume_name != volume.metadata.name:
            completed = {_BIND_COMPLETED: "yes"}
            claim = await self._patch(
                claim,
                {
                    "metadata": {"annotations": completed},
                    "spec": {"volumeName": volume.metadata.name},
                },
            )
        shown, offer = claim.status, volume.spec
        if (shown.phase, shown.access_modes, shown.capacity) != (
            "Bound",
            offer.access_modes,
            offer.capacity,
        ):
            gone = dict.fromkeys(shown.capacity)
            status: JSONObject = {
                "phase": "Bound",
                "accessModes": list(offer.access_modes),
                "capacity": {**gone, **offer.capacity},
            }
            await self._set_status(claim, status)

    async def _reserve(
        self, volume: PersistentVolume, claim: PersistentVolumeClaim
    ) -> PersistentVolume:
        meta = volume.metadata
        patch: JSONObject = {
            "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
            "spec": {"claimRef": claim_reference(claim)},
        }
        return await self._writer.patch(PERSISTENT_VOLUMES, meta.name, patch)

    async def _set_status(self, claim: PersistentVolumeClaim, status: JSONObject) -> None:
        if status == {"phase": claim.status.phase}:
            return
        await self._patch(claim, {"status": status}, subresource="status")

    async def _patch(
        self, claim: PersistentVolumeClaim, patch: JSONObject, *, subresource: str = ""
    ) -> PersistentVolumeClaim:
        meta = claim.metadata
        said = patch.get("metadata")
        metadata = {"uid": meta.uid, **(said if isinstance(said, dict) else {})}
        return await self._writer.patch(
            PERSISTENT_VOLUME_CLAIMS,
            meta.name,
            {**patch, "metadata": metadata},
            namespace=meta.namespace,
            subresource=subresource,
        )

    def _tell(self, claim: PersistentVolumeClaim, kind: EventType, reason: str, note: str) -> None:
        self._events.event(
            PERSISTENT_VOLUME_CLAIMS, claim, kind, reason, note, action="Provisioning"
        )
