"""A server on a clock of its own, and short ways to ask it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from mcm.client.transport import Request, Response, StreamResponse
from mcm.clock import Clock, LoopClock
from mcm.sandbox.apiserver.reading.watching import WatchStream
from mcm.sandbox.apiserver.server import ApiServer, ServerSettings

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)

JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
SECRETS = "/api/v1/namespaces/default/secrets"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/toys.example/v1/namespaces/default/widgets"

Document = dict[str, Any]


class ManualClock:
    """Wall time moved by hand; it stands still otherwise."""

    def __init__(self) -> None:
        self.moment = EPOCH

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return (self.moment - EPOCH).total_seconds()

    async def sleep(self, seconds: float) -> None:
        self.advance(max(0.0, seconds))
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_result, None)
        await future

    def advance(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: bytes

    @property
    def body(self) -> Document:
        document: Document = orjson.loads(self.text)
        return document


class Workbench:
    """``send`` answers with anything; the verbs below insist on success."""

    def __init__(self, clock: Clock | None = None, *, window: int = 1000, seed: int = 1) -> None:
        self.clock = clock or ManualClock()
        self.server = ApiServer(
            clock=self.clock,
            random=random.Random(seed),
            settings=ServerSettings(raise_bugs=True),
            window=window,
        )

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        media: str = "",
        accept: str = "",
        agent: str = "tester/1.0",
        **query: str,
    ) -> Request:
        headers = {"user-agent": agent}
        if media or body is not None:
            headers["content-type"] = media or JSON
        if accept:
            headers["accept"] = accept
        raw = body if isinstance(body, bytes) else orjson.dumps(body) if body is not None else b""
        return Request(method, path, tuple(query.items()), headers, raw)

    def send(self, method: str, path: str, body: object = None, **options: str) -> Answer:
        response = self.server.respond(self.request(method, path, body, **options))
        assert isinstance(response, Response)
        return Answer(response.status, response.headers, response.body)

    def create(self, path: str, obj: Document, **options: str) -> Document:
        answer = self.send("POST", path, obj, **options)
        assert answer.status == 201, answer.text
        return answer.body

    def get(self, path: str, **options: str) -> Document:
        answer = self.send("GET", path, **options)
        assert answer.status == 200, answer.text
        return answer.body

    def put(self, path: str, obj: Document, **options: str) -> Document:
        answer = self.send("PUT", path, obj, **options)
        assert answer.status == 200, answer.text
        return answer.body

    def patch(self, path: str, patch: object, *, media: str = MERGE, **options: str) -> Document:
        answer = self.send("PATCH", path, patch, media=media, **options)
        assert answer.status in (200, 201), answer.text
        return answer.body

    def delete(self, path: str, options: Document | None = None, **query: str) -> Document:
        answer = self.send("DELETE", path, options, **query)
        assert answer.status == 200, answer.text
        return answer.body

    def gone(self, path: str) -> bool:
        return self.send("GET", path).status == 404

    def names(self, path: str, **query: str) -> list[str]:
        return [item["metadata"]["name"] for item in self.get(path, **query)["items"]]

    def define_widgets(self, **changes: Any) -> Document:
        return self.create(DEFINITIONS, widget_definition(**changes))

    def watch(self, path: str, **query: str) -> Watcher:
        response = self.server.respond(self.request("GET", path, watch="true", **query))
        assert isinstance(response, StreamResponse), response
        assert isinstance(response.chunks, WatchStream)
        return Watcher(response.chunks)


class Watcher:
    """Reads a watch as events."""

    def __init__(self, stream: WatchStream) -> None:
        self.stream = stream
        self._lines: list[bytes] = []

    async def next(self) -> tuple[str, Document]:
        """Return the next event; raises StopAsyncIteration at the end of the stream."""
        if not self._lines:
            self._lines = (await self.stream.__anext__()).splitlines()
        event = orjson.loads(self._lines.pop(0))
        return event["type"], event["object"]

    @property
    def pending(self) -> bool:
        """Whether an event can be had without waiting."""
        return bool(self._lines or self.stream._lines)

    async def take(self, count: int) -> list[tuple[str, str]]:
        """Return the types and names of the next events."""
        found = [await self.next() for _ in range(count)]
        return [(kind, obj.get("metadata", {}).get("name", "")) for kind, obj in found]

    async def rest(self) -> list[tuple[str, Document]]:
        """Return everything up to the end of the stream."""
        found: list[tuple[str, Document]] = []
        while True:
            try:
                found.append(await self.next())
            except StopAsyncIteration:
                return found


def virtual_workbench(*, window: int = 1000) -> Workbench:
    """For tests on a virtual loop: the server's clock is the loop's."""
    return Workbench(LoopClock(EPOCH), window=window)


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **({"labels": labels} if labels else {})},
        "data": data,
    }


def pod(
    name: str, *, node: str = "", labels: dict[str, str] | None = None, **spec: Any
) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {**({"nodeName": node} if node else {}), **spec},
    }


def widget(name: str, **spec: Any) -> Document:
    return {
        "apiVersion": "toys.example/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": 1, **spec},
    }


def owned_by(owner: Document, obj: Document, *, blocks: bool = False) -> Document:
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": blocks,
    }
    meta = obj["metadata"]
    references = [*meta.get("ownerReferences", []), reference]
    return {**obj, "metadata": {**meta, "ownerReferences": references}}


def widget_definition(**changes: Any) -> Document:
    """A namespaced kind with status and scale; ``changes`` replace parts of its version."""
    version: Document = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": {
                        "type": "object",
                        "required": ["size"],
                        "properties": {
                            "size": {"type": "integer", "minimum": 0},
                            "replicas": {"type": "integer"},
                            "colour": {"type": "string", "default": "red"},
                        },
                    },
                    "status": {
                        "type": "object",
                        "properties": {
                            "replicas": {"type": "integer"},
                            "phase": {"type": "string"},
                            "selector": {"type": "string"},
                        },
                    },
                },
            }
        },
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1}
        ],
        "selectableFields": [{"jsonPath": ".spec.colour"}],
        **changes,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.toys.example"},
        "spec": {
            "group": "toys.example",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "shortNames": ["wd"]},
            "versions": [version],
        },
    }
