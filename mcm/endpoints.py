"""The process's own HTTP endpoints: metrics, liveness, readiness, configuration.

``/healthz`` says the event loop turns and no controller died; ``/readyz`` says the mirror is
synced and every watch was heard from lately, naming what is not.
"""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import cast

import orjson
from aiohttp import web
from prometheus_async.aio.web import server_stats

from mcm.client.errors import ConfigurationError
from mcm.clock import Clock, SystemClock
from mcm.http_server import Handler, Limits, listening

Check = Callable[[], Mapping[str, str]]
"""Returns what is wrong, by component; empty when all is well."""

Exposition = Callable[[], Awaitable[Sequence[bytes]]]
"""Returns metric families as text, in pieces, in Prometheus's format."""


def build_app(
    *,
    alive: Check,
    ready: Check,
    configuration: Mapping[str, object],
    fleet: Exposition | None = None,
) -> Handler:
    """Return what answers requests; it holds no state but the callables it asks.

    ``/metrics`` shows ``fleet`` and then the process's registry, which is rendered in one piece and
    so must hold no series for each object.
    """
    body = orjson.dumps(configuration, default=str, option=orjson.OPT_INDENT_2)

    async def configz(_: web.BaseRequest) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    pages: Mapping[str, Handler] = {
        "/metrics": _metrics(fleet),
        "/healthz": _probe(alive, "OK", "Unhealthy"),
        "/readyz": _probe(ready, "OK", "Not ready"),
        "/configz": configz,
    }

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        page = pages.get(request.path)
        if page is None:
            return web.Response(status=404, text="404: Not Found")
        if request.method not in ("GET", "HEAD"):
            allowed = {"Allow": "GET,HEAD"}
            return web.Response(status=405, text="405: Method Not Allowed", headers=allowed)
        return await page(request)

    return answer


def _metrics(fleet: Exposition | None) -> Handler:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        # It reads nothing of the request but a header.
        rendered: web.Response = await server_stats(cast("web.Request", request))
        # The registry comes last, as OpenMetrics ends with a mark that is set behind it.
        parts = [*(await fleet() if fleet is not None else ()), cast("bytes", rendered.body)]
        response = web.StreamResponse(headers={"Content-Type": rendered.headers["Content-Type"]})
        response.content_length = sum(map(len, parts))
        await response.prepare(request)
        if request.method != "HEAD":
            for part in parts:
                await response.write(part)
        await response.write_eof()
        return response

    return answer


def _probe(check: Check, good: str, bad: str) -> Handler:
    async def answer(_: web.BaseRequest) -> web.Response:
        problems = check()
        if not problems:
            return web.Response(text=good)
        lines = [bad, *(f"{name}: {why}" for name, why in sorted(problems.items()))]
        return web.Response(status=500, text="\n".join(lines) + "\n")

    return answer


@asynccontextmanager
async def serve(
    app: Handler,
    *,
    address: str,
    port: int,
    clock: Clock | None = None,
    limits: Limits | None = None,
) -> AsyncIterator[None]:
    """Listen while the context lasts. Raises ConfigurationError if the port cannot be had."""
    listen = listening(app, host=address, port=port, clock=clock or SystemClock(), limits=limits)
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(listen)
        except OSError as error:
            raise ConfigurationError(_cannot_listen(address, port, error)) from error
        yield


def _cannot_listen(address: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"--port: {address}:{port} is in use by another process; choose another port"
    return f"--address/--port: cannot listen on {address}:{port}: {error.strerror or error}"
