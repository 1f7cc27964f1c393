"""What the metrics of all rooms share: bucket layouts, families per registry, plain counters.

There is no global registry here: whoever composes the program makes one and passes it on. A
component's metrics are one object for a registry; labels tell the component's instances apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar, final

from prometheus_client import CollectorRegistry

from mcm.prometheus_text import head, line

M = TypeVar("M")

_FAMILIES: Final = "_mcm_families"
"""Where a registry, which refuses a second family of the same name, keeps the first: on itself, so
that both are gone together, although families may know whom they are registered with."""


def once_per_registry(registry: CollectorRegistry, make: Callable[[CollectorRegistry], M]) -> M:
    """Return ``make(registry)``; for the same two arguments always the same object."""
    families: dict[object, object] = vars(registry).setdefault(_FAMILIES, {})
    if make not in families:
        families[make] = make(registry)
    return families[make]  # type: ignore[return-value] # what this very make returned


@final
class PlainCounter:
    """A counter under just the name it is given: the library would append ``_total``.

    Dashboards made for the Go original know names without that. OpenMetrics does not: there its
    type is unknown, as Go's own library has it. Make one per registry and name.
    """

    def __init__(
        self, name: str, documentation: str, labels: Sequence[str], *, registry: CollectorRegistry
    ) -> None:
        self.name = name
        self._documentation = documentation
        self._labels = tuple(labels)
        self._values: dict[tuple[str, ...], float] = {}
        plain_counters_of(registry).append(self)

    def inc(self, *labels: str, by: float = 1.0) -> None:
        """Count; by 0 only makes the series, so that its rate is right from the first one on."""
        if len(labels) != len(self._labels):
            raise ValueError(f"{self.name} has the labels {self._labels}, not {labels}")
        self._values[labels] = self._values.get(labels, 0.0) + by

    def value(self, *labels: str) -> float:
        return self._values.get(labels, 0.0)

    def remove(self, *labels: str) -> None:
        """Forget a series; one that is not there needs no forgetting."""
        self._values.pop(labels, None)

    def series(self) -> Sequence[tuple[str, ...]]:
        """Return the label values of all series."""
        return tuple(self._values)

    def text(self, *, openmetrics: bool) -> str:
        kind = "unknown" if openmetrics else "counter"
        lines = (
            line(self.name, dict(zip(self._labels, labels, strict=True)), value)
            for labels, value in self._values.items()
        )
        return head(self.name, kind, self._documentation) + "".join(lines)


def plain_counters_of(registry: CollectorRegistry) -> list[PlainCounter]:
    """Return those that were made for ``registry``."""
    return once_per_registry(registry, _no_counters)


def _no_counters(_: CollectorRegistry) -> list[PlainCounter]:
    return []


def exponential_buckets(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return ``count`` upper bounds (seconds), each ``factor`` times the one before."""
    if start <= 0 or factor <= 1 or count < 1:
        raise ValueError(f"need start > 0, factor > 1, count >= 1: {start}, {factor}, {count}")
    return tuple(start * factor**n for n in range(count))


WORK_BUCKETS: Final = exponential_buckets(1e-8, 10.0, 10)
"""10 ns to 10 s, as every Kubernetes work queue has them: dashboards rely on it."""

RECONCILE_BUCKETS: Final = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
)
"""1 ms (a pass that finds nothing to do) to 5 min (a provider that hangs)."""

REQUEST_BUCKETS: Final = exponential_buckets(0.001, 2.0, 16)
"""1 ms to about 33 s: a request to an API server, whose time limit is 30 s."""
