"""What drains came to, in numbers: how long pods and volumes took, what was asked and answered.

====================================  =========  ================================================
name                                  type       meaning
====================================  =========  ================================================
mcm_drain_requests_total              counter    requests for a pod, by ``step`` and ``answer``
mcm_drain_leave_duration_seconds      histogram  from the accepted request until the pod was gone
mcm_drain_hold_duration_seconds       histogram  from the first refusal until a request was accepted
mcm_drain_detach_duration_seconds     histogram  from a pod's end until its volumes left the Node
mcm_drain_reattach_duration_seconds   histogram  from there until they were attached elsewhere
mcm_drain_handovers_total             counter    volumes' ways to another Node, by ``outcome``
mcm_drains_under_way                  gauge      drains of this process, by ``purpose``
mcm_drain_pods                        gauge      pods that these wait for, by ``cause``
====================================  =========  ================================================

No label names a pod, a Node or a machine: their number must not depend on the fleet's. The gauges
are counted at a scrape.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final, final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from mcm.drain.execution import Answered
from mcm.drain.request import DrainRequest, Purpose
from mcm.drain.result import Cause
from mcm.drain.volumes import Handover, Stage
from mcm.drain.watch import DrainWatch
from mcm.metrics import once_per_registry

_BUCKETS: Final = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 3600, 7200)
"""Seconds, from a pod without grace to the default of the drain timeout."""

Watches = Callable[[], Iterable[DrainWatch]]


@final
class DrainMetrics(Collector):
    """One object a registry; also who is told of answers and handovers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def histogram(what: str, text: str) -> Histogram:
            name = f"mcm_drain_{what}_duration_seconds"
            return Histogram(name, text, buckets=_BUCKETS, registry=registry)

        self._leave = histogram("leave", "Seconds from the accepted request to the pod's end.")
        self._hold = histogram("hold", "Seconds from the first refusal to the accepted request.")
        self._detach = histogram("detach", "Seconds from a pod's end until its volumes left.")
        self._reattach = histogram("reattach", "Seconds until volumes were attached elsewhere.")
        self._requests = Counter(
            "mcm_drain_requests",
            "Requests for a pod to go, by how hard they were and what was answered.",
            ("step", "answer"),
            registry=registry,
        )
        self._handovers = Counter(
            "mcm_drain_handovers",
            "Volumes on their way to another Node, by what became of that.",
            ("outcome",),
            registry=registry,
        )
        self._watches: list[Watches] = []
        registry.register(self)

    @classmethod
    def of(cls, registry: CollectorRegistry) -> DrainMetrics:
        return once_per_registry(registry, cls)

    def show(self, watches: Watches) -> None:
        """Count the drains that ``watches`` returns at each scrape."""
        self._watches.append(watches)

    def answered(self, answered: Answered) -> None:
        self._requests.labels(
            _label(answered.action.step.name), _label(answered.answer.kind.name)
        ).inc()

    def left(self, seconds: float) -> None:
        self._leave.observe(max(0.0, seconds))

    def held(self, seconds: float) -> None:
        self._hold.observe(max(0.0, seconds))

    def handed_over(self, request: DrainRequest, handover: Handover) -> None:
        """Count a handover that is over, as far as it came."""
        attached = handover.stage is Stage.ATTACHED
        outcome = "attached" if attached else "late" if handover.late else "skipped"
        self._handovers.labels(outcome).inc()
        gone, detached = handover.gone_at, handover.detached_at
        if gone is not None and detached is not None:
            self._detach.observe(_seconds(gone, detached))
        if attached and detached is not None:
            self._reattach.observe(_seconds(detached, handover.since))

    # ---- at a scrape -----------------------------------------------------------------------------

    def describe(self) -> Iterable[Metric]:
        return self.collect()

    def collect(self) -> Iterable[Metric]:
        drains: Tally[Purpose] = Tally()
        pods: Tally[Cause] = Tally()
        for watches in self._watches:
            for watch in watches():
                drains[watch.purpose] += 1
                pods.update(pod.cause for pod in watch.pods)
        yield _gauge("mcm_drains_under_way", "Drains under way.", "purpose", Purpose, drains)
        yield _gauge("mcm_drain_pods", "Pods that drains wait for.", "cause", Cause, pods)


def _gauge(
    name: str,
    text: str,
    label: str,
    values: Iterable[Purpose] | Iterable[Cause],
    counts: Tally[Purpose] | Tally[Cause],
) -> Metric:
    family = GaugeMetricFamily(name, text, labels=(label,))
    for value in values:
        family.add_metric([_label(value.name)], counts[value])  # type: ignore[index]
    return family


def _label(name: str) -> str:
    return name.lower()


def _seconds(start: datetime, end: datetime) -> float:
    return max(0.0, (end - start).total_seconds())
