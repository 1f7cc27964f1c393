"""Kubernetes Events: what happened, told to people, at a bounded price.

``EventRecorder.event()`` never blocks and never raises; what it is told is correlated in memory
and written by one sender task, ``run()``. Repeats become a series: the event is created once, its
count is written when it has doubled, every half hour, and when the series ends. Each object may
cause 25 writes at once and twelve an hour after that; the outbox holds 1000 series. Whatever is
left out is counted, never silent: recorded = sum of all counts written + dropped.

Order: the events of one object are created in the order they happened. Cancelling ``run()`` flushes
what is due, within a time limit; do it before the lease is released, since the client's fence would
refuse it after. Nobody reads events back. The caller closes the client.
"""

from __future__ import annotations

from mcm.events.metrics import EventMetrics
from mcm.events.recorder import EventRecorder, EventSink
from mcm.events.wire import CORE_EVENTS, EVENTS, Event, EventKind, EventType

__all__ = [
    "CORE_EVENTS",
    "EVENTS",
    "Event",
    "EventKind",
    "EventMetrics",
    "EventRecorder",
    "EventSink",
    "EventType",
]
