"""The mirrors from which a Node's volumes are put together, and their indexes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, final

from mcm.api.core import Node, PersistentVolume, PersistentVolumeClaim, Pod, VolumeAttachment
from mcm.drain.volumes.claims import claim_keys_of, claimed_by
from mcm.drain.volumes.handover import Handover
from mcm.drain.volumes.identity import identity_of
from mcm.drain.volumes.node_volumes import NodeVolumes, node_volumes
from mcm.informers.store import Store

_PODS_BY_CLAIM: Final = "pods by claim"
_ATTACHMENTS_BY_VOLUME: Final = "attachments by volume"
_ATTACHMENTS_BY_NODE: Final = "attachments by node"


def index_attachments(attachments: Store[VolumeAttachment]) -> None:
    """Make ``attachments_on`` work; may be called more than once."""
    attachments.ensure_index(_ATTACHMENTS_BY_NODE, lambda a: (a.spec.node_name,))


def attachments_on(
    attachments: Store[VolumeAttachment], node_name: str
) -> Sequence[VolumeAttachment]:
    return attachments.by_index(_ATTACHMENTS_BY_NODE, node_name)


@final
class VolumeStores:
    """Stores of one cluster, with the indexes that are needed here; may be made more than once."""

    def __init__(
        self,
        *,
        pods: Store[Pod],
        claims: Store[PersistentVolumeClaim],
        volumes: Store[PersistentVolume],
        attachments: Store[VolumeAttachment],
    ) -> None:
        self._pods = pods
        self._claims = claims
        self._volumes = volumes
        self._attachments = attachments
        pods.ensure_index(_PODS_BY_CLAIM, claim_keys_of)
        attachments.ensure_index(_ATTACHMENTS_BY_VOLUME, _volumes_of)
        index_attachments(attachments)

    def view(
        self,
        node_name: str,
        node: Node | None,
        here: Sequence[Pod],
        handovers: Iterable[Handover] = (),
        *,
        ids: Mapping[str, tuple[str, ...]] | None = None,
        stale: str = "",
    ) -> NodeVolumes:
        """Look at the volumes of the pods ``here``, on the Node, of handovers under way, and at
        all else that is attached to the Node."""
        open_volumes = [holding for h in handovers if not h.over for holding in h.volumes]
        keys = {key for pod in here for key in claim_keys_of(pod)}
        keys.update(holding.claim for holding in open_volumes)
        attached = self._attached_to(node_name)
        keys.update(key for volume in attached if (key := claimed_by(volume)))
        claims = [claim for key in sorted(keys) if (claim := self._claims.get(key))]
        names = {claim.spec.volume_name for claim in claims if claim.spec.volume_name}
        names.update(holding.volume for holding in open_volumes)
        names.update(volume.metadata.name for volume in attached)
        pods = {pod.metadata.uid: pod for pod in here}
        for key in sorted(keys):
            pods.update((p.metadata.uid, p) for p in self._pods.by_index(_PODS_BY_CLAIM, key))
        return node_volumes(
            node_name,
            node,
            pods.values(),
            claims,
            [volume for name in sorted(names) if (volume := self._volumes.get(name))],
            [
                attachment
                for name in sorted(names)
                for attachment in self._attachments.by_index(_ATTACHMENTS_BY_VOLUME, name)
            ],
            ids=ids or {},
            stale=stale,
        )

    def _attached_to(self, node_name: str) -> Sequence[PersistentVolume]:
        names = {
            name
            for attachment in attachments_on(self._attachments, node_name)
            for name in _volumes_of(attachment)
        }
        return [volume for name in sorted(names) if (volume := self._volumes.get(name))]

    def to_ask_for(self, here: Iterable[Pod]) -> tuple[PersistentVolume, ...]:
        """Return the volumes of these pods which only the provider can name, if anybody can."""
        found: dict[str, PersistentVolume] = {}
        for pod in here:
            for key in claim_keys_of(pod):
                claim = self._claims.get(key)
                volume = self._volumes.get(claim.spec.volume_name) if claim else None
                if volume is not None and identity_of(volume).must_be_asked_for:
                    found[volume.metadata.name] = volume
        return tuple(found.values())


def _volumes_of(attachment: VolumeAttachment) -> Iterator[str]:
    if name := attachment.spec.source.persistent_volume_name:
        yield name
