"""Whether the server knows evictions at all: asked once something speaks against it, then known."""

from __future__ import annotations

import asyncio
import logging
from typing import Final, final

import msgspec

from mcm.client.errors import KubeError
from mcm.client.verbs import ObjectReader

_CORE: Final = "/api/v1"
_SUBRESOURCE: Final = "pods/eviction"

logger = logging.getLogger(__name__)


class _Resource(msgspec.Struct, frozen=True):
    name: str = ""


class _Resources(msgspec.Struct, frozen=True):
    resources: tuple[_Resource, ...] = ()


_decoder = msgspec.json.Decoder(_Resources)


@final
class EvictionAPI:
    """What is known of it, for as long as the process lives.

    A 404 alone is no proof: a proxy in the way may have answered it. Discovery is.
    """

    def __init__(self, client: ObjectReader) -> None:
        self._client = client
        self._asking = asyncio.Lock()
        self._missing = False

    @property
    def missing(self) -> bool:
        """The server is known to have none; then pods are deleted, with their own grace period."""
        return self._missing

    async def is_missing(self) -> bool:
        """Ask the server, unless it is known. False where it cannot be found out now."""
        async with self._asking:
            if not self._missing and await self._is_not_listed():
                self._missing = True
                logger.warning(
                    "the API server has no eviction API: pods are deleted instead, as far as "
                    "the mirrored disruption budgets allow"
                )
            return self._missing

    async def _is_not_listed(self) -> bool:
        try:
            found = _decoder.decode(await self._client.get_raw(_CORE))
        except (KubeError, msgspec.DecodeError) as error:
            logger.info("cannot find out about the eviction API", extra={"cause": str(error)})
            return False
        # A list without pods is no list of a whole API server.
        names = {resource.name for resource in found.resources}
        return "pods" in names and _SUBRESOURCE not in names
