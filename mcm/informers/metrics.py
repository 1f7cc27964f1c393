"""What the informers of a registry show.

===================================  =======  ====================================================
name                                 type     meaning
===================================  =======  ====================================================
mcm_reflector_lists_total            counter  lists asked for: each page, or a stream
mcm_reflector_list_duration_seconds  summary  how long complete lists took
mcm_reflector_items_per_list         summary  how many objects these had
mcm_reflector_relists_total          counter  complete lists after the first
mcm_reflector_watches_total          counter  requests for a watch
mcm_reflector_short_watches_total    counter  watches that ended early and without an event
mcm_reflector_watch_duration_seconds summary  how long watches lasted
mcm_reflector_items_per_watch        summary  how many events these brought
mcm_reflector_received_bytes_total   counter  what watches brought, in bytes
mcm_reflector_last_resource_version  gauge    version that the mirror is at
mcm_reflector_silent_watches_total   counter  watches given up because not a byte came
mcm_reflector_events_total           counter  watch events, by ``type``
mcm_reflector_failures_total         counter  failed requests and streams, by ``error``
mcm_reflector_unreadable_total       counter  objects that could not be decoded
mcm_reflector_last_heard_seconds     gauge    age of the last sign of the server
mcm_informer_handler_errors_total    counter  exceptions of handlers
mcm_informer_synced                  gauge    1 once the first list has been handed to all handlers
mcm_store_objects                    gauge    objects in the mirror
mcm_store_unreadable                 gauge    objects whose newest state could not be decoded
mcm_store_index_errors_total         counter  exceptions of index functions
===================================  =======  ====================================================

All have the labels ``cluster``, ``resource`` and ``namespace`` (empty: all), and ``name``, which is
the first two of these: what Go's libraries tell reflectors apart by. The numbers are plain integers
of the informers, read at a scrape: an event costs no metric call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, final

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    SummaryMetricFamily,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from mcm.api.meta import KubeObject
from mcm.clock import Clock
from mcm.informers.informer import Informer
from mcm.metrics import once_per_registry

AnyInformer: TypeAlias = Informer[KubeObject]

_LABELS = ("name", "cluster", "resource", "namespace")

_COUNTERS: tuple[tuple[str, str, Callable[[AnyInformer], int]], ...] = (
    ("mcm_reflector_lists", "Lists asked for: each page, or a stream.", lambda i: i.stats.lists),
    ("mcm_reflector_relists", "Complete lists after the first.", lambda i: i.stats.relists),
    ("mcm_reflector_watches", "Watches requested.", lambda i: i.stats.watches),
    (
        "mcm_reflector_short_watches",
        "Watches that ended early and without an event.",
        lambda i: i.stats.short_watches,
    ),
    (
        "mcm_reflector_silent_watches",
        "Watches given up as not a byte came.",
        lambda i: i.stats.silent_watches,
    ),
    (
        "mcm_reflector_unreadable",
        "Objects that could not be decoded.",
        lambda i: i.stats.unreadable,
    ),
    (
        "mcm_reflector_received_bytes",
        "Bytes that watches brought.",
        lambda i: i.stats.received_bytes,
    ),
    ("mcm_informer_handler_errors", "Exceptions of handlers.", lambda i: i.stats.handler_errors),
    (
        "mcm_store_index_errors",
        "Exceptions of index functions.",
        lambda i: i.store.index_errors,
    ),
)


_SUMMARIES: tuple[tuple[str, str, Callable[[AnyInformer], tuple[int, float]]], ...] = (
    (
        "mcm_reflector_list_duration_seconds",
        "Seconds that complete lists took.",
        lambda i: (i.stats.listed.count, i.stats.listed.seconds),
    ),
    (
        "mcm_reflector_items_per_list",
        "Objects of complete lists.",
        lambda i: (i.stats.listed.count, i.stats.listed.items),
    ),
    (
        "mcm_reflector_watch_duration_seconds",
        "Seconds that watches lasted which have ended.",
        lambda i: (i.stats.watched.count, i.stats.watched.seconds),
    ),
    (
        "mcm_reflector_items_per_watch",
        "Events of watches which have ended.",
        lambda i: (i.stats.watched.count, i.stats.watched.items),
    ),
)


def collector_of(registry: CollectorRegistry) -> InformerCollector:
    """Return the one collector of ``registry``, made at the first call."""
    return once_per_registry(registry, _registered)


def _registered(registry: CollectorRegistry) -> InformerCollector:
    collector = InformerCollector()
    registry.register(collector)
    return collector


@final
class InformerCollector(Collector):
    """Reads the numbers of all informers of some clusters."""

    def __init__(self) -> None:
        self._clusters: list[tuple[str, Callable[[], Sequence[AnyInformer]], Clock]] = []

    def add(
        self, cluster: str, informers: Callable[[], Sequence[AnyInformer]], *, clock: Clock
    ) -> None:
        """Show what ``informers`` returns at each scrape under the name ``cluster``."""
        self._clusters.append((cluster, informers, clock))

    def describe(self) -> Iterable[Metric]:
        return self.collect()

    def collect(self) -> Iterable[Metric]:
        yield from self._counters()
        yield from self._summaries()
        yield from self._gauges()
        yield self._by_kind(
            "mcm_reflector_events", "Watch events.", "type", lambda i: i.stats.events
        )
        yield self._by_kind(
            "mcm_reflector_failures",
            "Failed requests and streams.",
            "error",
            lambda i: i.stats.failures,
        )

    def _counters(self) -> Iterable[Metric]:
        for name, text, read in _COUNTERS:
            family = CounterMetricFamily(name, text, labels=_LABELS)
            for labels, informer, _ in self._informers():
                family.add_metric(labels, read(informer))
            yield family

    def _summaries(self) -> Iterable[Metric]:
        for name, text, read in _SUMMARIES:
            family = SummaryMetricFamily(name, text, labels=_LABELS)
            for labels, informer, _ in self._informers():
                count, total = read(informer)
                family.add_metric(labels, count_value=count, sum_value=total)
            yield family

    def _gauges(self) -> Iterable[Metric]:
        objects = GaugeMetricFamily("mcm_store_objects", "Objects in the mirror.", labels=_LABELS)
        unreadable = GaugeMetricFamily(
            "mcm_store_unreadable", "Objects whose newest state is unreadable.", labels=_LABELS
        )
        synced = GaugeMetricFamily("mcm_informer_synced", "First list done.", labels=_LABELS)
        heard = GaugeMetricFamily(
            "mcm_reflector_last_heard_seconds", "Age of the server's last sign.", labels=_LABELS
        )
        version = GaugeMetricFamily(
            "mcm_reflector_last_resource_version",
            "Version that the mirror is at, where it is a number.",
            labels=_LABELS,
        )
        for labels, informer, clock in self._informers():
            if (at := informer.store.resource_version).isdecimal():
                version.add_metric(labels, float(at))
            objects.add_metric(labels, len(informer.store))
            unreadable.add_metric(labels, len(informer.store.unreadable))
            synced.add_metric(labels, informer.synced)
            if informer.last_heard is not None:
                heard.add_metric(labels, clock.monotonic() - informer.last_heard)
        return (objects, unreadable, synced, heard, version)

    def _by_kind(
        self, name: str, text: str, label: str, read: Callable[[AnyInformer], dict[str, int]]
    ) -> Metric:
        family = CounterMetricFamily(name, text, labels=(*_LABELS, label))
        for labels, informer, _ in self._informers():
            for kind, count in sorted(read(informer).items()):
                family.add_metric([*labels, kind], count)
        return family

    def _informers(self) -> Iterable[tuple[list[str], AnyInformer, Clock]]:
        for cluster, informers, clock in self._clusters:
            for informer in informers():
                resource = informer.resource.name
                own = [f"{cluster}/{resource}", cluster, resource, informer.namespace]
                yield own, informer, clock
