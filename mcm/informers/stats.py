"""What one informer counts: plain numbers, written on the hot path, read at each scrape."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import final


@final
@dataclass(slots=True)
class Spans:
    """How many there were, and what they come to."""

    count: int = 0
    seconds: float = 0.0
    items: int = 0

    def add(self, seconds: float, items: int) -> None:
        self.count += 1
        self.seconds += seconds
        self.items += items


@final
@dataclass(slots=True)
class InformerStats:
    """Written by one reflector and its informer only. Ages and times are monotonic seconds."""

    lists: int = 0
    """Requests for a page of a list, or for a list as a stream."""
    watches: int = 0
    """Requests for a watch."""
    short_watches: int = 0
    """Watches that ended without an event, well before their time."""
    silent_watches: int = 0
    """Watches given up because not a byte came."""
    relists: int = 0
    """Complete lists after the first."""
    unreadable: int = 0
    """Frames and list items that could not be decoded."""
    handler_errors: int = 0
    events: Counter[str] = field(default_factory=Counter)
    """Frames by type."""
    failures: Counter[str] = field(default_factory=Counter)
    """Failed requests and streams, by the name of the error."""
    listed: Spans = field(default_factory=Spans)
    """Complete lists: how long each took, and how many items it had."""
    watched: Spans = field(default_factory=Spans)
    """Watches that have ended: how long each lasted, and how many events it brought."""
    received_bytes: int = 0
    """What watches brought, in bytes."""
    last_heard: float | None = None
    """When the server last sent anything: an answer, an event, a bookmark."""
