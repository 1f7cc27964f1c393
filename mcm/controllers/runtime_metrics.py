"""Metrics of the worker runtime, label ``controller``.

======================================  =========  ================================================
name                                    type       meaning
======================================  =========  ================================================
mcm_controller_reconcile_total          counter    finished reconciles, by ``result``: success,
                                                   requeue_after, conflict, error, terminal
mcm_controller_reconcile_errors_total   counter    those with result error or terminal
mcm_controller_reconcile_duration_seconds  histogram  how long each took
mcm_controller_slow_reconciles_total    counter    those that ran past the watchdog's limit
mcm_controller_repeated_writes_total    counter    patches made once too often: the same got nowhere
                                                   before, and is held back for a while after each
mcm_controller_active_workers           gauge      reconciles that run now
mcm_controller_max_workers              gauge      how many may run at once
======================================  =========  ================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from mcm.metrics import RECONCILE_BUCKETS

_LABEL = ("controller",)


class Result(StrEnum):
    """How a reconcile ended."""

    SUCCESS = "success"
    REQUEUE_AFTER = "requeue_after"
    CONFLICT = "conflict"
    ERROR = "error"
    TERMINAL = "terminal"


@final
@dataclass(frozen=True, slots=True)
class OneController:
    """The series of one controller."""

    reconciles: Mapping[Result, Counter]
    errors: Counter
    duration: Histogram
    slow: Counter
    repeated: Counter
    active: Gauge


@final
class ControllerMetrics:
    """The metric families, for any number of controllers. Make one per registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.reconciles = Counter(
            "mcm_controller_reconcile",
            "Finished reconciles by result.",
            ("controller", "result"),
            registry=registry,
        )
        self.errors = Counter(
            "mcm_controller_reconcile_errors",
            "Reconciles that failed, conflicts not counted.",
            _LABEL,
            registry=registry,
        )
        self.duration = Histogram(
            "mcm_controller_reconcile_duration_seconds",
            "Seconds a reconcile took.",
            _LABEL,
            registry=registry,
            buckets=RECONCILE_BUCKETS,
        )
        self.slow = Counter(
            "mcm_controller_slow_reconciles",
            "Reconciles that ran past the watchdog's limit.",
            _LABEL,
            registry=registry,
        )
        self.repeated = Counter(
            "mcm_controller_repeated_writes",
            "Patches made once too often: the same got nowhere before.",
            _LABEL,
            registry=registry,
        )
        self.active = Gauge(
            "mcm_controller_active_workers", "Reconciles that run now.", _LABEL, registry=registry
        )
        self.workers = Gauge(
            "mcm_controller_max_workers",
            "How many reconciles may run at once.",
            _LABEL,
            registry=registry,
        )

    def of_controller(self, controller: str, *, workers: int) -> OneController:
        """Create all series of a controller, so that rates are right from its first failure."""
        self.workers.labels(controller).set(workers)
        return OneController(
            reconciles={
                result: self.reconciles.labels(controller, result.value) for result in Result
            },
            errors=self.errors.labels(controller),
            duration=self.duration.labels(controller),
            slow=self.slow.labels(controller),
            repeated=self.repeated.labels(controller),
            active=self.active.labels(controller),
        )
