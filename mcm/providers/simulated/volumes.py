"""What a kubelet reads of claims and volumes, and by which names it knows those attached to it."""

from __future__ import annotations

from mcm.api import core
from mcm.api.meta import ApiStruct, ObjectMeta, Resource

ATTACH_REQUIRED = "attachRequired"
"""The volume attribute (a class's parameter) that says ``"false"`` of volumes that any number of
Nodes reach without attaching them."""


class ObjectReference(ApiStruct, frozen=True, kw_only=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class CSISource(ApiStruct, frozen=True, kw_only=True):
    driver: str = ""
    volume_handle: str = ""
    volume_attributes: dict[str, str] = {}


class PersistentVolumeSpec(ApiStruct, frozen=True, kw_only=True):
    claim_ref: ObjectReference | None = None
    csi: CSISource | None = None


class PersistentVolume(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: PersistentVolumeSpec = PersistentVolumeSpec()

    @property
    def attached_name(self) -> str:
        """Its name in ``volumesAttached`` and ``volumesInUse``; empty if it needs no attaching."""
        csi = self.spec.csi
        if csi is None or csi.volume_attributes.get(ATTACH_REQUIRED) == "false":
            return ""
        return f"kubernetes.io/csi/{csi.driver}^{csi.volume_handle}"


class PersistentVolumeClaimSpec(ApiStruct, frozen=True, kw_only=True):
    volume_name: str = ""


class PersistentVolumeClaim(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


PERSISTENT_VOLUMES = Resource(
    "", "v1", "persistentvolumes", "PersistentVolume", PersistentVolume, namespaced=False
)
PERSISTENT_VOLUME_CLAIMS = Resource(
    "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", PersistentVolumeClaim
)


def claim_keys(pod: core.Pod) -> tuple[str, ...]:
    """Return the keys of the claims a pod names: its own for a generic ephemeral volume."""
    names: dict[str, None] = {}
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            names[volume.persistent_volume_claim.claim_name] = None
        elif volume.ephemeral is not None:
            names[ephemeral_claim_name(pod, volume)] = None
    return tuple(f"{pod.metadata.namespace}/{name}" for name in names)


def ephemeral_claim_name(pod: core.Pod, volume: core.Volume) -> str:
    return f"{pod.metadata.name}-{volume.name}"
