"""How long each driver verb takes, and how often it fails or runs away."""

from __future__ import annotations

from typing import final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from mcm.metrics import REQUEST_BUCKETS, once_per_registry

_BUCKETS = (*REQUEST_BUCKETS, 60.0, 120.0, 300.0, 900.0)
"""From what a mock answers in to the time at which a call is given up."""


@final
class DriverMetrics:
    """``provider`` is what the class calls itself, ``operation`` the verb."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.duration = Histogram(
            "mcm_cloud_api_driver_request_duration_seconds",
            "Seconds a driver call took.",
            ("provider", "operation"),
            registry=registry,
            buckets=_BUCKETS,
        )
        self.failures = Counter(
            "mcm_cloud_api_driver_requests_failed",
            "Driver calls that failed, by machine code.",
            ("provider", "operation", "error_code"),
            registry=registry,
        )
        self.runaways = Gauge(
            "mcm_cloud_api_driver_runaway_calls",
            "Driver calls that were cancelled and still run.",
            registry=registry,
        )

    @classmethod
    def of(cls, registry: CollectorRegistry) -> DriverMetrics:
        return once_per_registry(registry, cls)
