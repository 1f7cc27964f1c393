"""``mcm preflight`` typed at an API server in this process, which notes what it is asked."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mcm.api.meta import JSONObject
from mcm.cli import main
from mcm.client.transport import Request, Response, StreamResponse
from mcm.clock import SystemClock
from mcm.connections import Connections
from mcm.preflight.read_only import REVIEWS
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.cluster import create_all
from mcm.sandbox.loopback import LoopbackTransport


class Watched:
    """A transport that notes what is asked, and answers by itself where it was told to."""

    def __init__(self, server: ApiServer) -> None:
        self._inner = LoopbackTransport(server)
        self.asked: list[tuple[str, str]] = []
        self.answers: dict[str, Response | Exception] = {}
        self.denied: Callable[[dict[str, str]], bool] = lambda _: False

    async def request(self, request: Request) -> Response:
        self.asked.append((request.method, request.path))
        answer = next((a for path, a in self.answers.items() if request.path == path), None)
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            return answer
        if request.path == REVIEWS:
            asked = json.loads(request.body)["spec"]["resourceAttributes"]
            if self.denied(asked):
                return Response(201, {}, b'{"status": {"allowed": false}}')
        return await self._inner.request(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        self.asked.append((request.method, request.path))
        return self._inner.stream(request)

    async def aclose(self) -> None:
        """Each run has its own connection; here all share one server."""


class Typing:
    """Types commands; control and target are one server."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server = ApiServer(clock=SystemClock(), random=random.Random(1))
        self.transport = Watched(self.server)
        both = Connections(self.transport, self.transport, "https://here")
        monkeypatch.setattr("mcm.preflight.command.connect", lambda options, clock: both)

    def put(self, documents: Iterable[JSONObject]) -> None:
        asyncio.run(create_all(self.server, list(documents)))

    def type(self, *words: str, stdin: str = "") -> Result:
        return CliRunner().invoke(main, ["preflight", *words], input=stdin)

    def findings(self, *words: str, stdin: str = "") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(
            self.type("-o", "json", *words, stdin=stdin).stdout
        )["findings"]
        return found

    def said(self, outcome: str, *words: str) -> list[str]:
        return [
            f"{f['subject']}: {f['text']}" for f in self.findings(*words) if f["outcome"] == outcome
        ]
