"""Work-queue metrics under the names Kubernetes dashboards know, with the prefix ``mcm_``.

=============================================  =========  ==========================================
name                                           type       meaning
=============================================  =========  ==========================================
mcm_workqueue_depth                            gauge      ready keys
mcm_workqueue_adds_total                       counter    keys that became dirty
mcm_workqueue_queue_duration_seconds           histogram  from becoming dirty to being handed out
mcm_workqueue_work_duration_seconds            histogram  from being handed out to done
mcm_workqueue_unfinished_work_seconds          gauge      sum of the ages of all work in processing
mcm_workqueue_longest_running_processor_seconds  gauge    the age of the oldest
mcm_workqueue_retries_total                    counter    rate-limited adds (no plain delayed ones)
mcm_workqueue_delayed_dropped_total            counter    delayed keys lost to a shutdown
=============================================  =========  ==========================================

Each has the label ``name``: the queue's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from mcm.metrics import WORK_BUCKETS

_LABEL = ("name",)


@final
class QueueMetrics:
    """The metric families, for any number of queues. Make one per registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._depth = Gauge(
            "mcm_workqueue_depth", "Keys ready to be handed out.", _LABEL, registry=registry
        )
        self._adds = Counter(
            "mcm_workqueue_adds", "Keys that became dirty.", _LABEL, registry=registry
        )
        self._waited = Histogram(
            "mcm_workqueue_queue_duration_seconds",
            "Seconds a key was dirty before it was handed out.",
            _LABEL,
            registry=registry,
            buckets=WORK_BUCKETS,
        )
        self._worked = Histogram(
            "mcm_workqueue_work_duration_seconds",
            "Seconds from being handed out to done.",
            _LABEL,
            registry=registry,
            buckets=WORK_BUCKETS,
        )
        self._unfinished = Gauge(
            "mcm_workqueue_unfinished_work_seconds",
            "Seconds of all work in processing, summed: grows while a worker is stuck.",
            _LABEL,
            registry=registry,
        )
        self._longest = Gauge(
            "mcm_workqueue_longest_running_processor_seconds",
            "Seconds the longest work in processing has taken so far.",
            _LABEL,
            registry=registry,
        )
        self._retries = Counter(
            "mcm_workqueue_retries", "Rate-limited adds.", _LABEL, registry=registry
        )
        self._dropped = Counter(
            "mcm_workqueue_delayed_dropped",
            "Delayed keys that a shutdown dropped.",
            _LABEL,
            registry=registry,
        )

    def of_queue(self, name: str, ages: Callable[[], list[float]]) -> OneQueueMetrics:
        """Return the series of the queue ``name``; ``ages`` lists the ages in seconds of all keys
        in processing, and is called at each scrape."""
        self._unfinished.labels(name).set_function(lambda: sum(ages()))
        self._longest.labels(name).set_function(lambda: max(ages(), default=0.0))
        return OneQueueMetrics(
            depth=self._depth.labels(name),
            adds=self._adds.labels(name),
            waited=self._waited.labels(name),
            worked=self._worked.labels(name),
            retries=self._retries.labels(name),
            dropped=self._dropped.labels(name),
        )


@final
class OneQueueMetrics:
    """The series of one queue, looked up once."""

    __slots__ = ("adds", "depth", "dropped", "retries", "waited", "worked")

    def __init__(
        self,
        *,
        depth: Gauge,
        adds: Counter,
        waited: Histogram,
        worked: Histogram,
        retries: Counter,
        dropped: Counter,
    ) -> None:
        self.depth = depth
        self.adds = adds
        self.waited = waited
        self.worked = worked
        self.retries = retries
        self.dropped = dropped
