"""Whether another pod will attach a volume somewhere else, or nobody will, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, final

from mcm.api.core import Pod
from mcm.drain.volumes.holding import Holding
from mcm.drain.volumes.node_volumes import NodeVolumes

APPEARS_WITHIN: Final = timedelta(seconds=15)
"""A controller replaces a pod at once; who has not after this time does not mean to."""
_UNPLACEABLE: Final = ("Unschedulable", "SchedulingGated")


@final
@dataclass(frozen=True, slots=True)
class Prospect:
    """What is to be expected of a volume that left its Node.

    ``attached_to``: it is attached there. Else ``none``: why nobody will attach it. Else it is
    waited for, as ``awaited`` says; ``until``: when that is judged anew, though nothing happened.
    """

    attached_to: str = ""
    none: str = ""
    awaited: str = ""
    until: datetime | None = None
    placed: bool = False
    """It waits for nothing but the volume."""

    @property
    def is_open(self) -> bool:
        return not self.attached_to and not self.none


@final
@dataclass(frozen=True, slots=True)
class Predecessor:
    """The pod that held the volume. ``replaced``: its owner makes another one in its place."""

    uid: str
    replaced: bool
    gone_at: datetime


def prospect_of(
    holding: Holding, predecessor: Predecessor, view: NodeVolumes, now: datetime
) -> Prospect:
    """Tell what becomes of the volume, by what can be seen of claim, attachments and pods."""
    if node := view.attached_elsewhere(holding):
        return Prospect(attached_to=node)
    if gone := _gone(holding, view):
        return Prospect(none=gone)
    others = [p for p in view.users_of(holding) if p.metadata.uid != predecessor.uid]
    if others:
        return _of_successors(others, view)
    if not predecessor.replaced:
        return Prospect(none="nothing replaces the pod")
    appears = predecessor.gone_at + APPEARS_WITHIN
    if now >= appears:
        return Prospect(none=f"no other pod uses claim {holding.claim}")
    return Prospect(awaited=f"a pod that uses claim {holding.claim}", until=appears)


def _gone(holding: Holding, view: NodeVolumes) -> str:
    if holding.ephemeral:
        return f"claim {holding.claim} went with its pod"
    claim, volume = view.claim_of(holding), view.volume_of(holding)
    if claim is None or claim.metadata.deletion_timestamp is not None:
        return f"claim {holding.claim} is deleted"
    if volume is None or volume.metadata.deletion_timestamp is not None:
        return f"volume {holding.volume} is deleted"
    return ""


def _of_successors(pods: Sequence[Pod], view: NodeVolumes) -> Prospect:
    """Believe in the most promising one."""
    found = [_of_successor(pod, view) for pod in sorted(pods, key=lambda p: p.metadata.key)]
    for wanted in (
        lambda prospect: bool(prospect.attached_to),
        lambda prospect: prospect.is_open,
    ):
        if fitting := next(filter(wanted, found), None):
            return fitting
    return found[0]


def _of_successor(pod: Pod, view: NodeVolumes) -> Prospect:
    name, node = pod.metadata.key, pod.spec.node_name
    if pod.metadata.deletion_timestamp is not None:
        return Prospect(none=f"its successor {name} is ending")
    if node == view.node_name:
        return Prospect(none=f"its successor {name} is on the same Node")
    if node and pod.status.phase == "Running":
        # It could not run without its volumes, whatever attachments tell by now, or do not.
        return Prospect(attached_to=node)
    if node:
        return Prospect(awaited=f"{name} on node {node}", placed=True)
    if any(
        c.type == "PodScheduled" and c.status == "False" and c.reason in _UNPLACEABLE
        for c in pod.status.conditions
    ):
        return Prospect(none=f"its successor {name} finds no Node")
    return Prospect(awaited=f"{name}, which has no Node yet")
