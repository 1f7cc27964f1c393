"""What a pod tells of itself: whether it has finished or serves, and how long it may end."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from mcm.api.core import Pod
from mcm.api.names import STATUS_TRUE

_FINISHED: Final = ("Succeeded", "Failed")
_READY: Final = "Ready"
_DEFAULT_GRACE: Final = 30
"""Seconds that the API server gives a pod which asks for none."""


def is_finished(pod: Pod) -> bool:
    """Tell whether its containers have ended for good: it uses its volumes no more."""
    return pod.status.phase in _FINISHED


def is_ready(pod: Pod) -> bool:
    """Tell whether it serves, and counts as healthy for its budgets."""
    return any(c.type == _READY and c.status == STATUS_TRUE for c in pod.status.conditions)


def grace_of(pod: Pod) -> timedelta:
    """Return the grace period that the pod asks for."""
    wanted = pod.spec.termination_grace_period_seconds
    return timedelta(seconds=_DEFAULT_GRACE if wanted is None else max(0, wanted))


def uses_claims(pod: Pod) -> bool:
    """Tell whether it mounts volume claims. A finished pod uses its volumes no more."""
    return not is_finished(pod) and any(
        v.persistent_volume_claim is not None or v.ephemeral is not None for v in pod.spec.volumes
    )
