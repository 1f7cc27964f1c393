"""Election metrics under client-go's names, label ``name``: the lease's.

* ``leader_election_master_status`` (gauge): 1 while leading, else 0
* ``leader_election_slowpath_total`` (counter): renewals that had to read the lease again first
"""

from __future__ import annotations

from typing import final

from prometheus_client import CollectorRegistry, Counter, Gauge

_LABEL = ("name",)


@final
class ElectionMetrics:
    """The metric families, for any number of leases. Make one per registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.status = Gauge(
            "leader_election_master_status",
            "1 while this process holds the lease, else 0.",
            _LABEL,
            registry=registry,
        )
        self.slow_path = Counter(
            "leader_election_slowpath",
            "Renewals that had to read the lease again first.",
            _LABEL,
            registry=registry,
        )

    def start_at_zero(self, name: str) -> None:
        self.status.labels(name).set(0)
        self.slow_path.labels(name)
