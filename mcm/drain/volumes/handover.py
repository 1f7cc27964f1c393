"""A pod's volumes on their way to another Node: how far they are, since when, and until when.

A handover outlives its pod. It goes from stage to stage and never back, and is over at the latest
when its limits are; whoever waits for it never does so for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, final

from mcm.api.core import Pod
from mcm.drain.pods import grace_of
from mcm.drain.request import Limits
from mcm.drain.volumes.holding import Holding
from mcm.drain.volumes.node_volumes import NodeVolumes
from mcm.drain.volumes.successor import Predecessor, prospect_of

_OF_NOBODY: Final = "attachment/"
"""Begins what stands for the UID of a pod that nobody saw; no UID of a pod has a slash."""


class Stage(StrEnum):
    """How far a handover is, in this order."""

    ASKED = "asked"
    """The server accepted that the pod goes."""
    GONE = "gone"
    """The pod is gone; its volumes are not."""
    DETACHED = "detached"
    """The Node holds none of them any more."""
    ATTACHED = "attached"
    """They are attached elsewhere, but for those that nobody will attach."""
    SKIPPED = "skipped"
    """They are not waited for any longer: the reason says why."""


_OVER: Final = (Stage.ATTACHED, Stage.SKIPPED)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """``pod_key`` is ``namespace/name``. ``replaced``: the pod's owner makes another one."""

    pod_uid: str
    pod_key: str
    owner_uid: str = ""
    replaced: bool = True
    volumes: tuple[Holding, ...]
    grace: timedelta
    asked_at: datetime
    stage: Stage = Stage.ASKED
    since: datetime
    """When it came to its stage."""
    gone_at: datetime | None = None
    detached_at: datetime | None = None
    until: datetime | None = None
    """When it is to be looked at again, though nothing happened: a limit of its stage, or an
    earlier moment at which more can be said. None: it is over."""
    reason: str = ""
    """What it waits for, or why it is over."""
    late: bool = False
    """Its limit ended it."""
    blamed: bool = False
    """It did so while nobody but an attacher had something left to do."""
    error: str = ""
    """What an attacher said last."""

    @property
    def over(self) -> bool:
        return self.stage in _OVER

    @property
    def of_nobody(self) -> bool:
        """Tell whether only its attachment was seen, and never its pod."""
        return self.pod_uid.startswith(_OF_NOBODY)

    @property
    def claims(self) -> tuple[str, ...]:
        return tuple(holding.claim for holding in self.volumes)

    @property
    def attachers(self) -> frozenset[str]:
        return frozenset(holding.attacher for holding in self.volumes)


def opened(pod: Pod, view: NodeVolumes, now: datetime) -> Handover | None:
    """Begin the handover of a pod whose eviction or deletion was accepted; None if no volume of
    its is exclusively attached to the Node.

    For a pod that somebody asked before, ``now`` counts less than when it has to have ended.
    """
    volumes = view.exclusive_of(pod)
    if not volumes:
        return None
    owner = pod.metadata.controller_ref()
    grace = grace_of(pod)
    ends = pod.metadata.deletion_timestamp
    asked_at = now if ends is None else min(now, ends - grace)
    return Handover(
        pod_uid=pod.metadata.uid,
        pod_key=pod.metadata.key,
        owner_uid=owner.uid if owner else "",
        replaced=owner is not None and owner.kind != "Job",
        volumes=volumes,
        grace=grace,
        asked_at=asked_at,
        since=asked_at,
    )


def of_nobody(attachment_uid: str, holding: Holding, now: datetime) -> Handover:
    """Begin the handover of a volume whose pod was gone before anybody saw it go; ``now`` counts
    as its end. The claim is named in its place."""
    return Handover(
        pod_uid=f"{_OF_NOBODY}{attachment_uid}",
        pod_key=holding.claim,
        volumes=(holding,),
        grace=timedelta(),
        asked_at=now,
        stage=Stage.GONE,
        since=now,
        gone_at=now,
    )


def advanced(handover: Handover, view: NodeVolumes, limits: Limits, now: datetime) -> Handover:
    """Return the handover as it stands now: any number of stages further, never back."""
    handover = _not_of_the_future(handover, now)
    for _ in Stage:
        step = _step(handover, view, limits, now)
        if step.stage is handover.stage:
            return step
        handover = step
    raise AssertionError(f"the handover of {handover.pod_key} does not come to rest")


