"""The fleet in numbers, kept as text: a scrape renders what changed since the last one, no more.

Ten thousand machines are a hundred thousand lines, which the metrics library takes over a second to
make, in one piece; nothing else of the process would run meanwhile. So every object has its lines
kept, a change only marks them as old, and a scrape renders the marked ones in slices between which
the loop turns.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Final, Generic, final

from prometheus_client import CollectorRegistry, Counter

from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import T
from mcm.clock import Clock
from mcm.controllers.fleet_metrics.families import (
    DEPLOYMENT_KIND,
    MACHINE_KIND,
    SET_KIND,
    Kind,
)
from mcm.informers.change import Change
from mcm.informers.factory import InformerFactory
from mcm.informers.informer import Informer
from mcm.metrics import once_per_registry
from mcm.prometheus_text import head, line
from mcm.rate_limited_log import RateLimitedLog

logger = logging.getLogger(__name__)

SLICE: Final = 100
"""How many objects are rendered in one go: a few milliseconds' worth."""


@final
class FleetMetrics:
    """Listens to the machines, sets and deployments of ``informers`` from now on."""

    def __init__(
        self, informers: InformerFactory, *, clock: Clock, registry: CollectorRegistry
    ) -> None:
        self._clock = clock
        failures = once_per_registry(registry, _failures)
        log = RateLimitedLog(logger, clock)
        self._kept = (
            _Kept(informers.informer(MACHINES), MACHINE_KIND, failures, log),
            _Kept(informers.informer(MACHINE_SETS), SET_KIND, failures, log),
            _Kept(informers.informer(MACHINE_DEPLOYMENTS), DEPLOYMENT_KIND, failures, log),
        )

    async def exposition(self) -> Sequence[bytes]:
        """Return the text of all families in Prometheus's format, which holds for OpenMetrics, too.

        Lets the loop turn after each slice. What changes meanwhile may or may not be in it.
        """
        for kept in self._kept:
            for _ in range(0, kept.outdated, SLICE):
                kept.render(SLICE)
                await self._clock.sleep(0)
        return [text for kept in self._kept for text in kept.text()]


def _failures(registry: CollectorRegistry) -> Counter:
    return Counter(
        "mcm_misc_scrape_failure",
        "Objects that could not be shown, by kind and the Go process that shows them.",
        ("kind", "binary"),
        registry=registry,
    )


@final
class _Kept(Generic[T]):
    """The lines of every object of one resource. What is gone leaves none behind."""

    def __init__(
        self, informer: Informer[T], kind: Kind[T], failures: Counter, log: RateLimitedLog
    ) -> None:
        self._store = informer.store
        self._kind = kind
        self._failures = failures.labels(kind.scraped_as, kind.binary)
        self._log = log
        self._lines: list[dict[str, bytes]] = [{} for _ in kind.families]
        self._outdated: set[str] = set()
        informer.add_handler(self._note)

    @property
    def outdated(self) -> int:
        """How many objects are to be rendered."""
        return len(self._outdated)

    def _note(self, change: Change[T]) -> None:
        if not change.resync:
            self._outdated.add(change.object.metadata.key)

    def render(self, limit: int) -> None:
        """Bring the lines of up to ``limit`` objects up to date."""
        for _ in range(min(limit, len(self._outdated))):
            key = self._outdated.pop()
            obj = self._store.get(key)
            try:
                texts = self._texts(obj) if obj is not None else None
            except Exception as error:
                # One object that makes no sense costs its own lines, not the whole scrape.
                self._failures.inc()
                self._log.tell(self._kind.plural, f"{key} cannot be shown: {error!r}", error=error)
                texts = None
            for number, lines in enumerate(self._lines):
                if texts is None:
                    lines.pop(key, None)
                else:
                    lines[key] = texts[number]

    def _texts(self, obj: T) -> list[bytes]:
        meta = obj.metadata
        identity = {"name": meta.name, "namespace": meta.namespace}
        return [
            "".join(
                line(family.name, {**labels, **identity}, value)
                for labels, value in family.samples(obj)
            ).encode()
            for family in self._kind.families
        ]

    def text(self) -> Iterator[bytes]:
        """Return one text for each family; the objects' number first."""
        count = self._kind.count
        number = line(count, {}, len(self._store))
        yield (head(count, "gauge", f"Number of {self._kind.plural}.") + number).encode()
        for family, lines in zip(self._kind.families, self._lines, strict=True):
            top = head(family.name, "gauge", family.documentation)
            yield b"".join((top.encode(), *lines.values()))
