"""What a patch costs in calls of functions, but for the library that carries it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry

from mcm.api.core import NODES, Node
from mcm.api.meta import Resource
from mcm.client.client import Client
from mcm.client.http import HTTPTransport
from mcm.client.metrics import ClientMetrics
from mcm.clock import SystemClock
from mcm.controllers.write_guard import WriteGuard, author, progressed, reconciling
from mcm.informers.store import Store
from mcm.informers.writer import Writer

PATCHES = 20
MOST_CALLS = 180
"""Of functions in Python, generators resumed included, for one patch. It was 242 before exchanges,
URLs, series of metrics and comparisons of patches were made cheaper, and 167 after."""

_NODE = {"metadata": {"name": "n", "uid": "u", "resourceVersion": "1"}}


_BODY = json.dumps(_NODE).encode()
_NOT_OURS = frozenset({"aiohttp", "asyncio", "selectors", "tests"})
"""The carrier, which is the server's here, too."""


async def test_a_patch_costs_a_bounded_number_of_calls(
    serve: Any, connect: Callable[..., HTTPTransport]
) -> None:
    async def patched(request: web.BaseRequest) -> web.Response:
        await request.read()
        return web.Response(body=_BODY, content_type="application/json")

    def stores(resource: Resource[Node], namespace: str) -> tuple[Store[Node], ...]:
        return ()

    clock = SystemClock()
    client = Client(
        connect(await serve(patched)),
        clock=clock,
        fence=lambda: None,
        metrics=ClientMetrics(CollectorRegistry()),
        progressed=progressed,
    )
    writer = WriteGuard(Writer(client, stores, author=author), clock=clock)  # type: ignore[arg-type]

    async def patch(number: int) -> None:
        change = {
            "metadata": {"uid": "u", "labels": {"number": str(number)}},
            "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}], "unschedulable": True},
        }
        with reconciling("machine ns/a", 0.0):
            await writer.patch(NODES, f"n-{number}", change)

    await patch(-1)  # what is remembered from the first one on
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        module = str(frame.f_globals.get("__name__"))
        if event == "call" and module.partition(".")[0] not in _NOT_OURS:
            calls[f"{module}.{frame.f_code.co_qualname}"] += 1

    sys.setprofile(count)
    try:
        for number in range(PATCHES):
            await patch(number)
    finally:
        sys.setprofile(None)
    assert calls.total() <= MOST_CALLS * PATCHES, calls.most_common(30)
