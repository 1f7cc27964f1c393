"""The oracle: all families collected anew from the stores, by the metrics library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import T
from mcm.controllers.fleet_metrics.families import DEPLOYMENT_KIND, MACHINE_KIND, SET_KIND, Kind
from mcm.informers.factory import InformerFactory
from mcm.informers.store import Store


@final
class FleetCollector(Collector):
    """Register with a ``CollectorRegistry``; holds the factory whose stores it reads."""

    def __init__(self, informers: InformerFactory) -> None:
        self._machines = informers.store(MACHINES)
        self._sets = informers.store(MACHINE_SETS)
        self._deployments = informers.store(MACHINE_DEPLOYMENTS)

    def describe(self) -> Iterable[Metric]:
        """Say nothing beforehand: registering must not walk the stores."""
        return ()

    def collect(self) -> Iterator[Metric]:
        yield from _families(MACHINE_KIND, self._machines)
        yield from _families(SET_KIND, self._sets)
        yield from _families(DEPLOYMENT_KIND, self._deployments)


def _families(kind: Kind[T], store: Store[T]) -> Iterator[Metric]:
    yield GaugeMetricFamily(kind.count, f"Number of {kind.plural}.", value=len(store))
    for family in kind.families:
        labels = ("name", "namespace", *family.labels)
        shown = GaugeMetricFamily(family.name, family.documentation, labels=labels)
        for obj in store.list():
            meta = obj.metadata
            for extra, value in family.samples(obj):
                assert set(extra) == set(family.labels)
                shown.add_metric(
                    (meta.name, meta.namespace, *(extra[n] for n in family.labels)), value
                )
        yield shown
