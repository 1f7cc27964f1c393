"""Startup, liveness and readiness of one container, asked as its pod says."""

from __future__ import annotations

from contextlib import suppress
from typing import final

import aiohttp

from tests.envtest.bench import Document

_LOOKS_A_FAILURE = 10
"""Probes are asked more often than they say, and so fail more often in the same time."""


@final
class Probes:
    """``ready`` and ``dead`` are as of the last :meth:`probe`."""

    def __init__(self, container: Document, ip: str) -> None:
        self.ready = False
        self._container = container
        self._ip = ip
        self._started = False
        self._failures = 0

    @property
    def dead(self) -> bool:
        limit: int = self._container.get("livenessProbe", {}).get("failureThreshold", 3)
        return self._failures > _LOOKS_A_FAILURE * limit

    async def probe(self) -> None:
        if "readinessProbe" not in self._container:
            self.ready = True
        elif not self._started:
            self._started = await self._passes("startupProbe")
        else:
            self._failures = 0 if await self._passes("livenessProbe") else self._failures + 1
            self.ready = await self._passes("readinessProbe")

    async def _passes(self, name: str) -> bool:
        probe = self._container[name]
        ports = {port["name"]: port["containerPort"] for port in self._container["ports"]}
        url = f"http://{self._ip}:{ports[probe['httpGet']['port']]}{probe['httpGet']['path']}"
        timeout = aiohttp.ClientTimeout(total=probe["timeoutSeconds"])
        with suppress(aiohttp.ClientError, TimeoutError):
            async with aiohttp.request("GET", url, timeout=timeout) as answer:
                return 200 <= answer.status < 400
        return False
