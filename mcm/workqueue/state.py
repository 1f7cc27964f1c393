"""The work queue as a synchronous state machine: no loop, no clock, no waiting.

Four places a key can be in, named as in client-go:

* *dirty*: needs work. A key may be dirty and in processing at once: it changed meanwhile;
* *processing*: handed out and not yet done;
* *ready*: dirty and not in processing, in the order of :class:`.ready.ReadyOrder`;
* *delayed*: becomes dirty at its deadline, unless the queue shuts down before.

Every method takes the monotonic time it happens at. Each is one transition: nothing can split it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar, final

import msgspec

from mcm.workqueue.delayed import DelayedKeys
from mcm.workqueue.ready import ReadyOrder

K = TypeVar("K", bound=Hashable)

INITIAL_PRIORITY = -100
"""For adds from an initial list or a resync: fresh changes go first, but only for so long."""

AGEING = 1.0
"""Priority gained per second of waiting: what came with INITIAL_PRIORITY waits at most 100 s more
than what is added with 0."""


class InFlight(msgspec.Struct, frozen=True, gc=False):
    """What is known of a key in processing: when it was handed out, with which priority, and how
    many seconds after it was added."""

    since: float
    priority: int
    waited: float = 0.0


class Taken(msgspec.Struct, Generic[K], frozen=True):
    """A key handed out, and the seconds from its first add until now."""

    key: K
    waited: float


class _Dirty(msgspec.Struct, gc=False):
    since: float
    priority: int


@final
class QueueState(Generic[K]):
    """See the module. Methods that may make keys ready return how many did."""

    def __init__(self, *, ageing: float = AGEING) -> None:
        self._dirty: dict[K, _Dirty] = {}
        self._processing: dict[K, InFlight] = {}
        self._ready: ReadyOrder[K] = ReadyOrder(ageing)  # always: dirty minus processing
        self._delayed: DelayedKeys[K] = DelayedKeys()
        self._shut_down = False
        self.adds = 0  # how often a key became dirty, ever

    @property
    def ready(self) -> int:
        return len(self._ready)

    @property
    def delayed(self) -> int:
        return len(self._delayed)

    @property
    def processing(self) -> Mapping[K, InFlight]:
        return MappingProxyType(self._processing)

    @property
    def is_shut_down(self) -> bool:
        return self._shut_down

    @property
    def idle(self) -> bool:
        """Nothing is ready, in processing, or waiting for its processing to end."""
        return not self._dirty and not self._processing

    @property
    def next_deadline(self) -> float | None:
        """When :meth:`release_due` should be called next."""
        return self._delayed.next_deadline

    def add(self, key: K, *, priority: int, now: float) -> int:
        """Mark ``key`` as needing work; if it is already, only raise its priority."""
        if self._shut_down:
            return 0
        waiting = self._dirty.get(key)
        if waiting is not None:
            if priority > waiting.priority:
                self._raise(key, waiting, priority)
            return 0
        self.adds += 1
        self._dirty[key] = _Dirty(now, priority)
        if key in self._processing:
            return 0  # done() makes it ready
        self._ready.push(key, priority=priority, now=now)
        return 1

    def add_at(self, key: K, deadline: float, *, priority: int, now: float) -> int:
        """Add ``key`` at ``deadline``, or now if that has passed."""
        if self._shut_down:
            return 0
        if deadline <= now:
            return self.add(key, priority=priority, now=now)
        self._delayed.push(key, deadline=deadline, priority=priority)
        return 0

    def release_due(self, now: float) -> int:
        """Add every delayed key whose deadline has come."""
        became_ready = 0
        while (due := self._delayed.pop_due(now)) is not None:
            key, priority = due
            became_ready += self.add(key, priority=priority, now=now)
        return became_ready

    def take(self, now: float) -> Taken[K] | None:
        """Hand out the key that is first in order, or None if none is ready."""
        key = self._ready.pop()
        if key is None:
            return None
        waiting = self._dirty.pop(key)
        waited = max(0.0, now - waiting.since)
        self._processing[key] = InFlight(now, waiting.priority, waited)
        return Taken(key, waited)

    def done(self, key: K, now: float) -> tuple[InFlight, int] | None:
        """End the processing of ``key``; a key that was not handed out changes nothing (None).

        Returns what was known of it, and 1 if it is ready again because of an add in between.
        """
        flight = self._processing.pop(key, None)
        if flight is None:
            return None
        again = self._dirty.get(key)
        if again is None:
            return flight, 0
        self._ready.push(key, priority=again.priority, now=now)
        return flight, 1

    def shut_down(self) -> int:
        """Refuse adds from now on; drop the delayed keys and return how many those were."""
        self._shut_down = True
        return self._delayed.clear()

    def check_invariants(self) -> None:
        """Raise AssertionError if the state is impossible; tests call this after each step."""
        ready = set(self._ready)
        assert len(ready) == len(self._ready), "a key is ready twice"
        assert ready == self._dirty.keys() - self._processing.keys(), "ready != dirty - processing"
        assert not (self._shut_down and len(self._delayed)), "delayed keys after shutdown"

    def _raise(self, key: K, waiting: _Dirty, priority: int) -> None:
        waiting.priority = priority
        if key in self._ready:
            self._ready.raise_priority(key, priority)
