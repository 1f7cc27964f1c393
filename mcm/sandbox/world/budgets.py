"""How many voluntary disruptions a budget allows: a pure count over its pods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import final

from mcm.api.core import PodDisruptionBudgetSpec
from mcm.api.timestamps import parse_rfc3339
from mcm.sandbox.world.kinds import Pod
from mcm.sandbox.world.shares import share

_GRANTED = timedelta(minutes=2)
"""How long an eviction that was granted counts although its pod is not seen to go."""


@final
@dataclass(frozen=True, slots=True)
class Allowance:
    """The numbers of a budget's status. ``disrupted`` is by pod; ``wait`` in seconds, until the
    first of them is forgotten."""

    expected: int
    healthy: int
    desired: int
    allowed: int
    disrupted: dict[str, str]
    wait: float | None = None


def allowance(
    spec: PodDisruptionBudgetSpec,
    pods: Sequence[Pod],
    *,
    scale: int,
    granted: dict[str, str],
    now: datetime,
) -> Allowance:
    """Count. ``scale`` is how many pods the owners of ``pods`` want together; ``granted`` the
    evictions the server has let through, by pod."""
    expected, desired = _wanted(spec, len(pods), scale)
    disrupted, wait = _still_granted(granted, pods, now)
    healthy = sum(
        1 for p in pods if p.ready and not p.terminating and p.metadata.name not in disrupted
    )
    allowed = max(0, healthy - desired) if expected > 0 else 0
    return Allowance(expected, healthy, desired, allowed, disrupted, wait)


def _wanted(spec: PodDisruptionBudgetSpec, count: int, scale: int) -> tuple[int, int]:
    """Return expected and desired pods. Only a plain ``minAvailable`` asks nothing of owners.
    Percentages round up, in favour of whoever is to be protected."""
    if spec.max_unavailable is not None:
        return scale, max(0, scale - share(spec.max_unavailable, scale, round_up=True))
    if isinstance(spec.min_available, str) and spec.min_available.endswith("%"):
        return scale, share(spec.min_available, scale, round_up=True)
    least = 1 if spec.min_available is None else spec.min_available
    return count, share(least, count, round_up=True)


def _still_granted(
    granted: dict[str, str], pods: Iterable[Pod], now: datetime
) -> tuple[dict[str, str], float | None]:
    """Keep what concerns pods that are there, not seen to go yet, and granted lately. A pod that
    was made later is another of the same name."""
    there = {p.metadata.name: p.metadata.creation_timestamp for p in pods if not p.terminating}
    kept: dict[str, str] = {}
    waits: list[float] = []
    for name, stamp in granted.items():
        moment = _moment(stamp, now)
        left = (moment + _GRANTED - now).total_seconds()
        if name in there and (there[name] or moment) <= moment and left > 0:
            kept[name] = stamp
            waits.append(left)
    return kept, min(waits, default=None)


def _moment(stamp: str, now: datetime) -> datetime:
    try:
        return parse_rfc3339(stamp)
    except ValueError:
        return now - _GRANTED