def _step(handover: Handover, view: NodeVolumes, limits: Limits, now: datetime) -> Handover:
    match handover.stage:
        case Stage.ASKED:
            return _asked(handover, view, limits, now)
        case Stage.GONE:
            return _gone(handover, view, limits, now)
        case Stage.DETACHED:
            return _detached(handover, view, limits, now)
        case Stage.ATTACHED | Stage.SKIPPED:
            return handover


def _asked(handover: Handover, view: NodeVolumes, limits: Limits, now: datetime) -> Handover:
    until = handover.asked_at + handover.grace + limits.detach
    if not view.stale and not view.is_here(handover.pod_uid):
        return replace(handover, stage=Stage.GONE, since=now, gone_at=now)
    return _waiting(handover, view, until, now, "the pod to end")


def _gone(handover: Handover, view: NodeVolumes, limits: Limits, now: datetime) -> Handover:
    until = handover.asked_at + handover.grace + limits.detach
    if view.stale:
        return _waiting(handover, view, until, now, "volumes to be detached")
    for holding in handover.volumes:
        if users := view.users_here(holding):
            awaited = f"volume {holding.volume}, which pod {users[0].metadata.key} uses too"
            return _waiting(handover, view, until, now, awaited)
        if view.attached_here(holding):
            told = replace(handover, error=view.error_of(holding) or handover.error)
            awaited = f"volume {holding.volume} to be detached from node {view.node_name}"
            return _waiting(told, view, until, now, awaited, blamed=True)
    return replace(handover, stage=Stage.DETACHED, since=now, detached_at=now)


def _detached(handover: Handover, view: NodeVolumes, limits: Limits, now: datetime) -> Handover:
    until = handover.since + limits.reattach
    if not limits.reattach:
        return _ended(handover, Stage.SKIPPED, now, "attachments elsewhere are not waited for")
    if view.stale:
        return _waiting(handover, view, until, now, "volumes to be attached elsewhere")
    predecessor = Predecessor(
        handover.pod_uid, handover.replaced, handover.gone_at or handover.since
    )
    prospects = [(h, prospect_of(h, predecessor, view, now)) for h in handover.volumes]
    for holding, prospect in prospects:
        if prospect.is_open:
            told = replace(handover, error=view.error_of(holding) or handover.error)
            awaited = f"volume {holding.volume} to be attached for {prospect.awaited}"
            return _waiting(
                told, view, until, now, awaited, sooner=prospect.until, blamed=prospect.placed
            )
    nodes = sorted({prospect.attached_to for _, prospect in prospects if prospect.attached_to})
    if nodes:
        return _ended(handover, Stage.ATTACHED, now, f"attached to {', '.join(nodes)}")
    return _ended(handover, Stage.SKIPPED, now, next(p.none for _, p in prospects))


def _waiting(
    handover: Handover,
    view: NodeVolumes,
    until: datetime,
    now: datetime,
    awaited: str,
    *,
    sooner: datetime | None = None,
    blamed: bool = False,
) -> Handover:
    """Wait within the limit, and no longer. What cannot be observed ends by nothing else."""
    if now >= until:
        late = replace(handover, late=True, blamed=blamed)
        return _ended(late, Stage.SKIPPED, now, f"waited too long for {_with_error(late, awaited)}")
    if view.stale:
        awaited = f"{awaited}; {view.stale}"
    look_at = until if sooner is None else min(until, sooner)
    return replace(handover, until=look_at, reason=f"awaiting {_with_error(handover, awaited)}")


def _with_error(handover: Handover, text: str) -> str:
    return f"{text}; the attacher says: {handover.error}" if handover.error else text


def _ended(handover: Handover, stage: Stage, now: datetime, reason: str) -> Handover:
    return replace(handover, stage=stage, since=now, until=None, reason=reason)


def _not_of_the_future(handover: Handover, now: datetime) -> Handover:
    """A clock that was set back must not make a limit longer."""
    if handover.over or max(handover.asked_at, handover.since) <= now:
        return handover
    gone_at = handover.gone_at
    return replace(
        handover,
        asked_at=min(handover.asked_at, now),
        since=min(handover.since, now),
        gone_at=None if gone_at is None else min(gone_at, now),
    )
