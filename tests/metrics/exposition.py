"""What a whole process shows whose manager is a simulation's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from aiohttp.test_utils import make_mocked_request
from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
)

from mcm.endpoints.assembly import EndpointMetrics
from mcm.endpoints.authorization import AuthorizationMetrics
from mcm.endpoints.exposition import Rendered, render
from mcm.metrics import once_per_registry
from mcm.profiling.stalls import LoopMetrics
from mcm.sharding.metrics import ShardMetrics
from mcm.simulation.harness import Simulation
from mcm.webhook.metrics import WebhookMetrics


async def shown(sim: Simulation, *, accept: str = "") -> Rendered:
    """Return what ``/metrics`` of a process with the simulation's manager answers."""
    fleet = await sim.manager.fleet.exposition()
    with process_registry(sim.registry):  # nothing in here lets another task run
        rendered = await render(make_mocked_request("GET", "/metrics", {"Accept": accept}))
    return Rendered(rendered.content_type, (*fleet, *rendered.pieces))


@contextmanager
def process_registry(registry: CollectorRegistry) -> Iterator[None]:
    """Have ``registry`` stand for the process's while the context lasts."""
    with (
        patch("prometheus_async.aio.web.REGISTRY", registry),
        patch("mcm.endpoints.exposition.REGISTRY", registry),
    ):
        yield


def complete(sim: Simulation) -> None:
    """Add to the simulation's registry what a process has beside its manager."""
    beside = (LoopMetrics, WebhookMetrics, EndpointMetrics, AuthorizationMetrics, ShardMetrics)
    for families in beside:
        once_per_registry(sim.registry, families)
    GCCollector(registry=sim.registry)
    PlatformCollector(registry=sim.registry)
    ProcessCollector(registry=sim.registry)
