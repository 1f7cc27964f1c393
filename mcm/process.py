"""One run of ``mcm run`` as an operating-system process: loop, signals, endpoints, exit code."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from prometheus_client import REGISTRY

from mcm import __version__
from mcm.client.client import Client
from mcm.client.errors import ConfigurationError
from mcm.client.metrics import ClientMetrics
from mcm.clock import Clock, SystemClock
from mcm.configuration.configuration import shown
from mcm.connections import Connections, connect
from mcm.driver import discovery
from mcm.endpoints import Probe, Shown, serving
from mcm.forced_exit import ForcedExit
from mcm.garbage_collector import collect_rarely
from mcm.leaderelection import new_identity
from mcm.lifecycle import uninterrupted
from mcm.logs import Verbosity
from mcm.manager import Manager
from mcm.metrics import once_per_registry
from mcm.options import Options
from mcm.profiling.stalls import Stalls
from mcm.serving_certificate import ServingCertificate
from mcm.tracing import NO_TRACES, Tracer

logger = logging.getLogger(__name__)

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_HURRIED = 130  # the exit code of what was ended by SIGINT, as shells have it
_EXIT_GRACE = 5.0
"""Seconds in which what a driver left behind must have ended."""
_TRACES_WANTED = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_REVIEWS_AT_ONCE, _REVIEWS_PER_SECOND = 4, 20
"""Of tokens of those who ask for metrics: whoever tries many must not load the API server."""


def run_to_completion(main: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Run ``main(stop)`` on uvloop where there is one; SIGINT and SIGTERM set ``stop``.

    A second signal cancels ``main``, for those who cannot wait; SystemExit(130) is raised when it
    has ended. Further ones change nothing: what is left then is bounded.
    """
    collect_rarely()
    stop = asyncio.Event()
    try:
        with (
            ForcedExit(_EXIT_GRACE) as forced_exit,
            asyncio.Runner(loop_factory=_loop_factory()) as runner,
        ):
            runner.run(forced_exit.after(_until_signalled(main, stop)))
    except asyncio.CancelledError:
        raise SystemExit(_HURRIED) from None
    finally:
        if stop.is_set():  # the loop has taken its handlers along: nothing may cut the exit
            for signum in _SIGNALS:
                signal.signal(signum, signal.SIG_IGN)


async def _until_signalled(
    main: Callable[[asyncio.Event], Coroutine[Any, Any, None]], stop: asyncio.Event
) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def on_signal() -> None:
        if not stop.is_set():
            stop.set()
        elif task is not None and not task.cancelling():
            task.cancel()

    for signum in _SIGNALS:
        loop.add_signal_handler(signum, on_signal)
    await main(stop)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    with suppress(ImportError):
        import uvloop

        return uvloop.new_event_loop
    return None


async def run_manager(
    options: Options,
    stop: asyncio.Event,
    *,
    clock: Clock | None = None,
    observe: Callable[[Manager], None] | None = None,
    places: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Connect, serve the endpoints, manage until ``stop``; ``observe`` is shown the manager.

    ``places`` says of each flag that is set where that was done, for ``/configz``.

    Raises ConfigurationError for whatever a user can mend.
    """
    clock = clock or SystemClock()
    provider = discovery.load_provider(options.provider.name)
    connections = connect(options, clock)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(uninterrupted, connections.aclose)
        identity = new_identity()
        tracer = await stack.enter_async_context(_tracing(options, identity, clock))
        manager = Manager(
            options,
            control=connections.control,
            target=connections.target,
            provider=provider,
            clock=clock,
            randomness=random.Random(),
            registry=REGISTRY,
            identity=identity,
            tracer=tracer,
        )
        if observe:
            observe(manager)
        stalls = Stalls(
            clock=clock, registry=REGISTRY, closely=options.profiling.contention_profiling
        )
        stack.enter_context(stalls.watched())
        metrics_url = await stack.enter_async_context(
            _endpoints(manager, options, shown(options, places), connections, stalls, clock)
        )
        await stack.enter_async_context(_webhook(options, clock))
        logger.info(
            "mcm %s: provider %s, namespace %s, metrics on %s",
            __version__,
            options.provider.name,
            options.clusters.namespace,
            metrics_url,
        )
        await manager.run(stop)


def _tracing(options: Options, identity: str, clock: Clock) -> AbstractAsyncContextManager[Tracer]:
    """What traces, if somebody wants traces. Raises ConfigurationError without what it needs."""
    endpoint = options.tracing.otlp_endpoint
    if not endpoint and not any(os.environ.get(name) for name in _TRACES_WANTED):
        return nullcontext(NO_TRACES)
    try:
        from mcm.tracing import exporting
    except ModuleNotFoundError as error:
        missing = f"traces need the extra mcm[tracing] ({error.name} is not installed)"
        if endpoint:
            raise ConfigurationError(f"--otlp-endpoint: {missing}") from None
        # It may have been set for all pods, without a thought of this one.
        logger.warning("OTEL_EXPORTER_OTLP_ENDPOINT is without effect: %s", missing)
        return nullcontext(NO_TRACES)
    return exporting.exporting(
        endpoint,
        version=__version__,
        instance=identity,
        clock=clock,
        metrics=once_per_registry(REGISTRY, exporting.TracingMetrics),
    )


def _endpoints(
    manager: Manager,
    options: Options,
    configuration: Mapping[str, object],
    connections: Connections,
    stalls: Stalls,
    clock: Clock,
) -> AbstractAsyncContextManager[str]:
    def reviewer() -> Client:
        return Client(
            connections.control,
            clock=clock,
            user_agent=f"mcm-metrics-authorization/{__version__}",
            metrics=once_per_registry(REGISTRY, ClientMetrics),
            max_in_flight=_REVIEWS_AT_ONCE,
            qps=_REVIEWS_PER_SECOND,
            burst=2 * _REVIEWS_PER_SECOND,
        )

    pages = Shown(
        alive=Probe(problems=manager.alive, bad="Unhealthy"),
        ready=Probe(problems=manager.ready, checks=manager.mirrored, bad="Not ready"),
        fleet=manager.fleet.exposition,
        configuration=configuration,
        verbosity=Verbosity(options.logging.verbosity),
        stalls=stalls,
    )
    return serving(
        pages,
        options.endpoints,
        options.profiling,
        reviewer=reviewer,
        registry=REGISTRY,
        clock=clock,
    )


def _webhook(options: Options, clock: Clock) -> AbstractAsyncContextManager[object]:
    """The validating webhook, if one is wanted: it answers whether we lead or not."""
    if not options.webhook.port:
        return nullcontext()
    # Most managers have none.
    from mcm.webhook import server as webhook_server
    from mcm.webhook.metrics import WebhookMetrics

    metrics = once_per_registry(REGISTRY, WebhookMetrics)
    folder = Path(options.webhook.cert_dir)
    try:
        certificate = ServingCertificate(
            folder, server="the webhook", clock=clock, rotations=metrics.rotations
        )
    except ConfigurationError as error:
        raise ConfigurationError(f"--webhook-cert-dir: {error}") from None
    app = webhook_server.build_app(max_replicas=options.settings.max_replicas, metrics=metrics)
    return webhook_server.serve(
        app,
        certificate,
        address=options.endpoints.address,
        port=options.webhook.port,
        clock=clock,
    )
