"""How many keys wait in a manager's work queues, over time, by its own metrics."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from typing import Final, final

import aiohttp

_DEPTH = re.compile(r"^\w*workqueue_depth(?:\{([^}]*)\})? (\S+)", re.MULTILINE)
_NAME = re.compile(r'\bname="([^"]*)"')
_PATIENCE: Final = 5.0
_ATTEMPT: Final = aiohttp.ClientTimeout(total=_PATIENCE)


@final
class QueueDepths:
    """Asks ``url`` every ``period`` seconds. A manager that answers nothing has no samples."""

    def __init__(self, url: str, *, period: float) -> None:
        self._url = url
        self._period = period
        self.samples: list[tuple[float, dict[str, int]]] = []
        """The monotonic time, and the depth of each queue that is not empty."""

    async def run(self) -> None:
        """Look until cancelled."""
        async with aiohttp.ClientSession(timeout=_ATTEMPT) as session:
            while True:
                await self._look(session)
                await asyncio.sleep(self._period)

    def between(self, begin: float, end: float) -> Sequence[tuple[float, int]]:
        """Return seconds since ``begin``, and the depth of all queues together."""
        return [
            (round(at - begin, 2), sum(depths.values()))
            for at, depths in self.samples
            if begin <= at <= end
        ]

    async def _look(self, session: aiohttp.ClientSession) -> None:
        try:
            async with session.get(self._url) as answer:
                text = await answer.text()
        except (aiohttp.ClientError, TimeoutError, UnicodeDecodeError):
            return
        if answer.status == 200:
            self.samples.append((time.monotonic(), read_depths(text)))


def read_depths(text: str) -> dict[str, int]:
    """Read the queues that are not empty out of a Prometheus text, by name."""
    found: dict[str, int] = {}
    for labels, value in _DEPTH.findall(text):
        name = _NAME.search(labels)
        depth = int(float(value))
        if depth:
            key = name[1] if name else ""
            found[key] = found.get(key, 0) + depth
    return found
