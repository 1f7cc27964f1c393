"""When a lease is taken, renewed or given up, by what was seen of it: a synchronous machine.

Two clocks are kept apart. Wall time is only written into the lease, for people to read. Everything
decided here rests on monotonic times of this process: of another's lease, *when we saw it change*;
of our own, *when we sent* the request that renewed it, which is before anyone can have seen it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import final

from msgspec.structs import replace

from mcm.api.core import Lease, LeaseSpec
from mcm.api.meta import ObjectMeta
from mcm.api.timestamps import micro_time
from mcm.client.errors import KubeError
from mcm.leaderelection.continuity import led_since, with_note

RENEWALS_IN_TIME = 1.2
"""How many retry periods must fit into the renew deadline, as in client-go."""


_LONGEST = 3600.0
"""Seconds beyond which a lease's duration excuses no break: anybody can write anything there."""


@final
class LeadershipLost(KubeError):
    """We do not lead (any more): nothing may be changed, the process should end."""


@final
@dataclass(frozen=True, slots=True)
class Timings:
    """In seconds. A leader renews every ``retry_period``; ``renew_deadline`` after its last
    successful renewal was sent it stops leading; others take over once they have seen no change
    for ``lease_duration``."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def problems(self) -> list[str]:
        """Return one line for each relation that does not hold; empty if the timings can work."""
        found = []
        if self.retry_period <= 0:
            found.append("the retry period must be positive")
        if self.renew_deadline <= self.retry_period * RENEWALS_IN_TIME:
            found.append(f"the renew deadline must exceed {RENEWALS_IN_TIME} retry periods")
        if self.lease_duration <= self.renew_deadline + self.retry_period:
            found.append("the lease duration must exceed renew deadline plus retry period")
        if self.lease_duration < 1:
            found.append("the lease duration must be at least a second")
        return found

    @property
    def margin(self) -> float:
        """How much of the lease must be left to do anything under it."""
        return self.lease_duration - self.renew_deadline

    @property
    def request_limit(self) -> float:
        """How long one attempt may take, so that a hung one leaves time for another."""
        return max(1.0, self.renew_deadline / 2)


@final
@dataclass(frozen=True, slots=True)
class Write:
    """What to send: a creation, or a replacement at ``lease.metadata.resource_version``."""

    lease: Lease
    create: bool = False


@final
class Election:
    """One candidate's view of one lease.

    A ``joint`` one is held by several candidates at a time, all under the same identity: each
    renews it, and none gives it up, as it cannot know that it was the last. ``annotations`` are
    kept on the lease.
    """

    def __init__(
        self,
        *,
        name: str,
        namespace: str,
        identity: str,
        timings: Timings,
        joint: bool = False,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        if not identity:
            raise ValueError("an elector needs an identity")
        if problems := timings.problems():
            raise ValueError("; ".join(problems))
        self._name = name
        self._namespace = namespace
        self._identity = identity
        self.timings = timings
        self._joint = joint
        self._annotations = dict(annotations or {})
        self._lease: Lease | None = None
        self._seen = False
        self._changed_at = 0.0  # when the observed record last changed
        self._renewed_at: float | None = None  # when our last successful write was sent
        self._may_hold = False  # a write of ours may stand in the lease
        self._led_since: datetime | None = None

    @property
    def holder(self) -> str:
        """The identity in the lease as last seen; empty if nobody holds it."""
        return (self._lease.spec.holder_identity or "") if self._lease is not None else ""

    @property
    def lease(self) -> Lease | None:
        """The lease as last seen; None before that, and while there is none."""
        return self._lease

    @property
    def led_since(self) -> datetime | None:
        """When the lease we took was taken after the last long break (:mod:`.continuity`)."""
        return self._led_since

    @property
    def may_hold(self) -> bool:
        """Whether there may be something of ours to release."""
        return self._may_hold and not self._joint

    def time_left(self, now: float) -> float:
        """Return the seconds in which nobody else can take the lease; 0 if it is not ours."""
        if self._renewed_at is None:
            return 0.0
        return max(0.0, self._renewed_at + self.timings.lease_duration - now)

    def leading(self, now: float) -> bool:
        return self._renewed_at is not None and self.time_left(now) > self.timings.margin

    def free_in(self, now: float) -> float:
        """Return the seconds for which another holds the lease unless it renews; infinity as long
        as nobody looked, 0 if nobody holds it or we do."""
        if not self._seen:
            return math.inf
        if self._lease is None or self.holder in ("", self._identity):
            return 0.0
        return max(0.0, self._changed_at + self._duration_of(self._lease.spec) - now)

    # What was seen

    def observe(self, lease: Lease | None, now: float) -> None:
        """Take in what a read returned at ``now``; None: there is no such lease."""
        if lease is None or self._lease is None or lease.spec != self._lease.spec:
            self._changed_at = now
        self._seen = True
        self._lease = lease
        if self.holder != self._identity:
            self._renewed_at = None

    def sending(self) -> None:
        """Note that a write leaves: even if no answer comes, it may have been done."""
        self._may_hold = True

    def renewed(self, lease: Lease, *, sent_at: float, now: float) -> None:
        """Take in the answer to a write of ours that was sent at ``sent_at``."""
        self.observe(lease, now)
        if self.holder == self._identity:
            self._renewed_at = sent_at

    def resign(self) -> None:
        """Stop leading at once, whatever the lease says."""
        self._renewed_at = None

    # What to do

    def renewal(self, now: float, wall: datetime) -> Write | None:
        """Return the write that renews without reading first: only while the lease is surely ours
        and its version known. That of a joint one hardly ever is."""
        if self._joint or self._lease is None or self.time_left(now) <= 0:
            return None
        return Write(self._ours(self._lease, wall))

    def bid(self, now: float, wall: datetime) -> Write | None:
        """Return the write that takes or renews the lease just read; None while it is another's."""
        if self._lease is None:
            metadata = ObjectMeta(name=self._name, namespace=self._namespace)
            self._led_since = led_since(None, wall, failover=self._failover(LeaseSpec()))
            return Write(self._ours(Lease(metadata=metadata), wall), create=True)
        others = self.holder not in ("", self._identity)
        if others and now < self._changed_at + self._duration_of(self._lease.spec):
            return None
        if self.holder == self._identity:
            return Write(self._ours(self._lease, wall))
        since = led_since(self._lease, wall, failover=self._failover(self._lease.spec))
        self._led_since = since
        taken_over = self._ours(self._lease, wall)
        return Write(with_note(taken_over, wall) if since == wall else taken_over)

    def release(self, lease: Lease, wall: datetime) -> Write | None:
        """Return the write that gives up ``lease``, just read; None if it is not ours to give."""
        if lease.spec.holder_identity != self._identity:
            return None
        moment = micro_time(wall)
        vacant = replace(
            lease.spec,
            holder_identity="",
            lease_duration_seconds=1,
            acquire_time=moment,
            renew_time=moment,
        )
        return Write(replace(lease, spec=vacant))

    def released(self) -> None:
        """Note that nothing of ours stands in the lease any more."""
        self._may_hold = False
        self._lease = None

    def _failover(self, spec: LeaseSpec) -> timedelta:
        """How long it may take until one who renewed the lease is followed by another."""
        duration = max(min(self._duration_of(spec), _LONGEST), self.timings.lease_duration)
        return timedelta(seconds=duration + self.timings.retry_period)

    def _duration_of(self, spec: LeaseSpec) -> float:
        """The holder's own word counts; without one, our duration."""
        if spec.lease_duration_seconds is None:
            return self.timings.lease_duration
        return float(spec.lease_duration_seconds)

    def _ours(self, lease: Lease, wall: datetime) -> Lease:
        moment = micro_time(wall)
        spec = replace(
            lease.spec,
            holder_identity=self._identity,
            lease_duration_seconds=self._duration_for(lease.spec),
            renew_time=moment,
        )
        if lease.spec.holder_identity != self._identity:
            changes = (lease.spec.lease_transitions or 0) + 1
            if self._lease is None:
                changes = 0  # the first holder of a new lease
            spec = replace(spec, acquire_time=moment, lease_transitions=changes)
        noted = {**lease.metadata.annotations, **self._annotations}
        return replace(lease, metadata=replace(lease.metadata, annotations=noted), spec=spec)

    def _duration_for(self, spec: LeaseSpec) -> int:
        """Rounded up: others may wait longer than we count on, never shorter. Nor shorter than
        anybody counts on who holds the lease with us."""
        duration = math.ceil(self.timings.lease_duration)
        if self._joint and spec.holder_identity == self._identity:
            return max(duration, spec.lease_duration_seconds or 0)
        return duration
