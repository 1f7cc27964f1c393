"""What a provider tells of its requests to the cloud's own services, for ``/metrics``.

One verb of a driver may be several requests: of the verbs the manager knows by itself, of these
only the provider does. A provider that wants them shown wraps each::

    with context.cloud_api.request("compute"):
        await cloud.run_instance(...)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import final

from prometheus_client import CollectorRegistry, Counter, Histogram

from mcm.metrics import REQUEST_BUCKETS, once_per_registry

_LABELS = ("provider", "service")


@final
class _Families:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "mcm_cloud_api_requests",
            "Requests that the provider sent to services of the cloud.",
            _LABELS,
            registry=registry,
        )
        self.failures = Counter(
            "mcm_cloud_api_requests_failed",
            "Of these, those that failed.",
            _LABELS,
            registry=registry,
        )
        self.duration = Histogram(
            "mcm_cloud_api_api_request_duration_seconds",
            "Seconds they took.",
            _LABELS,
            buckets=REQUEST_BUCKETS,
            registry=registry,
        )


@final
class CloudApi:
    """Counts the requests of one provider; without a registry, for nobody."""

    def __init__(
        self,
        provider: str = "",
        *,
        registry: CollectorRegistry | None = None,
        monotonic: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._provider = provider
        self._families = once_per_registry(registry, _Families) if registry else None
        self._monotonic = monotonic

    @contextmanager
    def request(self, service: str) -> Iterator[None]:
        """Count what happens within as one request; one that raises has failed.

        ``service`` names a part of the cloud (compute, network), never one of its objects.
        """
        if self._families is None:
            yield
            return
        labels = (self._provider, service)
        self._families.requests.labels(*labels).inc()
        failures, began = self._families.failures.labels(*labels), self._monotonic()
        try:
            yield
        except Exception:
            failures.inc()
            raise
        finally:
            self._families.duration.labels(*labels).observe(self._monotonic() - began)
