"""Which occurrences are written, and when: a synchronous state machine.

Equal occurrences are one *series*, one Event object. Occurrences that differ in their note only are
series of their own, up to ten within ten minutes; after that they are told as one. Each write takes
a token from its object's bucket. Without a token a new series is dropped, a known one waits: its
count goes on in memory.

``recorded == saved_total + sum of dropped + unsaved()`` holds after every step.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Hashable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Generic, TypeVar, final

from mcm.events.wire import NOTE_LIMIT, Occurrence, Regarding, Tally, cut, event_name
from mcm.workqueue.token_bucket import TokenBucket

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

CAPACITY = 4096
"""Series, objects and groups of notes remembered, each; the least recently seen go first."""

OUTBOX = 1000
"""Series that wait to be written."""

BURST = 25
REFILL_SECONDS = 300.0
"""Writes per object: so many at once, then one in so many seconds."""

QUIET_SECONDS = 360.0
"""A series without a repeat for so long has ended."""

REFRESH_SECONDS = 1800.0
"""A count that grows is written at least this often: events expire an hour after a write."""

DISTINCT_NOTES = 10
NOTES_SECONDS = 600.0

SWEEP_SECONDS = 60.0

_COMBINED = "(combined from similar events): "


class Drop(StrEnum):
    """Why an occurrence will not be found in the API."""

    SPAM = "spam"  # its object's bucket was empty
    FULL = "full"  # the outbox was
    EVICTED = "evicted"  # its series was forgotten to make room
    REJECTED = "rejected"  # the server refused it, or the fence
    UNREACHABLE = "unreachable"  # too many tries
    SHUTDOWN = "shutdown"
    ERROR = "error"  # ours


@final
class Lru(Generic[K, V]):
    """A mapping of bounded size; a look-up makes an entry the youngest."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> V | None:
        """Insert; return the value that had to go for it, if any."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        return self._entries.popitem(last=False)[1] if len(self) > self._capacity else None

    def holds(self, key: K, value: V) -> bool:
        """Whether ``key`` still maps to this very ``value``."""
        return self._entries.get(key) is value

    def remove(self, key: K, value: V) -> None:
        if self.holds(key, value):
            del self._entries[key]

    def values(self) -> list[V]:
        return list(self._entries.values())


@final
@dataclass(slots=True, eq=False)
class Series:
    """One Event object. ``saved`` of ``count`` occurrences are known to the server."""

    key: Occurrence
    what: Occurrence
    name: str
    first: datetime
    last: datetime
    seen_at: float  # monotonic, as is saved_at
    count: int = 1
    saved: int = 0
    saved_at: float = 0.0
    queued: bool = False
    sent: bool = False  # a creation under this name has left, with whatever result

    @property
    def unsaved(self) -> int:
        return self.count - self.saved

    def tally(self) -> Tally:
        return Tally(self.count, self.first, self.last)

    def wants_write(self, now: float) -> bool:
        """Whether the count has doubled, was last written long ago, or will not grow any more."""
        return self.unsaved > 0 and (
            self.count >= 2 * self.saved
            or now - self.saved_at >= REFRESH_SECONDS
            or self.ended(now)
        )

    def ended(self, now: float) -> bool:
        return now - self.seen_at >= QUIET_SECONDS


@dataclass(slots=True)
class _Notes:
    """The distinct notes of otherwise equal occurrences."""

    seen: set[str]
    last_at: float


@final
class Correlator:
    """See the module. Monotonic times are ``now``, wall times ``wall``."""

    def __init__(self, *, capacity: int = CAPACITY, outbox: int = OUTBOX) -> None:
        self._series: Lru[Occurrence, Series] = Lru(capacity)
        self._buckets: Lru[Regarding, TokenBucket] = Lru(capacity)
        self._notes: Lru[Occurrence, _Notes] = Lru(capacity)
        self._limit = outbox
        self._outbox: deque[Series] = deque()
        self._stamp = 0
        self.recorded = 0
        self.saved_total = 0
        self.dropped: Counter[Drop] = Counter()

    def record(self, what: Occurrence, *, now: float, wall: datetime) -> None:
        """Take in one occurrence."""
        self.recorded += 1
        key, what = self._told_as(what, now)
        series = self._series.get(key)
        if series is None or (series.ended(now) and not series.unsaved):
            self._begin(key, what, now, wall)
            return
        series.count += 1
        series.last, series.seen_at = wall, now
        self._enqueue_if_due(series, now)

    def sweep(self, now: float) -> None:
        """Queue the series that are due by time; forget those that ended and are saved."""
        for series in self._series.values():
            self._enqueue_if_due(series, now)
            if series.ended(now) and not series.unsaved:
                self._series.remove(series.key, series)

    @property
    def needs_sweep(self) -> bool:
        return len(self._series) > 0

    def head(self) -> Series | None:
        """Return the series to write next; it stays first until it is settled."""
        return self._outbox[0] if self._outbox else None

    def unsaved(self) -> int:
        """Return the number of occurrences recorded that are neither saved nor dropped."""
        open_series = {id(s): s for s in (*self._series.values(), *self._outbox)}
        return sum(series.unsaved for series in open_series.values())

    # How the write of the head ended

    def saved(self, series: Series, count: int, now: float) -> None:
        """``count`` of it is on the server."""
        self.saved_total += count - series.saved
        series.saved, series.saved_at = count, now
        self._dequeue(series)
        if self._series.holds(series.key, series):
            self._enqueue_if_due(series, now)
        else:  # forgotten while it was written: nothing will come back to it
            self._give_up(series, Drop.EVICTED)

    def lost(self, series: Series, why: Drop) -> None:
        """It will never be written."""
        self._give_up(series, why)
        self._dequeue(series)
        self._series.remove(series.key, series)

    def expired(self, series: Series, now: float, wall: datetime) -> None:
        """The event is no longer on the server: what is unsaved becomes a new one, at the head."""
        series.count -= series.saved
        series.saved = 0
        series.first = series.last
        self.rename(series, wall)
        if not self._take_token(series.what.regarding, now):
            self.lost(series, Drop.SPAM)

    def rename(self, series: Series, wall: datetime) -> None:
        series.name = self._new_name(series.what.regarding, wall)
        series.sent = False

    def close(self) -> None:
        """Drop all that is unsaved."""
        for series in (*self._outbox, *self._series.values()):
            self.lost(series, Drop.SHUTDOWN)

    def finish(self, now: float) -> None:
        """Queue every series that has something unsaved, as far as tokens and outbox allow."""
        for series in self._series.values():
            if series.unsaved and not series.queued:
                self._enqueue(series, now)

    def _begin(self, key: Occurrence, what: Occurrence, now: float, wall: datetime) -> None:
        if len(self._outbox) >= self._limit:
            self.dropped[Drop.FULL] += 1
            return
        if not self._take_token(what.regarding, now):
            self.dropped[Drop.SPAM] += 1
            return
        name = self._new_name(what.regarding, wall)
        series = Series(key, what, name, first=wall, last=wall, seen_at=now, queued=True)
        self._outbox.append(series)
        evicted = self._series.put(key, series)
        if evicted is not None and not evicted.queued:
            self._give_up(evicted, Drop.EVICTED)

    def _give_up(self, series: Series, why: Drop) -> None:
        if series.unsaved:
            self.dropped[why] += series.unsaved
            series.count = series.saved

    def _enqueue_if_due(self, series: Series, now: float) -> None:
        if not series.queued and series.wants_write(now):
            self._enqueue(series, now)

    def _enqueue(self, series: Series, now: float) -> None:
        if len(self._outbox) < self._limit and self._take_token(series.what.regarding, now):
            series.queued = True
            self._outbox.append(series)

    def _dequeue(self, series: Series) -> None:
        if series.queued:
            series.queued = False
            self._outbox.remove(series)

    def _take_token(self, about: Regarding, now: float) -> bool:
        bucket = self._buckets.get(about)
        if bucket is None:
            bucket = TokenBucket(rate=1 / REFILL_SECONDS, burst=BURST)
            self._buckets.put(about, bucket)
        return bucket.take(now)

    def _new_name(self, about: Regarding, wall: datetime) -> str:
        # Microseconds since the epoch, but never the same twice.
        self._stamp = max(self._stamp + 1, int(wall.timestamp() * 1e6))
        return event_name(about, self._stamp)

    def _told_as(self, what: Occurrence, now: float) -> tuple[Occurrence, Occurrence]:
        """Return the key of the series that ``what`` belongs to, and what a new one would say."""
        group = replace(what, note=_COMBINED)
        notes = self._notes.get(group)
        if notes is None or now - notes.last_at > NOTES_SECONDS:
            notes = _Notes(set(), now)
            self._notes.put(group, notes)
        notes.last_at = now
        if what.note in notes.seen or len(notes.seen) < DISTINCT_NOTES:
            notes.seen.add(what.note)
            return what, what
        return group, replace(what, note=cut(_COMBINED + what.note, NOTE_LIMIT))
