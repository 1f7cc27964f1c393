"""What became of the events that were recorded.

* ``mcm_events_recorded_total``: calls of the recorder, by ``type``
* ``mcm_events_writes_total``: requests that succeeded, by ``verb`` (create, patch)
* ``mcm_events_dropped_total``: occurrences that will not be found in the API, by ``reason``
"""

from __future__ import annotations

from typing import final

from prometheus_client import CollectorRegistry, Counter

from mcm.events.correlator import Drop


@final
class EventMetrics:
    """Make one per registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.recorded = Counter(
            "mcm_events_recorded", "Events recorded.", ("type",), registry=registry
        )
        self.writes = Counter(
            "mcm_events_writes", "Events written, by verb.", ("verb",), registry=registry
        )
        self.dropped = Counter(
            "mcm_events_dropped",
            "Occurrences that will not be found in the API.",
            ("reason",),
            registry=registry,
        )
        for reason in Drop:
            self.dropped.labels(reason.value)
