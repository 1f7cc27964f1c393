"""Listens for those who ask, over TLS where there is a certificate."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from mcm.client.errors import ConfigurationError
from mcm.clock import Clock
from mcm.http_server import Handler, Limits, listening
from mcm.serving_certificate import ServingCertificate


@asynccontextmanager
async def serve(
    app: Handler,
    *,
    address: str,
    port: int,
    clock: Clock,
    limits: Limits | None = None,
    certificate: ServingCertificate | None = None,
    flag: str = "--port",
) -> AsyncIterator[int]:
    """Listen while the context lasts, and follow the certificate's files; yields the port.

    Raises ConfigurationError, naming ``flag``, if the port cannot be had.
    """
    tls = certificate.context if certificate is not None else None
    listen = listening(app, host=address, port=port, clock=clock, limits=limits, tls=tls)
    async with AsyncExitStack() as stack:
        try:
            bound = await stack.enter_async_context(listen)
        except OSError as error:
            raise ConfigurationError(_cannot_listen(flag, address, port, error)) from error
        if certificate is not None:
            await stack.enter_async_context(certificate.followed())
        yield bound


def _cannot_listen(flag: str, address: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"{flag}: {address}:{port} is in use by another process; choose another port"
    return f"--address/{flag}: cannot listen on {address}:{port}: {error.strerror or error}"
