"""Events are kept for a while only, else a fleet's history would fill the memory.

Nothing wakes up for it: old Events go when a new one comes.
"""

from __future__ import annotations

from collections import deque
from typing import final

from mcm.sandbox.apiserver.kinds.builtin import EVENTS
from mcm.sandbox.apiserver.requests.calls import ServerState
from mcm.sandbox.apiserver.store import Change, ChangeType


@final
class EventExpiry:
    """Invariant: every Event's last write has an entry, and entries are in the order of writes."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._written: deque[tuple[float, str, int]] = deque()
        state.store.subscribe(self._on_event, EVENTS)

    def _on_event(self, change: Change) -> None:
        if change.type is not ChangeType.DELETED:
            now = self._state.now().timestamp()
            self._written.append((now, change.stored.key, change.revision))
            self._expire(now - self._state.settings.event_lifetime)

    def _expire(self, until: float) -> None:
        events = self._state.store.collection(EVENTS)
        while self._written and self._written[0][0] <= until:
            _, key, revision = self._written.popleft()
            stored = events.get(key)
            if stored is not None and stored.revision == revision:
                self._state.store.delete(EVENTS, stored)
