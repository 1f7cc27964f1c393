"""A client's end of a transport that leads straight into an API server."""

from __future__ import annotations

import random

import orjson

from mcm.client.errors import TransportError
from mcm.client.transport import Request, Transport
from mcm.sandbox.loopback import LoopbackTransport
from mcm.simulation.faults import FaultPlan
from mcm.simulation.transport import FaultyTransport
from tests.unit.sandbox_core.workbench import CONFIG_MAPS, config_map, virtual_workbench


class Line:
    """A client's end of a loopback."""

    def __init__(self) -> None:
        self.api = virtual_workbench()
        self.transport: Transport = LoopbackTransport(self.api.server)

    @property
    def now(self) -> float:
        return self.api.clock.monotonic()

    async def status(self, method: str, path: str, body: object = None, **query: str) -> int:
        request = self.api.request(method, path, body, **query)
        return (await self.transport.request(request)).status

    def watch_request(self, read_timeout: float | None = None) -> Request:
        query = (("watch", "true"), ("timeoutSeconds", "100"))
        return Request("GET", CONFIG_MAPS, query, read_timeout=read_timeout)

    async def watched(self, read_timeout: float | None = None) -> list[str]:
        """Watch to the end; return the names or types of what came, and how it ended."""
        seen: list[str] = []
        try:
            async with self.transport.stream(self.watch_request(read_timeout)) as response:
                async for chunk in response.chunks:
                    seen += [_told(line) for line in chunk.splitlines()]
        except TransportError as error:
            return [*seen, type(error).__name__]
        return [*seen, "end"]


def _told(line: bytes) -> str:
    try:
        event = orjson.loads(line)
    except orjson.JSONDecodeError:
        return "garbage"
    name: str = event["object"].get("metadata", {}).get("name") or event["type"]
    return name


class FaultyLine(Line):
    """A line on which faults can be laid."""

    def __init__(self) -> None:
        super().__init__()
        self.faults = FaultPlan(random=random.Random(1))
        self.transport = FaultyTransport(self.api.server, self.faults)


async def create_later(line: Line, *names: str, every: float = 1.0) -> None:
    for name in names:
        await line.api.clock.sleep(every)
        line.api.create(CONFIG_MAPS, config_map(name))
