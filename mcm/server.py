"""The process's own HTTP endpoints: metrics, liveness, readiness, configuration.

``/healthz`` says the event loop turns and no controller died; ``/readyz`` says the mirror is
synced and every watch was heard from lately, naming what is not.
"""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import orjson
from aiohttp import web
from prometheus_async.aio.web import server_stats

from mcm.client.errors import ConfigurationError

Check = Callable[[], Mapping[str, str]]
"""Returns what is wrong, by component; empty when all is well."""


def build_app(
    *, alive: Check, ready: Check, configuration: Mapping[str, object]
) -> web.Application:
    """Return the application; it holds no state but the callables it asks."""
    body = orjson.dumps(configuration, default=str, option=orjson.OPT_INDENT_2)

    async def configz(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    app = web.Application()
    app.router.add_get("/metrics", server_stats)
    app.router.add_get("/healthz", _probe(alive, "OK", "Unhealthy"))
    app.router.add_get("/readyz", _probe(ready, "OK", "Not ready"))
    app.router.add_get("/configz", configz)
    return app


def _probe(check: Check, good: str, bad: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        problems = check()
        if not problems:
            return web.Response(text=good)
        lines = [bad, *(f"{name}: {why}" for name, why in sorted(problems.items()))]
        return web.Response(status=500, text="\n".join(lines) + "\n")

    return answer


@asynccontextmanager
async def serve(app: web.Application, *, address: str, port: int) -> AsyncIterator[None]:
    """Listen while the context lasts. Raises ConfigurationError if the port cannot be had."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, address, port).start()
        except OSError as error:
            raise ConfigurationError(_cannot_listen(address, port, error)) from error
        yield
    finally:
        await runner.cleanup()


def _cannot_listen(address: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"--port: {address}:{port} is in use by another process; choose another port"
    return f"--address/--port: cannot listen on {address}:{port}: {error.strerror or error}"
