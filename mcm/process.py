"""One run of ``mcm run`` as an operating-system process: loop, signals, endpoints, exit code."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import signal
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from prometheus_client import REGISTRY

from mcm import __version__, endpoints
from mcm.client.errors import ConfigurationError
from mcm.clock import Clock, SystemClock
from mcm.connections import connect
from mcm.driver import discovery
from mcm.forced_exit import ForcedExit
from mcm.leaderelection import new_identity
from mcm.lifecycle import uninterrupted
from mcm.manager import Manager
from mcm.metrics import once_per_registry
from mcm.options import Options
from mcm.webhook import server as webhook_server
from mcm.webhook.certificates import ServingCertificate
from mcm.webhook.metrics import WebhookMetrics

logger = logging.getLogger(__name__)

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_HURRIED = 130  # the exit code of what was ended by SIGINT, as shells have it
_EXIT_GRACE = 5.0
"""Seconds in which what a driver left behind must have ended."""


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


def collect_rarely() -> None:
    """Let the garbage collector look through our mirrors seldom.

    They are large, live long and hold no cycles. With Python's defaults a busy watch spends a
    sixth of its time on looking through them again (measured in ``bench/informer.py``).
    """
    gc.set_threshold(50_000, 20, 50)


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
) -> None:
    """Connect, serve the endpoints, manage until ``stop``; ``observe`` is shown the manager.

    Raises ConfigurationError for whatever a user can mend.
    """
    clock = clock or SystemClock()
    provider = discovery.load_provider(options.provider)
    connections = connect(options, clock)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(uninterrupted, connections.aclose)
        manager = Manager(
            options,
            control=connections.control,
            target=connections.target,
            provider=provider,
            clock=clock,
            randomness=random.Random(),
            registry=REGISTRY,
            identity=new_identity(),
        )
        if observe:
            observe(manager)
        app = endpoints.build_app(
            alive=manager.alive,
            ready=manager.ready,
            configuration=asdict(options),
            fleet=manager.fleet.exposition,
        )
        await stack.enter_async_context(
            endpoints.serve(app, address=options.address, port=options.port)
        )
        await stack.enter_async_context(_webhook(options, clock))
        logger.info(
            "mcm %s: provider %s, namespace %s, metrics on http://%s:%d/metrics",
            __version__,
            options.provider,
            options.namespace,
            options.address,
            options.port,
        )
        await manager.run(stop)


def _webhook(options: Options, clock: Clock) -> AbstractAsyncContextManager[object]:
    """The validating webhook, if one is wanted: it answers whether we lead or not."""
    if not options.webhook.port:
        return nullcontext()
    metrics = once_per_registry(REGISTRY, WebhookMetrics)
    folder = Path(options.webhook.cert_dir)
    try:
        certificate = ServingCertificate(folder, clock=clock, metrics=metrics)
    except ConfigurationError as error:
        raise ConfigurationError(f"--webhook-cert-dir: {error}") from None
    app = webhook_server.build_app(max_replicas=options.settings.max_replicas, metrics=metrics)
    return webhook_server.serve(
        app, certificate, address=options.address, port=options.webhook.port, clock=clock
    )
