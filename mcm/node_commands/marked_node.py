"""Writes on the Node that a run of ``mcm drain`` has marked, as long as the mark is its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias, final

from mcm.api.core import NODES, Node
from mcm.api.meta import JSONObject
from mcm.client.client import Client
from mcm.client.errors import KubeError, NotFound
from mcm.cluster_commands.writing import tried_anew
from mcm.node_commands import drain_mark

_LAST_WORDS: Final = 5.0
"""Seconds for what is written when a run ends before the Node is empty."""

_Change: TypeAlias = Callable[[Node, str], JSONObject | None]
"""From the Node and the run to what is to be written; None: nothing."""


@final
class MarkedNode:
    """The Node ``name``, marked by ``run``. A Node that is gone needs nothing written."""

    def __init__(self, client: Client, name: str, run: str) -> None:
        self._client = client
        self._name = name
        self.run = run

    async def keep(self, record: str) -> None:
        """Write the drain's record. Raises what the client raises."""
        await self._write(lambda node, run: drain_mark.kept(node, run, record))

    async def finish(self) -> None:
        """Say that the Node is empty. Raises what the client raises."""
        await self._write(drain_mark.finished)

    async def leave(self) -> None:
        """Say that this run is over, if that can be done quickly: the process ends."""
        with suppress(KubeError, TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await self._write(drain_mark.stopped)

    async def _write(self, change: _Change) -> None:
        async def attempt() -> None:
            node = await self._client.get(NODES, self._name)
            if (patch := change(node, self.run)) is not None:
                await self._client.patch(NODES, self._name, patch)

        with suppress(NotFound):
            await tried_anew(attempt)
