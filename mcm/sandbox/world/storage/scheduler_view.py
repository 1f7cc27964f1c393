"""What the scheduler sees of claims and volumes, and what it says of those it has chosen for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import final

from mcm.api.meta import JSONObject
from mcm.client.verbs import ObjectWriter
from mcm.informers.factory import InformerFactory
from mcm.providers.simulated.volumes import claim_keys
from mcm.sandbox.world.kinds import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)
from mcm.sandbox.world.storage.classes import default_class, waits_for_consumer
from mcm.sandbox.world.storage.indexes import BY_CLAIM, FREE
from mcm.sandbox.world.storage.matching import is_reserved_for
from mcm.sandbox.world.storage.provisioning import SELECTED_NODE, claim_reference
from mcm.sandbox.world.storage.scheduling import (
    NO_NEEDS,
    UNBOUND,
    Unbound,
    VolumeNeeds,
    attached_names,
)

_ONE_POD = "ReadWriteOncePod"


@final
class SchedulerView:
    """A pod without claims costs nothing here."""

    def __init__(self, mirror: InformerFactory, writer: ObjectWriter) -> None:
        self._writer = writer
        self._pods = mirror.store(PODS)
        self._claims = mirror.store(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = mirror.store(PERSISTENT_VOLUMES)
        self._classes = mirror.store(STORAGE_CLASSES)

    def needs(self, pod: Pod, *, is_placed: Callable[[Pod], bool]) -> VolumeNeeds:
        """Return what the pod's claims ask for. ``is_placed`` tells of another pod whether it has
        a Node, or is about to get one."""
        keys = claim_keys(pod)
        if not keys:
            return NO_NEEDS
        bound: list[PersistentVolume] = []
        unbound: list[Unbound] = []
        taken, selected = False, ""
        for key in keys:
            claim = self._claims.get(key)
            problem = self._problem(key, claim)
            if claim is None or problem:
                return VolumeNeeds(problem)
            volume = self._volumes.get(claim.spec.volume_name) if is_bound(claim) else None
            if volume is not None:
                bound.append(volume)
            elif waits_for_consumer(self._class_of(claim)):
                unbound.append(self._unbound(claim))
                selected = selected or claim.metadata.annotations.get(SELECTED_NODE, "")
            else:
                return VolumeNeeds(UNBOUND)
            if _ONE_POD in claim.spec.access_modes:
                taken = taken or self._has_other_user(key, pod, is_placed)
        return VolumeNeeds("", taken, tuple(bound), tuple(unbound), selected, self._used_by)

    async def choose(self, needs: VolumeNeeds, node: Node) -> None:
        """Have the unbound claims bound for this Node: each to a volume there is, or a new one.

        Raises what the client's verbs raise.
        """
        for unbound in needs.unbound:
            match = unbound.match(node) if unbound.reserved is None else None
            if match is not None:
                await self._reserve(match, unbound.claim)
            elif unbound.reserved is None:
                await self._select(unbound.claim, node.metadata.name)

    def users(self, claim_key: str) -> Sequence[Pod]:
        return self._pods.by_index(BY_CLAIM, claim_key)

    # ---- reading --------------------------------------------------------------------------------

    def _problem(self, key: str, claim: PersistentVolumeClaim | None) -> str:
        name = key.rpartition("/")[2]
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
        volume = claim.spec.volume_name
        if claim.status.phase == "Lost" or (is_bound(claim) and volume not in self._volumes):
            lost = f'bound to non-existent persistentvolume "{volume}"'
            return f'persistentvolumeclaim "{name}" {lost}'
        return ""

    def _unbound(self, claim: PersistentVolumeClaim) -> Unbound:
        reserved = self._volumes.by_index(BY_CLAIM, claim.metadata.key)
        ours = next((v for v in reserved if is_reserved_for(v, claim)), None)
        storage_class = self._class_of(claim)
        free = self._volumes.by_index(FREE, storage_class.metadata.name) if storage_class else ()
        return Unbound(claim, storage_class, free, ours)

    def _class_of(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        """One that names none is about to get the default class."""
        if claim.spec.storage_class_name is None:
            return default_class(self._classes.list())
        return self._classes.get(claim.spec.storage_class_name)

    def _has_other_user(self, key: str, pod: Pod, is_placed: Callable[[Pod], bool]) -> bool:
        others = (p for p in self.users(key) if p.metadata.uid != pod.metadata.uid)
        return any(is_placed(other) and not other.finished for other in others)

    def _used_by(self, pods: Sequence[Pod]) -> Mapping[str, str]:
        keys = {key for pod in pods for key in claim_keys(pod)}
        claims = [claim for key in keys if (claim := self._claims.get(key)) is not None]
        volumes = (self._volumes.get(claim.spec.volume_name) for claim in claims)
        return attached_names(v for v in volumes if v is not None)

    # ---- writing --------------------------------------------------------------------------------

    async def _reserve(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        meta = volume.metadata
        patch: JSONObject = {
            "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
            "spec": {"claimRef": claim_reference(claim)},
        }
        await self._writer.patch(PERSISTENT_VOLUMES, meta.name, patch)

    async def _select(self, claim: PersistentVolumeClaim, node_name: str) -> None:
        meta = claim.metadata
        if meta.annotations.get(SELECTED_NODE) == node_name:
            return
        patch: JSONObject = {
            "metadata": {"uid": meta.uid, "annotations": {SELECTED_NODE: node_name}}
        }
        await self._writer.patch(
            PERSISTENT_VOLUME_CLAIMS, meta.name, patch, namespace=meta.namespace
        )


def is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and claim.status.phase == "Bound"
