"""Which pods of a node a drain takes away, and in which class of treatment each of them is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import final

from mcm.api.core import Pod

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
_FINISHED = ("Succeeded", "Failed")


class Treatment(Enum):
    """How a pod is dealt with."""

    LEAVE = auto()
    """A mirror of a static pod, or a DaemonSet's: the node's own furniture."""
    PARALLEL = auto()
    """At once with all others."""
    SERIAL = auto()
    """It holds volumes: one after the other, so that not all are on their way at once."""


@final
@dataclass(frozen=True, slots=True)
class Selection:
    """The pods to take away. ``serial`` is in the order of treatment: highest priority first."""

    parallel: tuple[Pod, ...]
    serial: tuple[Pod, ...]
    left: tuple[Pod, ...]

    @property
    def taken(self) -> tuple[Pod, ...]:
        return (*self.parallel, *self.serial)


def select(pods: Iterable[Pod]) -> Selection:
    """Sort the pods of one node by treatment."""
    groups: dict[Treatment, list[Pod]] = {treatment: [] for treatment in Treatment}
    for pod in pods:
        groups[treatment_of(pod)].append(pod)
    groups[Treatment.PARALLEL].sort(key=lambda pod: pod.metadata.key)
    groups[Treatment.SERIAL].sort(key=lambda pod: (-pod.spec.priority, pod.metadata.key))
    return Selection(
        parallel=tuple(groups[Treatment.PARALLEL]),
        serial=tuple(groups[Treatment.SERIAL]),
        left=tuple(groups[Treatment.LEAVE]),
    )


def treatment_of(pod: Pod) -> Treatment:
    if MIRROR_ANNOTATION in pod.metadata.annotations:
        return Treatment.LEAVE
    owner = pod.metadata.controller_ref()
    if owner is not None and owner.kind == "DaemonSet":
        return Treatment.LEAVE
    # A finished pod uses its volumes no more: nothing has to wait for it.
    if pod.status.phase in _FINISHED:
        return Treatment.PARALLEL
    return Treatment.SERIAL if claims_of(pod) else Treatment.PARALLEL


def claims_of(pod: Pod) -> tuple[str, ...]:
    """Return the names of the volume claims a pod mounts, those of ephemeral volumes too."""
    return tuple(
        v.persistent_volume_claim.claim_name
        if v.persistent_volume_claim is not None
        else f"{pod.metadata.name}-{v.name}"
        for v in pod.spec.volumes
        if v.persistent_volume_claim is not None or v.ephemeral is not None
    )
