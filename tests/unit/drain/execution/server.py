"""A server that answers each request about a pod as it was told, after as long as it was told."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TypeVar

from mcm.client import answers
from mcm.client.errors import KubeError
from mcm.client.requests import Call
from mcm.client.transport import Response, StreamResponse
from mcm.client.verbs import ObjectClient
from mcm.clock import LoopClock
from tests.unit.drain.pods import NOW

R = TypeVar("R")

FINE = Response(201, {}, b'{"kind":"Status","status":"Success"}')
NOT_SERVED = Response(404, {}, b'{"kind":"Status","reason":"NotFound","code":404,"details":{}}')
HELD = Response(
    429,
    {},
    b'{"kind":"Status","reason":"TooManyRequests","code":429,"details":{"causes":'
    b'[{"reason":"DisruptionBudget","message":"needs 2 and has 2"}]}}',
)
BUSY = Response(429, {"retry-after": "3"}, b"Too many requests, please try again later.")


@dataclass(frozen=True)
class Asked:
    verb: str
    name: str
    uid: str = ""
    grace: int | None = None


class Server(ObjectClient):
    """``answers`` by the pods' names; who is not in it gets ``FINE``."""

    def __init__(
        self,
        answers_: dict[str, Response | KubeError] | None = None,
        *,
        takes: float = 0.0,
        core: tuple[str, ...] = ("pods", "pods/eviction"),
    ) -> None:
        self.answers = answers_ or {}
        self.takes = takes
        self.core = core
        self.asked: list[Asked] = []
        self.under_way: list[str] = []
        self.most_under_way = 0
        self.clock = LoopClock(NOW)

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        if call.path == "/api/v1":
            self.asked.append(Asked("discover", ""))
            await self.clock.sleep(0)
            body = json.dumps({"resources": [{"name": name} for name in self.core]})
            return read(Response(200, {}, body.encode()))
        options = json.loads(call.body)
        grace = options.get("deleteOptions", options).get("gracePeriodSeconds")
        self.asked.append(Asked(call.verb.lower(), call.name, call.uid, grace))
        self.under_way.append(call.name)
        self.most_under_way = max(self.most_under_way, len(self.under_way))
        try:
            if self.takes:
                await self.clock.sleep(self.takes)
        finally:
            self.under_way.remove(call.name)
        return read(self._answer(call))

    def _answer(self, call: Call) -> Response:
        answer = self.answers.get(call.name, FINE)
        if isinstance(answer, KubeError):
            raise answer
        if call.verb == "EVICT" and "pods/eviction" not in self.core:
            answer = NOT_SERVED
        if error := answers.failure(answer.status, answer.headers, answer.body):
            raise error
        return answer

    def follow(
        self, call: Call, *, read_timeout: float | None
    ) -> AbstractAsyncContextManager[StreamResponse]:
        raise AssertionError("nobody watches")
