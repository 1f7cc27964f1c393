"""Whether a pod that is to go waits for a successor, and when what was done for it is undone."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Final, final

from mcm.api.core import Pod
from mcm.api.names import CONDITION_NODE_READY, STATUS_TRUE
from mcm.api.timestamps import whole_seconds
from mcm.api.workloads import Deployment, RollingUpdate
from mcm.drain.pods import is_finished
from mcm.drain.selection import SurgeKind
from mcm.drain.surge.marker import Marker, marker_of

LONGEST: Final = timedelta(minutes=10)
"""What a successor may take to be Ready; the drain's deadline may come first."""
SLACK: Final = timedelta(minutes=1)
"""After that, for the drain to evict the pod, before its Deployment is put back."""


@final
@dataclass(frozen=True, slots=True)
class Awaited:
    """A pod that is not to be asked yet. ``detail`` says what for."""

    since: datetime
    until: datetime
    detail: str = ""


@final
@dataclass(frozen=True, slots=True)
class Begin:
    """Have a successor made, and write this down in the same patch."""

    marker: Marker


@final
@dataclass(frozen=True, slots=True)
class Go:
    """Evict it like others. ``why``: what came in the way of a successor; empty: nothing did."""

    why: str = ""


def decide(
    pod: Pod,
    kind: SurgeKind,
    deployment: Deployment,
    *,
    autoscaled: bool,
    now: datetime,
    deadline: datetime,
) -> Begin | Awaited | Go:
    """Decide about a pod that asks for a successor of ``kind``, for which none is being made.
    ``deployment`` owns it."""
    marker = marker_of(deployment)
    if marker is not None and now < marker.until:
        return Awaited(marker.since, marker.until, "another pod of its Deployment goes first")
    if why := why_not(deployment, kind, autoscaled=autoscaled):
        return Go(why)
    since, until = whole_seconds(now), whole_seconds(min(now + LONGEST, deadline))
    if until <= since:
        return Go("there is no time left for a successor")
    meta, replicas = pod.metadata, deployment.spec.replicas
    return Begin(Marker(meta.uid, meta.name, kind, since, until, replicas))


def follow(pod: Pod, marker: Marker, *, others: Iterable[Pod], now: datetime) -> Awaited | Go:
    """Decide about a pod for which a successor is being made. A restarted Deployment takes the old
    pod away by itself; one that was scaled leaves that to the drain."""
    if marker.kind is SurgeKind.SCALE and any(serves_elsewhere(p, pod) for p in others):
        return Go()
    if now >= marker.until:
        return Go("no successor was Ready in time")
    return Awaited(marker.since, marker.until, f"by {marker.kind.value} of its Deployment")


def why_not(deployment: Deployment, kind: SurgeKind, *, autoscaled: bool) -> str:
    """Say why no successor can be had from the Deployment; empty if one can."""
    spec, name = deployment.spec, f"Deployment {deployment.metadata.key}"
    if deployment.metadata.deletion_timestamp is not None:
        return f"{name} is being deleted"
    if spec.replicas != 1:
        return f"{name} asks for {spec.replicas} replicas, and surge is for a single one"
    if spec.paused:
        return f"{name} is paused"
    if spec.strategy.type == "Recreate":
        return f"{name} has the strategy Recreate: no two of its pods may run at a time"
    if kind is SurgeKind.RESTART and not _surges(spec.strategy.rolling_update):
        return f"{name} would take the old pod away before the new one is Ready (maxUnavailable)"
    if kind is SurgeKind.SCALE and autoscaled:
        return f"an autoscaler sets the replicas of {name}"
    return ""


def _surges(rolling: RollingUpdate | None) -> bool:
    """Tell whether a rolling update of one replica makes the new pod first."""
    rolling = rolling or RollingUpdate()
    surge, unavailable = _of_one(rolling.max_surge, up=True), _of_one(rolling.max_unavailable)
    # Where neither is allowed anything, Kubernetes allows one to be unavailable.
    return surge > 0 and unavailable == 0


def _of_one(share: int | str | None, *, up: bool = False) -> int:
    """Resolve a number or share for one replica; None is a quarter. What nobody can read is 0."""
    if share is None:
        return 1 if up else 0
    if isinstance(share, int):
        return share
    try:
        percent = int(share.removesuffix("%"))
    except ValueError:
        return 0
    return math.ceil(percent / 100) if up else percent // 100


def serves_elsewhere(other: Pod, pod: Pod) -> bool:
    """Tell whether ``other`` is Ready on another node than ``pod``, and stays."""
    meta, node = other.metadata, other.spec.node_name
    return (
        meta.uid != pod.metadata.uid
        and meta.deletion_timestamp is None
        and bool(node)
        and node != pod.spec.node_name
        and any(
            c.type == CONDITION_NODE_READY and c.status == STATUS_TRUE
            for c in other.status.conditions
        )
    )


class Settlement(Enum):
    """What becomes of a marked Deployment."""

    KEEP = auto()
    END = auto()


def settle(
    marker: Marker, pod: Pod | None, others: Collection[Pod], now: datetime, *, blind: bool
) -> Settlement:
    """Decide whether a marker has had its time. ``pod`` is the one it is for, None if it is gone;
    ``others`` are those of the same ReplicaSet. ``blind``: neither can be observed.

    Nothing is scaled down before it is certain that the ReplicaSet no longer counts the old pod, or
    it would take the successor away: that it has made yet another pod proves it.
    """
    if now >= marker.until + SLACK:
        return Settlement.END
    if blind:
        return Settlement.KEEP
    if pod is None:
        return Settlement.END
    if pod.metadata.deletion_timestamp is None and not is_finished(pod):
        return Settlement.KEEP
    if marker.kind is SurgeKind.RESTART:
        return Settlement.END
    active = [p for p in others if p.metadata.deletion_timestamp is None and not is_finished(p)]
    return Settlement.END if len(active) > marker.replicas else Settlement.KEEP
