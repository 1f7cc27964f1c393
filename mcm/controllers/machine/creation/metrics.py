"""How many machines wait because their provider refused others of their class, at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import final

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from mcm.metrics import once_per_registry


@final
class BackoffMetrics(Collector):
    """One object a registry. ``error_code`` is what the provider answered last."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._held_back: list[Callable[[], Mapping[tuple[str, str, str], int]]] = []
        registry.register(self)

    @classmethod
    def of(cls, registry: CollectorRegistry) -> BackoffMetrics:
        return once_per_registry(registry, cls)

    def show(self, held_back: Callable[[], Mapping[tuple[str, str, str], int]]) -> None:
        """Show what ``held_back`` returns: machines, by key of the class, zone and code."""
        self._held_back.append(held_back)

    def collect(self) -> Iterable[Metric]:
        family = GaugeMetricFamily(
            "mcm_machine_creation_held_back_machines",
            "Machines that wait, as the provider refused others of their class and zone.",
            labels=("namespace", "machine_class", "zone", "error_code"),
        )
        for held_back in self._held_back:
            for (class_key, zone, code), count in held_back().items():
                namespace, _, name = class_key.partition("/")
                family.add_metric((namespace, name, zone, code), count)
        yield family
