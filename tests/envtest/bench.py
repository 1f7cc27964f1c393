"""Short ways to ask a server over a real connection, for tests that look at raw answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, final

import orjson

from mcm.client.client import Client
from mcm.client.connection import ConnectionSpec
from mcm.client.http import HTTPTransport
from mcm.client.transport import Lane, Request, Transport
from mcm.clock import SystemClock

JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

Document = dict[str, Any]
PATIENCE = 10.0
_FILLING = b"storage is (re)initializing"
_FILLED_WITHIN = 20.0


@final
@dataclass(frozen=True)
class Peer:
    """A server that claims to be a Kubernetes API server, ready with all kinds defined.

    ``compact`` makes it forget every state but the current one; ``user`` says how to reach it as
    one whom RBAC judges.
    """

    name: str
    spec: ConnectionSpec
    compact: Callable[[], Awaitable[None]]
    user: Callable[[str], ConnectionSpec]


@final
@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: bytes

    @property
    def body(self) -> Document:
        document: Document = orjson.loads(self.text)
        return document

    @property
    def reason(self) -> str:
        """The reason of a Status."""
        assert self.body["kind"] == "Status", self.text
        return str(self.body.get("reason", ""))

    @property
    def causes(self) -> list[tuple[str, str]]:
        """Reason and field of each cause of a Status, sorted, each once: a real server checks
        metadata twice."""
        found = self.body.get("details", {}).get("causes", ())
        return sorted({(c.get("reason", ""), c.get("field", "")) for c in found})


@final
class Bench:
    """A user of one server, in a namespace of its own. ``send`` answers with anything; the verbs
    insist on success."""

    def __init__(self, peer: Peer, namespace: str) -> None:
        self.peer = peer
        self.namespace = namespace
        self.transport: Transport = HTTPTransport(peer.spec, clock=SystemClock())
        self.client = Client(self.transport, clock=SystemClock(), user_agent="contract")

    # ---- paths ----------------------------------------------------------------------------------

    def path(self, plural: str, name: str = "", *, group: str = "") -> str:
        """Return the path of a resource in the bench's namespace; group as ``apps/v1``."""
        root = f"/apis/{group}" if group else "/api/v1"
        return f"{root}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def machines(self, name: str = "") -> str:
        return self.path("machines", name, group="machine.sapcloud.io/v1alpha1")

    def deployments(self, name: str = "") -> str:
        return self.path("machinedeployments", name, group="machine.sapcloud.io/v1alpha1")

    def config_maps(self, name: str = "") -> str:
        return self.path("configmaps", name)

    def secrets(self, name: str = "") -> str:
        return self.path("secrets", name)

    def pods(self, name: str = "") -> str:
        return self.path("pods", name)

    # ---- requests -------------------------------------------------------------------------------

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        media: str = "",
        accept: str = JSON,
        **query: str,
    ) -> Answer:
        headers = {"accept": accept, "user-agent": "contract/1"}
        if media or body is not None:
            headers["content-type"] = media or JSON
        raw = body if isinstance(body, bytes) else orjson.dumps(body) if body is not None else b""
        request = Request(method, path, tuple(query.items()), headers, raw)
        return await self._answer(request)

    async def _answer(self, request: Request) -> Answer:
        """Send, again for as long as the server's cache of a kind that was just defined is not
        filled: a busy machine's server says so with 429 for some seconds."""
        clock = SystemClock()
        deadline = clock.monotonic() + _FILLED_WITHIN
        while True:
            response = await self.transport.request(request)
            filling = response.status == 429 and _FILLING in response.body
            if not filling or clock.monotonic() > deadline:
                return Answer(response.status, response.headers, response.body)
            await clock.sleep(1.0)

    async def create(self, path: str, obj: Document, **query: str) -> Document:
        return _of(201, await self.send("POST", path, obj, **query))

    async def get(self, path: str, **query: str) -> Document:
        return _of(200, await self.send("GET", path, **query))

    async def put(self, path: str, obj: Document, **query: str) -> Document:
        return _of(200, await self.send("PUT", path, obj, **query))

    async def patch(
        self, path: str, patch: object, *, media: str = MERGE, **query: str
    ) -> Document:
        return _of(200, await self.send("PATCH", path, patch, media=media, **query))

    async def delete(self, path: str, options: Document | None = None, **query: str) -> Document:
        return _of(200, await self.send("DELETE", path, options, **query))

    async def gone(self, path: str) -> bool:
        return (await self.send("GET", path)).status == 404

    async def names(self, path: str, **query: str) -> list[str]:
        listed = await self.get(path, **query)
        return sorted(item["metadata"]["name"] for item in listed["items"])

    async def version(self, path: str) -> str:
        """Return the version a collection is at."""
        return str((await self.get(path))["metadata"]["resourceVersion"])

    @asynccontextmanager
    async def watch(self, path: str, *, accept: str = JSON, **query: str) -> AsyncIterator[Watch]:
        """Watch until the context is left; a refusal is an AssertionError."""
        query = {"watch": "1", "timeoutSeconds": "30", **query}
        request = Request(
            "GET",
            path,
            tuple(query.items()),
            {"accept": accept},
            lane=Lane.WATCH,
            read_timeout=PATIENCE,
        )
        async with self.transport.stream(request) as response:
            assert response.status == 200, [chunk async for chunk in response.chunks]
            yield Watch(response.chunks)

    async def aclose(self) -> None:
        await self.transport.aclose()


@final
class Watch:
    """Reads a watch as events."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""
        self._lines: list[bytes] = []

    async def next(self) -> tuple[str, Document]:
        """Return the next event. Raises StopAsyncIteration at the end of the stream."""
        async with asyncio.timeout(PATIENCE):
            while not self._lines:
                *self._lines, self._rest = (self._rest + await anext(self._chunks)).split(b"\n")
        event = orjson.loads(self._lines.pop(0))
        return event["type"], event["object"]

    async def take(self, count: int) -> list[tuple[str, str]]:
        """Return type and name of the next events, leaving out bookmarks."""
        found: list[tuple[str, str]] = []
        while len(found) < count:
            kind, obj = await self.next()
            if kind != "BOOKMARK":
                found.append((kind, obj["metadata"]["name"]))
        return found

    async def until_bookmark(self) -> tuple[list[tuple[str, Document]], Document]:
        """Return the events before the next bookmark, and that bookmark's object."""
        found: list[tuple[str, Document]] = []
        while True:
            kind, obj = await self.next()
            if kind == "BOOKMARK":
                return found, obj
            found.append((kind, obj))

    async def rest(self) -> list[tuple[str, Document]]:
        """Return everything up to the end of the stream."""
        found: list[tuple[str, Document]] = []
        while True:
            try:
                found.append(await self.next())
            except StopAsyncIteration:
                return found


def _of(status: int, answer: Answer) -> Document:
    assert answer.status == status, (answer.status, answer.text)
    return answer.body
