"""The other shards, as their leases tell: their selectors, and whether they are alive.

A clock of another host is never believed: alive is whose lease was seen to change.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

from mcm.api.core import Lease
from mcm.api.names import ANNOTATION_SHARD, ANNOTATION_SHARD_SELECTOR
from mcm.api.selectors import parse_label_selector
from mcm.sharding.shard import Shard

log = logging.getLogger(__name__)

_DURATION: Final = 15.0  # seconds, of a lease that tells none


@dataclass(slots=True)
class _Seen:
    shard: Shard
    renewed: str
    changed_at: float | None
    """When the lease was seen to change; None if it never was."""
    duration: float
    held: bool
    first_at: float


@final
class Peers:
    """``base`` is the name that each shard's lease begins with; ``period`` the seconds between two
    looks. ``us`` does not count."""

    def __init__(self, us: str, *, base: str, period: float) -> None:
        self._us = us
        self._base = base
        self._period = period
        self._seen: dict[str, _Seen] = {}

    def look(self, leases: Iterable[Lease], now: float) -> None:
        """Take in all leases of the namespace, read at ``now`` (monotonic seconds)."""
        before, self._seen = self._seen, {}
        for lease in leases:
            shard = self._shard_of(lease)
            if shard is None:
                continue
            renewed = f"{lease.spec.holder_identity}@{lease.spec.renew_time}"
            known = before.get(shard.name)
            changed_at = known.changed_at if known is not None else None
            if known is not None and known.renewed != renewed:
                changed_at = now
            if not lease.spec.holder_identity:
                changed_at = None
            duration = float(lease.spec.lease_duration_seconds or _DURATION)
            first_at = known.first_at if known is not None else now
            held = bool(lease.spec.holder_identity)
            self._seen[shard.name] = _Seen(shard, renewed, changed_at, duration, held, first_at)

    @property
    def known(self) -> tuple[Shard, ...]:
        """All that have a lease, in the order of their names."""
        return tuple(seen.shard for _, seen in sorted(self._seen.items()))

    def alive(self, now: float) -> tuple[Shard, ...]:
        """Return those that renew their leases."""
        return tuple(
            seen.shard
            for _, seen in sorted(self._seen.items())
            if seen.changed_at is not None and now <= seen.changed_at + seen.duration + self._period
        )

    def not_gone(self, now: float) -> tuple[Shard, ...]:
        """Return those that renew their leases, or were not yet seen for long enough to tell."""
        return tuple(
            seen.shard
            for _, seen in sorted(self._seen.items())
            if seen.held
            and now <= (seen.changed_at or seen.first_at) + seen.duration + self._period
        )

    def _shard_of(self, lease: Lease) -> Shard | None:
        annotations = lease.metadata.annotations
        name = annotations.get(ANNOTATION_SHARD, "")
        selector = annotations.get(ANNOTATION_SHARD_SELECTOR)
        if not name or name == self._us or selector is None:
            return None
        if lease.metadata.name != f"{self._base}-{name}":
            return None
        try:
            parse_label_selector(selector)
        except ValueError:
            log.warning("lease %s has a selector that nobody understands", lease.metadata.name)
            return None
        return Shard(name, selector)
