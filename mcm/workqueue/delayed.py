"""Keys that become ready later: one deadline a key, the earliest that was asked for."""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar, final

import msgspec

K = TypeVar("K", bound=Hashable)

_SLACK = 64


class _Entry(msgspec.Struct, frozen=True, gc=False):
    deadline: float
    order: int
    priority: int


@final
class DelayedKeys(Generic[K]):
    """A heap by deadline with lazy deletion; deadlines are monotonic times in seconds."""

    def __init__(self) -> None:
        self._order = 0
        # Each key once, with its current deadline. The heap may hold outdated ones besides.
        self._entries: dict[K, _Entry] = {}
        self._heap: list[tuple[float, int, K]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def push(self, key: K, *, deadline: float, priority: int) -> None:
        """Schedule ``key``; if it is scheduled, keep the earlier deadline, the higher priority."""
        known = self._entries.get(key)
        if known is None or deadline < known.deadline:
            if known is not None:
                priority = max(priority, known.priority)
            self._place(key, deadline, priority)
        elif priority > known.priority:
            self._entries[key] = _Entry(known.deadline, known.order, priority)

    @property
    def next_deadline(self) -> float | None:
        self._shed_outdated()
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: float) -> tuple[K, int] | None:
        """Remove and return one key whose deadline has come, with its priority."""
        self._shed_outdated()
        if not self._heap or self._heap[0][0] > now:
            return None
        _, _, key = heapq.heappop(self._heap)
        return key, self._entries.pop(key).priority

    def clear(self) -> int:
        """Drop everything; return how many keys that were."""
        dropped = len(self._entries)
        self._entries.clear()
        self._heap.clear()
        return dropped

    def _place(self, key: K, deadline: float, priority: int) -> None:
        self._order += 1
        self._entries[key] = _Entry(deadline, self._order, priority)
        heapq.heappush(self._heap, (deadline, self._order, key))
        if len(self._heap) > 2 * len(self._entries) + _SLACK:
            self._heap = [(e.deadline, e.order, k) for k, e in self._entries.items()]
            heapq.heapify(self._heap)

    def _shed_outdated(self) -> None:
        while self._heap:
            _, order, key = self._heap[0]
            entry = self._entries.get(key)
            if entry is not None and entry.order == order:
                return
            heapq.heappop(self._heap)
