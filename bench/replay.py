"""An API server in a process of its own that replays a recorded fleet, so that its CPU time is not
counted. ``python -m bench.replay machines=5000 nodes=0 rounds=4`` prints its port and serves
until its standard input ends.

A list comes as from a real server: whole from its cache (at a version), in pages from its store, or
as a stream unless ``pages=1``. A watch plays the recorded events, then is silent. With
``relists=K`` the first K watches of a kind end with 410 Gone, and every list brings the next state
of each object.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from typing import final

from aiohttp import web

from bench.recorded_objects import KINDS, Kind

_CHUNK = 64 * 1024
_AT_A_TIME = 32  # objects of a streamed list
_CALM = 0.2  # seconds between a list and the Gone that follows, to look at the memory in
_INVALID = {
    "apiVersion": "v1",
    "kind": "Status",
    "status": "Failure",
    "reason": "Invalid",
    "code": 422,
}
_GONE = {
    "type": "ERROR",
    "object": {
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "reason": "Expired",
        "message": "too old resource version",
        "code": 410,
    },
}


@dataclass(frozen=True, slots=True)
class Script:
    """What a replay serves: how many objects, how often each changes, how many watches fail, and
    whether lists come in pages at best."""

    machines: int = 0
    nodes: int = 0
    pods: int = 0
    rounds: int = 0
    relists: int = 0
    pages: int = 0

    @classmethod
    def of(cls, kind: str, count: int, *, rounds: int) -> Script:
        return replace(cls(**{kind: count}), rounds=rounds)

    def count(self, kind: str) -> int:
        return {"machines": self.machines, "nodes": self.nodes, "pods": self.pods}[kind]

    def arguments(self) -> Sequence[str]:
        return tuple(f"{name}={value}" for name, value in asdict(self).items())


def chunks_of(stream: bytes) -> Sequence[bytes]:
    """Cut a stream as a network would, anywhere."""
    return [stream[at : at + _CHUNK] for at in range(0, len(stream), _CHUNK)]


@final
class Recorded:
    """One kind's list and watch."""

    def __init__(self, kind: Kind, *, count: int, script: Script) -> None:
        self._kind = kind
        self._count = count
        self._relists = script.relists
        self._streams = not script.pages
        self._whole = b""
        self._chunks = chunks_of(b"".join(kind.events(count, script.rounds)))
        self._lists = 0
        self._watches = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch", "").lower() in ("true", "1"):
            return await self._watch(request)
        return web.Response(body=self._listed(request), content_type="application/json")

    def _listed(self, request: web.Request) -> bytes:
        start = int(request.query.get("continue", "0"))
        if not start:
            self._lists += 1
        limit = int(request.query.get("limit", "0"))
        if limit and request.query.get("resourceVersion") != "0":
            numbers = range(start, min(start + limit, self._count))
            token = str(numbers.stop) if numbers.stop < self._count else ""
            return self._kind.page(numbers, self._count, turn=self._turn, token=token)
        if self._relists or not self._whole:
            self._whole = self._kind.listed(self._count, turn=self._turn)
        return self._whole

    @property
    def _turn(self) -> int:
        return self._lists if self._relists else 1

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        lists = "sendInitialEvents" in request.query
        if lists and not self._streams:
            return web.json_response(_INVALID, status=422)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        self._watches += 1
        if lists:
            await self._stream(response)
        if self._watches <= self._relists:
            await asyncio.sleep(_CALM)
            await response.write(json.dumps(_GONE).encode() + b"\n")
            return response
        for chunk in self._chunks:
            await response.write(chunk)
        await asyncio.Event().wait()
        return response

    async def _stream(self, response: web.StreamResponse) -> None:
        self._lists += 1
        for start in range(0, self._count, _AT_A_TIME):
            numbers = range(start, min(start + _AT_A_TIME, self._count))
            await response.write(self._kind.streamed(numbers, self._count, turn=self._turn))
        await response.write(self._kind.end_of_stream(turn=self._turn))


@asynccontextmanager
async def replaying(script: Script) -> AsyncIterator[str]:
    """Start a replay process; yield its URL; end it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.replay",
        *script.arguments(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port = await process.stdout.readline()
        if not port:
            raise RuntimeError("the replay process did not start")
        yield f"http://127.0.0.1:{int(port)}"
    finally:
        process.stdin.close()
        await process.wait()


async def _serve(script: Script) -> None:
    app = web.Application()
    for name, kind in KINDS.items():
        if count := script.count(name):
            app.router.add_get(kind.path, Recorded(kind, count=count, script=script).handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.to_thread(sys.stdin.read)
    finally:
        await runner.cleanup()


def main() -> None:
    given = Counter({name: int(v) for name, _, v in (a.partition("=") for a in sys.argv[1:])})
    asyncio.run(_serve(Script(**given)))


if __name__ == "__main__":
    main()
