"""Finding pods and volumes by claim, free volumes by class, attachments by Node and volume."""

from __future__ import annotations

from mcm.informers.factory import InformerFactory
from mcm.providers.simulated.volumes import claim_keys
from mcm.sandbox.world.kinds import (
    PERSISTENT_VOLUMES,
    PODS,
    VOLUME_ATTACHMENTS,
    PersistentVolume,
    VolumeAttachment,
)

BY_CLAIM = "claim"
"""Pods that name a claim, volumes that are reserved for it: by its key."""
FREE = "free"
"""Volumes that are reserved for no claim: by the name of their class."""
ON_NODE = "attached-node"
OF_VOLUME = "attached-volume"


def index_storage(mirror: InformerFactory) -> None:
    """Add the indexes above to the mirror's stores."""
    mirror.store(PODS).add_index(BY_CLAIM, claim_keys)
    volumes = mirror.store(PERSISTENT_VOLUMES)
    volumes.add_index(BY_CLAIM, _reserved_for)
    volumes.add_index(FREE, _free_of_class)
    attachments = mirror.store(VOLUME_ATTACHMENTS)
    attachments.add_index(ON_NODE, _node_of)
    attachments.add_index(OF_VOLUME, _volume_of)


def _reserved_for(volume: PersistentVolume) -> tuple[str, ...]:
    ref = volume.spec.claim_ref
    return () if ref is None else (ref.key,)


def _free_of_class(volume: PersistentVolume) -> tuple[str, ...]:
    return (volume.spec.storage_class_name,) if volume.spec.claim_ref is None else ()


def _node_of(attachment: VolumeAttachment) -> tuple[str, ...]:
    return (attachment.spec.node_name,)


def _volume_of(attachment: VolumeAttachment) -> tuple[str, ...]:
    return (attachment.volume_name,)
