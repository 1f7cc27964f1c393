"""The order in which ready keys are handed out: by priority, which grows while a key waits.

A key that became ready at ``t`` with priority ``p`` has at time ``now`` the standing
``p + ageing * (now - t)``. The difference between two standings does not depend on ``now``, so the
order never changes by waiting alone: it is that of the constant ``ageing * t - p``, and a heap of
these is enough. It also bounds every wait: a key is handed out before any key that becomes ready
more than ``(highest priority - p) / ageing`` seconds after it.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar, final

import msgspec

K = TypeVar("K", bound=Hashable)

_SLACK = 64


class _Entry(msgspec.Struct, frozen=True, gc=False):
    """``standing``: lower is served first. ``arrival`` breaks ties first come, first served."""

    standing: float
    arrival: int
    since: float
    priority: int


@final
class ReadyOrder(Generic[K]):
    """A priority queue in which a key is present at most once.

    ``ageing`` is the priority gained per second of waiting; 0 would let low priorities starve.
    """

    def __init__(self, ageing: float) -> None:
        if ageing <= 0:
            raise ValueError(f"need ageing > 0, got {ageing}")
        self._ageing = ageing
        self._arrivals = 0
        # Each key once, with its current rank. The heap may hold outdated ranks besides.
        self._entries: dict[K, _Entry] = {}
        self._heap: list[tuple[float, int, K]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def push(self, key: K, *, priority: int, now: float) -> None:
        """Insert a key that is not present."""
        self._arrivals += 1
        self._place(key, priority=priority, since=now, arrival=self._arrivals)

    def raise_priority(self, key: K, priority: int) -> None:
        """Lift a present key to ``priority`` if that is higher; its waiting time still counts."""
        entry = self._entries[key]
        if priority > entry.priority:
            self._place(key, priority=priority, since=entry.since, arrival=entry.arrival)

    def pop(self) -> K | None:
        """Remove and return the key with the highest standing, or None if there is none."""
        while self._heap:
            standing, arrival, key = heapq.heappop(self._heap)
            entry = self._entries.get(key)
            if entry is not None and (entry.standing, entry.arrival) == (standing, arrival):
                del self._entries[key]
                return key
        return None

    def _place(self, key: K, *, priority: int, since: float, arrival: int) -> None:
        standing = self._ageing * since - priority
        self._entries[key] = _Entry(standing, arrival, since, priority)
        # Arrivals differ between keys, so the comparison of two items never reaches the key.
        heapq.heappush(self._heap, (standing, arrival, key))
        if len(self._heap) > 2 * len(self._entries) + _SLACK:
            self._compact()

    def _compact(self) -> None:
        self._heap = [(e.standing, e.arrival, k) for k, e in self._entries.items()]
        heapq.heapify(self._heap)
