"""What the client counts, by verb and resource, never by URL: the number of series is bounded.

Names follow client-go's (``rest_client_…``), so that existing dashboards find them; the ``host``
label of the original is replaced by ``resource``, as one client speaks to one server.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from mcm.client.errors import ApiError, KubeError
from mcm.metrics import exponential_buckets

_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)

_LATENCY_BUCKETS = exponential_buckets(0.001, 2.0, 10)


def code_of(error: KubeError) -> str:
    """Return the ``code`` label of a failure: the HTTP status, or ``<error>`` if none came."""
    return str(error.code) if isinstance(error, ApiError) else "<error>"


@final
class ClientMetrics:
    """Counters of one client, or of several that share a registry and this object."""

    def __init__(self, registry: CollectorRegistry) -> None:
        requests = Counter(
            "rest_client_requests_total",
            "HTTP requests sent, by status code, method and resource.",
            ("code", "method", "resource"),
            registry=registry,
        )
        latency = Histogram(
            "rest_client_request_latency_seconds",
            "Time from sending one request to its whole answer, by verb and form of the URL.",
            ("verb", "url"),
            buckets=_LATENCY_BUCKETS,
            registry=registry,
        )
        self._retries = Counter(
            "rest_client_request_retries_total",
            "Requests repeated, by the code that made it so, verb and resource.",
            ("code", "verb", "resource"),
            registry=registry,
        )
        waiting = Histogram(
            "rest_client_rate_limiter_duration_seconds",
            "Time a request waited for its turn (rate limit and concurrency cap), by verb.",
            ("verb",),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._allowed = Gauge(
            "rest_client_in_flight_limit",
            "Most requests under way at once: fewer than allowed where the server refuses some.",
            ("client",),
            registry=registry,
        )
        # Three at each request: to find a series again costs the library ten times what it costs
        # to remember it.
        self._requests = cache(requests.labels)
        self._latency = cache(latency.labels)
        self._waiting = cache(waiting.labels)

    def answered(self, code: str, *, method: str, resource: str) -> None:
        self._requests(code, method, resource).inc()

    def took(self, seconds: float, *, verb: str, url: str) -> None:
        """Note a request's time; ``url`` is the form of its path, without names."""
        self._latency(verb, url).observe(seconds)

    def retried(self, code: str, *, verb: str, resource: str) -> None:
        self._retries.labels(code, verb, resource).inc()

    def limited(self, client: str, allowed: Callable[[], int]) -> None:
        """Show how many requests of ``client`` may be under way, whenever somebody looks."""
        self._allowed.labels(client).set_function(allowed)

    def waited(self, seconds: float, *, verb: str) -> None:
        self._waiting(verb).observe(seconds)
