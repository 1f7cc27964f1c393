"""A server's certificate, from files that others rotate: ``tls.crt`` and ``tls.key``.

A Secret that is mounted, or cert-manager, replaces them while we run. They are read again every few
seconds; what changed is shown in connections from then on. A pair that is torn, missing or broken
changes nothing: the one in use stays.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NoReturn, final

from prometheus_client import Counter

from mcm.client.errors import ConfigurationError
from mcm.client.tls import load_pair
from mcm.clock import Clock

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
_LOOKED_AT_EVERY: Final = 5.0

logger = logging.getLogger(__name__)


@final
class ServingCertificate:
    """One TLS context for the life of ``server``, which is named so in the log. Reading the files
    blocks; :meth:`rotate` does it in a thread. ``rotations`` counts looks that found another pair,
    by their result: taken or refused."""

    def __init__(self, folder: Path, *, server: str, clock: Clock, rotations: Counter) -> None:
        """Raises ConfigurationError, naming the file, if there is no pair to begin with."""
        self._folder = folder
        self._server = server
        self._clock = clock
        self._rotations = rotations
        self._refused: str | None = None
        self._pair = _read(folder)
        self.context = _context()
        load_pair(self.context, *self._pair, what=f"{folder / CERTIFICATE}")

    async def rotate(self) -> NoReturn:
        """Follow the files until cancelled."""
        while True:
            await self._clock.sleep(_LOOKED_AT_EVERY)
            try:
                found = await asyncio.to_thread(self._tried)
            except ConfigurationError as error:
                self._keep(str(error))
                continue
            self._refused = None
            if found != self._pair:
                self._take(found)

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        """Follow the files while the context lasts."""
        rotation = asyncio.create_task(self.rotate(), name=f"certificate of {self._server}")
        try:
            yield
        finally:
            rotation.cancel()
            await asyncio.wait({rotation})
            if not rotation.cancelled() and (error := rotation.exception()):
                logger.error(
                    "the certificate of %s was followed no more", self._server, exc_info=error
                )

    def _tried(self) -> tuple[bytes, bytes]:
        """Return the pair that the files hold, which is tried first where nobody is served."""
        found = _read(self._folder)
        if found != self._pair:
            load_pair(_context(), *found, what=f"{self._folder / CERTIFICATE}")
        return found

    def _take(self, found: tuple[bytes, bytes]) -> None:
        load_pair(self.context, *found, what=f"{self._folder / CERTIFICATE}")
        self._pair = found
        self._rotations.labels("taken").inc()
        logger.info("%s shows the new certificate of %s", self._server, self._folder)

    def _keep(self, why: str) -> None:
        """Say once what is wrong with the files; count each look at them."""
        self._rotations.labels("refused").inc()
        if why != self._refused:
            logger.warning("%s keeps the certificate in use: %s", self._server, why)
        self._refused = why


def _context() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _read(folder: Path) -> tuple[bytes, bytes]:
    return _content(folder / CERTIFICATE), _content(folder / KEY)


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror or error}") from None
    if not content.strip():
        raise ConfigurationError(f"{path} is empty")
    return content
