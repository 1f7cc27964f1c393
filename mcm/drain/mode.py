"""How hard a drain may be: by eviction, or by force, and from when on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import final

from mcm.api.core import NodeCondition
from mcm.api.names import (
    CONDITION_NODE_READY,
    CONDITION_READONLY_FILESYSTEM,
    STATUS_FALSE,
    STATUS_TRUE,
    STATUS_UNKNOWN,
)

UNHEALTHY_FOR = timedelta(minutes=5)
"""A Node that is not Ready, or whose disk is read-only, for longer runs its pods no more."""

_GO_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})


class Force(Enum):
    """Why pods are deleted rather than evicted."""

    NONE = "none"
    LABEL = "label"
    TIMEOUT = "timeout"
    NODE_NOT_READY = "node not ready"
    READONLY_FILESYSTEM = "read-only file system"


@final
@dataclass(frozen=True, slots=True)
class Mode:
    """``kubelet_dead``: nothing was heard from it for so long that nobody runs the pods any more.
    A kubelet that says it is not ready is alive, and so may be its containers.

    ``next_change`` is when time alone will make the mode harder; None: it cannot any more.
    """

    force: Force
    kubelet_dead: bool
    next_change: datetime | None

    @property
    def forced(self) -> bool:
        return self.force is not Force.NONE


def go_bool(text: str) -> bool:
    """Read a boolean as Go's ``strconv`` does; what it could not read is false."""
    return text in _GO_TRUE


def mode_of(
    conditions: Sequence[NodeCondition],
    *,
    force_asked: bool,
    deadline: datetime,
    now: datetime,
) -> Mode:
    """Decide the mode at ``now``. ``deadline`` is when eviction has had its time."""
    ill_since = _bad_since(conditions, CONDITION_NODE_READY, good=STATUS_TRUE)
    readonly_since = _bad_since(conditions, CONDITION_READONLY_FILESYSTEM, good=STATUS_FALSE)
    ill, readonly = _too_long(ill_since, now), _too_long(readonly_since, now)
    changes = [
        moment
        for moment in (
            deadline,
            ill_since + UNHEALTHY_FOR if ill_since else None,
            readonly_since + UNHEALTHY_FOR if readonly_since else None,
        )
        if moment is not None and moment >= now
    ]
    force = _force(ill=ill, readonly=readonly, label=force_asked, late=now > deadline)
    return Mode(
        force=force,
        kubelet_dead=is_kubelet_dead(conditions, now),
        next_change=min(changes) if changes and force is Force.NONE else None,
    )


def is_kubelet_dead(conditions: Sequence[NodeCondition], now: datetime) -> bool:
    """Tell whether nothing was heard from the kubelet for so long that it runs nothing any more."""
    silent_since = _bad_since(conditions, CONDITION_NODE_READY, good=STATUS_TRUE)
    return _too_long(silent_since, now) and _is_silent(conditions)


def _force(*, ill: bool, readonly: bool, label: bool, late: bool) -> Force:
    if label:
        return Force.LABEL
    if late:
        return Force.TIMEOUT
    if ill:
        return Force.NODE_NOT_READY
    return Force.READONLY_FILESYSTEM if readonly else Force.NONE


def _bad_since(
    conditions: Sequence[NodeCondition], condition_type: str, *, good: str
) -> datetime | None:
    for condition in conditions:
        if condition.type == condition_type and condition.status != good:
            return condition.last_transition_time
    return None


def _is_silent(conditions: Sequence[NodeCondition]) -> bool:
    return any(c.type == CONDITION_NODE_READY and c.status == STATUS_UNKNOWN for c in conditions)


def _too_long(since: datetime | None, now: datetime) -> bool:
    return since is not None and now - since > UNHEALTHY_FOR
