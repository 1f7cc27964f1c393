"""Which volume claims a pod uses, those of its generic ephemeral volumes among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from mcm.api.core import PersistentVolume, PersistentVolumeClaim, Pod
from mcm.api.meta import is_controlled_by


@final
@dataclass(frozen=True, slots=True)
class ClaimUse:
    """``key`` is ``namespace/name`` of the claim; ``ephemeral``: it is the pod's, and goes with
    it."""

    key: str
    ephemeral: bool = False


def claims_of(pod: Pod) -> tuple[ClaimUse, ...]:
    """Return each claim once, however often the pod mounts it.

    Inline CSI volumes have neither claim nor attachment: the kubelet makes them, for this pod only.
    """
    return tuple(dict.fromkeys(_uses(pod)))


def claim_keys_of(pod: Pod) -> tuple[str, ...]:
    return tuple(dict.fromkeys(use.key for use in _uses(pod)))


def claimed_by(volume: PersistentVolume) -> str:
    """Return the key of the claim that the volume is bound to; empty if it is to none."""
    ref = volume.spec.get("claimRef")
    if not isinstance(ref, dict):
        return ""
    namespace, name = ref.get("namespace"), ref.get("name")
    return f"{namespace}/{name}" if namespace and name else ""


def is_usable_by(pod: Pod, use: ClaimUse, claim: PersistentVolumeClaim) -> bool:
    """Tell whether the claim is what the pod means: a claim that merely bears the name of one of
    its ephemeral volumes is somebody else's."""
    return not use.ephemeral or is_controlled_by(claim.metadata, pod.metadata.uid)


def _uses(pod: Pod) -> Iterator[ClaimUse]:
    meta = pod.metadata
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield ClaimUse(f"{meta.namespace}/{volume.persistent_volume_claim.claim_name}")
        elif volume.ephemeral is not None:
            yield ClaimUse(f"{meta.namespace}/{meta.name}-{volume.name}", ephemeral=True)
