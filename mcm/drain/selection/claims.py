"""Which volume claims a pod mounts, and whether it uses them still."""

from __future__ import annotations

from mcm.api.core import Pod

_FINISHED = ("Succeeded", "Failed")


def is_finished(pod: Pod) -> bool:
    """Tell whether its containers have ended for good."""
    return pod.status.phase in _FINISHED


def uses_claims(pod: Pod) -> bool:
    """Tell whether it mounts claims. A finished pod uses its volumes no more."""
    return not is_finished(pod) and any(
        v.persistent_volume_claim is not None or v.ephemeral is not None for v in pod.spec.volumes
    )


def claims_of(pod: Pod) -> tuple[str, ...]:
    """Return the names of the volume claims a pod mounts, those of ephemeral volumes too."""
    return tuple(
        v.persistent_volume_claim.claim_name
        if v.persistent_volume_claim is not None
        else f"{pod.metadata.name}-{v.name}"
        for v in pod.spec.volumes
        if v.persistent_volume_claim is not None or v.ephemeral is not None
    )
