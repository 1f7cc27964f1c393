"""How fast the VMs of a class are updated: one first, and once that succeeded so many a second.

What a cloud refuses is refused on one machine at a time, longer and longer apart, instead of on ten
thousand. A restart forgets all of this: then one machine is tried at once again.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, final

from mcm.clock import Clock
from mcm.controllers.machine.backoff import MachineBackoff, Pace
from mcm.workqueue.token_bucket import TokenBucket

A_SECOND: Final = 5.0
"""Updates of a class: each is a call to the cloud and four writes."""
AT_ONCE: Final = 10
"""So many may begin together; how many are under way together, the places for them say."""


def _bucket() -> TokenBucket:
    return TokenBucket(rate=A_SECOND, burst=AT_ONCE)


@final
@dataclass(slots=True)
class _Class:
    """What is known of the updates of one class under its present circumstances."""

    circumstances: Hashable
    proven: bool = False
    unsupported: bool = False
    bucket: TokenBucket = field(default_factory=_bucket)


@final
class HotUpdatePace:
    """Classes go by key, machines by UID. ``backoff`` is for these updates alone."""

    def __init__(self, *, clock: Clock, backoff: MachineBackoff) -> None:
        self._clock = clock
        self._backoff = backoff
        self._classes: dict[str, _Class] = {}
        self._slots: dict[str, float] = {}
        """When a machine's turn comes, monotonic."""

    def regard(self, class_key: str, circumstances: Hashable) -> None:
        """Say what an update of the class depends on now. Where that has changed, all that is known
        of earlier attempts counts no more."""
        known = self._classes.setdefault(class_key, _Class(circumstances))
        if known.circumstances != circumstances:
            known.circumstances, known.proven, known.unsupported = circumstances, False, False

    def at_once(self, class_key: str) -> float:
        """Return how many VMs of the class may be updated together now; none after a failure."""
        known = self._classes.get(class_key)
        if known is not None and known.proven:
            return AT_ONCE
        return 0 if self._wait(class_key, class_key) > 0 else 1

    def wait(self, uid: str, class_key: str) -> float:
        """Return the seconds for which the machine is left alone, since its update failed."""
        return self._wait(uid, class_key)

    def turn(self, uid: str, class_key: str) -> float:
        """Return the seconds until the machine's turn, in the order of asking; 0: now, once."""
        now = self._clock.monotonic()
        at = self._slots.pop(uid, None)
        if at is None:
            at = now + self._classes[class_key].bucket.reserve(now)
        if at <= now:
            return 0.0
        self._slots[uid] = at
        return at - now

    def is_unsupported(self, class_key: str) -> bool:
        return self._classes[class_key].unsupported

    def unsupported(self, uid: str, class_key: str) -> None:
        """The provider has no such verb: nobody of the class is tried until something changes."""
        self.succeeded(uid, class_key)
        self._classes[class_key].unsupported = True

    def succeeded(self, uid: str, class_key: str) -> None:
        self._classes[class_key].proven = True
        self._backoff.forget(class_key)
        self.forget(uid)

    def failed(self, uid: str, class_key: str, pace: Pace) -> float:
        """Count a failure; return in how many seconds somebody of the class may be tried."""
        known, now = self._classes[class_key], self._clock.monotonic()
        wait = self._backoff.failed(uid, pace, now, circumstances=known.circumstances)
        if known.proven:
            return wait
        return self._backoff.failed(class_key, pace, now, circumstances=known.circumstances)

    def forget(self, uid: str) -> None:
        """The machine is gone, or needs no update."""
        self._backoff.forget(uid)
        self._slots.pop(uid, None)

    def forget_class(self, class_key: str) -> None:
        self._backoff.forget(class_key)
        self._classes.pop(class_key, None)

    def _wait(self, key: str, class_key: str) -> float:
        known = self._classes.get(class_key)
        circumstances = known.circumstances if known is not None else None
        return self._backoff.wait(key, self._clock.monotonic(), circumstances=circumstances)
