"""Listens for an API server's questions, over TLS, as long as the process lives."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from typing import Final

import orjson
from aiohttp import web

from mcm.client.errors import ConfigurationError
from mcm.clock import Clock
from mcm.http_server import Handler, Limits, listening, read_body
from mcm.serving_certificate import ServingCertificate
from mcm.webhook.metrics import WebhookMetrics
from mcm.webhook.review import BadReview, answer

PATH: Final = "/validate"

# A review holds an object twice, as it was and as it is to be; an API server takes 3 MiB at most.
_LIMITS: Final = Limits(largest_body=8 * 1024**2)


def build_app(*, max_replicas: int, metrics: WebhookMetrics) -> Handler:
    """Return what answers requests; it holds no state."""

    async def respond(request: web.BaseRequest) -> web.Response:
        if request.path != PATH:
            return _refusal(HTTPStatus.NOT_FOUND, f"reviews are answered at {PATH}")
        if request.method != "POST":
            allow = {"Allow": "POST"}
            return _refusal(HTTPStatus.METHOD_NOT_ALLOWED, "reviews are posted", allow)
        try:
            body = await read_body(request, _LIMITS)
            review, judgement = answer(body, max_replicas=max_replicas)
        except TimeoutError:
            metrics.reviews.labels("bad").inc()
            return _refusal(HTTPStatus.REQUEST_TIMEOUT, "the review did not come in time")
        except web.HTTPRequestEntityTooLarge:
            metrics.reviews.labels("bad").inc()
            return _refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the review is too large")
        except BadReview as error:
            metrics.reviews.labels("bad").inc()
            return _refusal(HTTPStatus.BAD_REQUEST, str(error))
        metrics.reviews.labels(_result(errors=judgement.errors, warnings=judgement.warnings)).inc()
        return web.Response(body=orjson.dumps(review), content_type="application/json")

    return respond


def _result(*, errors: object, warnings: object) -> str:
    if errors:
        return "refused"
    return "warned" if warnings else "allowed"


def _refusal(status: HTTPStatus, why: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=status, text=f"{why}\n", headers=headers)


@asynccontextmanager
async def serve(
    app: Handler,
    certificate: ServingCertificate,
    *,
    address: str,
    port: int,
    clock: Clock,
) -> AsyncIterator[int]:
    """Listen while the context lasts, and follow the certificate's files; yields the port.

    Raises ConfigurationError if the port cannot be had.
    """
    listen = listening(
        app, host=address, port=port, clock=clock, limits=_LIMITS, tls=certificate.context
    )
    async with AsyncExitStack() as stack:
        try:
            bound = await stack.enter_async_context(listen)
        except OSError as error:
            raise ConfigurationError(_cannot_listen(address, port, error)) from error
        await stack.enter_async_context(certificate.followed())
        yield bound


def _cannot_listen(address: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"--webhook-port: {address}:{port} is in use by another process; choose another port"
    return f"--webhook-port: cannot listen on {address}:{port}: {error.strerror or error}"
