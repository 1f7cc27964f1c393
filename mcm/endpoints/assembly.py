"""What one process serves, on which ports and to whom, as its options say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import final

from prometheus_client import CollectorRegistry, Counter

from mcm.client.errors import ConfigurationError
from mcm.client.verbs import Carrier
from mcm.clock import Clock
from mcm.endpoints import log_level
from mcm.endpoints.authorization import AuthorizationMetrics, TokenAuthorization
from mcm.endpoints.configuration import configuration_page
from mcm.endpoints.exposition import Exposition
from mcm.endpoints.log_level import log_level_page
from mcm.endpoints.metrics import metrics_page
from mcm.endpoints.probes import Probe
from mcm.endpoints.routes import Access, Guard, Route, app_of
from mcm.endpoints.server import serve
from mcm.logs import Verbosity
from mcm.metrics import once_per_registry
from mcm.options import Endpoints, Profiling
from mcm.profiling.stalls import Stalls
from mcm.serving_certificate import ServingCertificate


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the pages show of the process: its probes, its metrics, its options, its log level, and
    in what its loop stands still."""

    alive: Probe
    ready: Probe
    fleet: Exposition
    configuration: Mapping[str, object]
    verbosity: Verbosity
    stalls: Stalls


@final
class EndpointMetrics:
    """``result`` is taken or refused."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.rotations = Counter(
            "mcm_endpoints_certificate_rotations_total",
            "Looks at the certificate files of the metrics' port that found another pair.",
            ("result",),
            registry=registry,
        )


@asynccontextmanager
async def serving(
    shown: Shown,
    options: Endpoints,
    profiling: Profiling,
    *,
    reviewer: Callable[[], Carrier],
    registry: CollectorRegistry,
    clock: Clock,
) -> AsyncIterator[str]:
    """Serve while the context lasts; yields the URL of the metrics. ``reviewer`` makes the client
    for reviews of tokens. Raises ConfigurationError for a port or certificate that cannot be had.
    """
    certificate = _certificate(options, registry, clock)
    guard: Guard | None = None
    if options.metrics_authorization:
        guard = TokenAuthorization(
            reviewer(),
            clock=clock,
            metrics=once_per_registry(registry, AuthorizationMetrics),
            audiences=options.metrics_token_audiences,
        )
    routes = tuple(_routes(shown, profiling, registry, clock))
    probes: tuple[tuple[str, Probe], ...] = (("/healthz", shown.alive), ("/readyz", shown.ready))
    address, port = options.address, options.metrics_port or options.port
    async with AsyncExitStack() as stack:
        if options.metrics_port:
            await stack.enter_async_context(
                serve(app_of(probes=probes), address=address, port=options.port, clock=clock)
            )
            probes = ()
        flag = "--metrics-port" if options.metrics_port else "--port"
        app = app_of(routes, probes=probes, guard=guard)
        await stack.enter_async_context(
            serve(app, address=address, port=port, clock=clock, certificate=certificate, flag=flag)
        )
        host = f"[{address}]" if ":" in address else address
        yield f"{'https' if certificate else 'http'}://{host}:{port}/metrics"


def _routes(
    shown: Shown, profiling: Profiling, registry: CollectorRegistry, clock: Clock
) -> Iterable[Route]:
    yield Route(path="/metrics", page=metrics_page(shown.fleet))
    yield Route(path="/configz", page=configuration_page(shown.configuration))
    yield Route(
        path=log_level.PATH,
        page=log_level_page(lambda: shown.verbosity.number, shown.verbosity.change),
        methods=log_level.METHODS,
        access=Access.INSIDE,
    )
    if profiling.profiling:
        from mcm.endpoints.profiling import ProfilingPages  # most processes need none of it

        stalls = shown.stalls if profiling.contention_profiling else None
        pages = ProfilingPages(clock=clock, stalls=stalls).pages()
        for path, page in pages.items():
            yield Route(path=path, page=page, methods=("GET",), access=Access.INSIDE)


def _certificate(
    options: Endpoints, registry: CollectorRegistry, clock: Clock
) -> ServingCertificate | None:
    if not options.metrics_tls_cert_dir:
        return None
    rotations = once_per_registry(registry, EndpointMetrics).rotations
    folder = Path(options.metrics_tls_cert_dir)
    try:
        return ServingCertificate(folder, server="/metrics", clock=clock, rotations=rotations)
    except ConfigurationError as error:
        raise ConfigurationError(f"--metrics-tls-cert-dir: {error}") from None
