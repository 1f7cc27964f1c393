"""The phases of volumes, and the end of those whose claim is gone."""

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
from mcm.sandbox.world.kinds import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    VOLUME_ATTACHMENTS,
    PersistentVolume,
    PersistentVolumeClaim,
    VolumeAttachment,
)
from mcm.sandbox.world.storage.indexes import BY_CLAIM, OF_VOLUME


@final
class VolumeReclaimer(Actor):
    """Keyed by volume. A released volume is deleted if its policy says so, once it is attached
    nowhere; else it stays for somebody to look after it."""

    name = "persistentvolume-reclaimer"

    def __init__(self, client: Client, mirror: InformerFactory, *, clock: Clock) -> None:
        super().__init__(client, mirror, clock=clock)
        self._claims = mirror.store(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = mirror.store(PERSISTENT_VOLUMES)
        self._attachments = mirror.store(VOLUME_ATTACHMENTS)
        mirror.informer(PERSISTENT_VOLUMES).add_handler(self._on_volume)
        mirror.informer(PERSISTENT_VOLUME_CLAIMS).add_handler(self._on_claim)
        mirror.informer(VOLUME_ATTACHMENTS).add_handler(self._on_attachment)

    def _on_volume(self, change: Change[PersistentVolume]) -> None:
        if change.new is not None:
            self._queue.add(change.new.metadata.key)

    def _on_claim(self, change: Change[PersistentVolumeClaim]) -> None:
        for volume in self._volumes.by_index(BY_CLAIM, change.object.metadata.key):
            self._queue.add(volume.metadata.key)

    def _on_attachment(self, change: Change[VolumeAttachment]) -> None:
        if change.new is None:
            self._queue.add(change.object.volume_name)

    async def _reconcile(self, key: str) -> Outcome:
        volume = self._volumes.get(key)
        if volume is None or volume.metadata.deletion_timestamp is not None:
            return DONE
        with suppress(NotFound, Conflict):
            phase = await self._phase_of(volume)
            if phase != volume.status.phase:
                volume = await self._writer.patch(
                    PERSISTENT_VOLUMES,
                    key,
                    {"metadata": {"uid": volume.metadata.uid}, "status": {"phase": phase}},
                    subresource="status",
                )
            if phase == "Released":
                await self._reclaim(volume)
        return DONE

    async def _phase_of(self, volume: PersistentVolume) -> str:
        ref = volume.spec.claim_ref
        if ref is None:
            return "Available"
        claim = self._claims.get(ref.key)
        if not ref.uid:
            return "Available"  # reserved by a person: the claim may come, or is about to be bound
        if claim is not None and claim.metadata.uid == ref.uid:
            return "Bound"
        return "Released" if await self._is_gone(ref.namespace, ref.name, ref.uid) else "Bound"

    async def _is_gone(self, namespace: str, name: str, uid: str) -> bool:
        """Ask the server itself: a mirror that lags must cost nobody their volume."""
        try:
            live = await self._client.get(PERSISTENT_VOLUME_CLAIMS, name, namespace=namespace)
        except NotFound:
            return True
        return live.metadata.uid != uid

    async def _reclaim(self, volume: PersistentVolume) -> None:
        meta, policy = volume.metadata, volume.spec.persistent_volume_reclaim_policy
        if policy != "Delete" or self._attachments.by_index(OF_VOLUME, meta.name):
            return
        await self._writer.delete(PERSISTENT_VOLUMES, meta.name, uid=meta.uid)
