"""A small API server for controllers that read stores and write through a writer.

It keeps JSON objects and answers the mutating verbs as a real one would: preconditions, generation,
the status subresource, finalizers. Everything above it (writer, stores, handlers, queues, workers)
is the real thing; there is no watch, since a writer's answers reach the stores at once.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Self, TypeVar, cast

import orjson
from prometheus_client import CollectorRegistry

from mcm.api.codec import decode_object
from mcm.api.meta import JSONObject, KubeObject, Resource, T
from mcm.api.timestamps import rfc3339
from mcm.client.errors import AlreadyExists, Conflict, KubeError, NotFound
from mcm.client.requests import Call
from mcm.client.transport import Response, StreamResponse
from mcm.client.verbs import ObjectClient
from mcm.clock import LoopClock
from mcm.controllers.context import ControllerContext
from mcm.controllers.provider import Provider
from mcm.controllers.runtime import Controller
from mcm.controllers.settings import ControllerSettings
from mcm.informers import InformerFactory
from mcm.simulation.virtualtime import run_virtual

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
NAMESPACE = "ns"
R = TypeVar("R")


@dataclass(frozen=True)
class Write:
    verb: str
    resource: str
    name: str
    body: JSONObject = field(default_factory=dict)
    subresource: str = ""


class FakeApi(ObjectClient):
    """``refuse`` may return an error for a write: before it happens, or (``lose``) after."""

    def __init__(self, clock: LoopClock) -> None:
        self.objects: dict[tuple[str, str], JSONObject] = {}
        self.writes: list[Write] = []
        self.refuse: Callable[[Write], KubeError | None] = lambda _: None
        self.lose: Callable[[Write], KubeError | None] = lambda _: None
        self._clock = clock
        self._version = 0

    def begin(self, objects: Mapping[tuple[str, str], JSONObject], version: int) -> None:
        self.objects = dict(objects)
        self._version = version

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        """Answer the mutating verbs, and GET for what must be certain; all else is wrong here."""
        assert call.resource is not None
        sent: JSONObject = orjson.loads(call.body) if call.body else {}
        match call.verb:
            case "GET":
                answer = await self._get(call.resource, call)
            case "CREATE":
                answer = await self._create(call.resource, sent, call.namespace)
            case "PATCH":
                answer = await self._patch(call.resource, sent, call)
            case "DELETE":
                answer = await self._delete(call.resource, sent, call)
            case other:
                raise AssertionError(f"nobody should {other} here")
        return read(Response(200, {}, orjson.dumps(answer)))

    async def _get(self, resource: Resource[KubeObject], call: Call) -> JSONObject:
        await self._clock.sleep(0)
        return self._find(resource, call.name, call.namespace)[1]

    async def _create(
        self, resource: Resource[KubeObject], obj: JSONObject, namespace: str
    ) -> JSONObject:
        meta = _meta(obj)
        write = await self._begin(Write("create", resource.plural, str(meta["name"]), obj))
        key = (resource.plural, f"{namespace}/{write.name}" if namespace else write.name)
        if key in self.objects:
            raise AlreadyExists(409, "AlreadyExists", write.name)
        obj.pop("status", None)
        stamp = rfc3339(self._clock.now())
        uid = f"{resource.kind}-{write.name}-{self._version}"
        meta.update(uid=uid, generation=1, creationTimestamp=stamp)
        if namespace:
            meta["namespace"] = namespace
        return self._end(write, key, obj)

    async def _patch(
        self, resource: Resource[KubeObject], change: JSONObject, call: Call
    ) -> JSONObject:
        write = await self._begin(
            Write("patch", resource.plural, call.name, change, call.subresource)
        )
        key, before = self._find(resource, call.name, call.namespace)
        _check_preconditions(_meta(before), _meta(change))
        only = {"status"} if call.subresource else set(change) - {"status"}
        after = merge(before, {k: v for k, v in change.items() if k in only or k == "metadata"})
        if call.subresource:
            after["metadata"] = _meta(before)
        if after.get("spec") != before.get("spec"):
            _meta(after)["generation"] = cast("int", _meta(before)["generation"]) + 1
        if _meta(after).get("deletionTimestamp") and not _meta(after).get("finalizers"):
            del self.objects[key]
            return after
        return self._end(write, key, after)

    async def _delete(
        self, resource: Resource[KubeObject], options: JSONObject, call: Call
    ) -> JSONObject:
        write = await self._begin(Write("delete", resource.plural, call.name))
        key, before = self._find(resource, call.name, call.namespace)
        _check_preconditions(_meta(before), cast("JSONObject", options.get("preconditions", {})))
        if not _meta(before).get("finalizers"):
            del self.objects[key]
            return {"kind": "Status", "status": "Success"}
        stamp = _meta(before).get("deletionTimestamp") or rfc3339(self._clock.now())
        after = merge(before, {"metadata": {"deletionTimestamp": stamp}})
        return self._end(write, key, after)

    def follow(
        self, call: Call, *, read_timeout: float | None
    ) -> AbstractAsyncContextManager[StreamResponse]:
        raise AssertionError("there is no watch here")

    async def _begin(self, write: Write) -> Write:
        await self._clock.sleep(0)
        self.writes.append(write)
        if error := self.refuse(write):
            raise error
        return write

    def _find(
        self, resource: Resource[KubeObject], name: str, namespace: str
    ) -> tuple[tuple[str, str], JSONObject]:
        key = (resource.plural, f"{namespace}/{name}" if namespace else name)
        if key not in self.objects:
            raise NotFound(404, "NotFound", name)
        return key, self.objects[key]

    def _end(self, write: Write, key: tuple[str, str], obj: JSONObject) -> JSONObject:
        if _content(obj) != _content(self.objects.get(key, {})):
            self._version += 1
            _meta(obj)["resourceVersion"] = str(self._version)
            self.objects[key] = obj
        if error := self.lose(write):
            raise error
        return self.objects[key]


def merge(target: object, patch: object) -> JSONObject:
    """RFC 7396."""
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items() if isinstance(patch, dict) else ():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merge(result.get(key), value)
        else:
            result[key] = value
    return result


def _meta(obj: JSONObject) -> JSONObject:
    meta = obj.setdefault("metadata", {})
    return cast("JSONObject", meta)


def _content(obj: JSONObject) -> JSONObject:
    return merge(obj, {"metadata": {"resourceVersion": None}})


def _check_preconditions(actual: JSONObject, wanted: JSONObject) -> None:
    for name in ("uid", "resourceVersion"):
        if wanted.get(name) and wanted[name] != actual.get(name):
            raise Conflict(409, "Conflict", f"{name}: {wanted[name]} is not {actual.get(name)}")


def _decode(resource: Resource[T], obj: JSONObject) -> T:
    return decode_object(resource, orjson.dumps(obj))


@dataclass
class RecordedEvents:
    """Stands in for the recorder of events."""

    seen: list[tuple[str, str, str, str]] = field(default_factory=list)

    def event(
        self,
        resource: Resource[T],
        obj: T,
        kind: str,
        reason: str,
        note: str,
        *,
        action: str = "Reconcile",
    ) -> None:
        self.seen.append((obj.metadata.name, kind, reason, note))

    def reasons(self) -> list[str]:
        return [reason for _, _, reason, _ in self.seen]


class Cluster:
    """Control and target cluster with the stores, and whatever controllers a test builds."""

    def __init__(self, *, target: bool = True, namespace: str = NAMESPACE) -> None:
        self.namespace = namespace
        self.clock = LoopClock(EPOCH)
        self.api = FakeApi(self.clock)
        client = self.api
        self.factory = InformerFactory(client, clock=self.clock, namespace=namespace)
        self.target = InformerFactory(client, clock=self.clock) if target else None
        self.events = RecordedEvents()
        self.context = ControllerContext(
            control=client,
            target=client if target else None,
            control_informers=self.factory,
            target_informers=self.target,
            namespace=namespace,
            clock=self.clock,
            events=self.events,
            provider=cast("Provider", None),
            options=ControllerSettings(),
            registry=CollectorRegistry(),
            random=random.Random(7),
        )

    @property
    def writes(self) -> list[Write]:
        return self.api.writes

    def get(self, resource: Resource[T], name: str) -> T:
        """Read from the server."""
        key = f"{self.namespace}/{name}" if resource.namespaced else name
        return _decode(resource, self.api.objects[resource.plural, key])

    def all(self, resource: Resource[T]) -> list[T]:
        found = (
            v for (plural, _), v in sorted(self.api.objects.items()) if plural == resource.plural
        )
        return [_decode(resource, obj) for obj in found]

    async def create(self, resource: Resource[T], body: JSONObject) -> T:
        """Somebody creates an object."""
        writer = self._factory_of(resource).writer
        return await writer.create(resource, body, namespace=self._namespace(resource))

    async def patch(
        self, resource: Resource[T], name: str, change: JSONObject, *, subresource: str = ""
    ) -> T:
        """Somebody changes an object."""
        return await self._factory_of(resource).writer.patch(
            resource,
            name,
            change,
            namespace=self._namespace(resource),
            subresource=subresource,
        )

    async def delete(self, resource: Resource[T], name: str) -> None:
        writer = self._factory_of(resource).writer
        await writer.delete(resource, name, namespace=self._namespace(resource))

    def behind(self, obj: KubeObject, resource: Resource[T]) -> None:
        """Let the stores learn of something that no answer told."""
        self._factory_of(resource).store(resource).observe(cast("T", obj))

    def show(
        self,
        objects: Mapping[tuple[str, str], JSONObject],
        resources: Iterable[Resource[KubeObject]],
        *,
        version: int,
    ) -> None:
        """Begin with ``objects``; versions of what is written from now on follow ``version``."""
        self.api.begin(objects, version)
        for resource in resources:
            for obj in self.all(resource):
                self._factory_of(resource).store(resource).observe(obj)

    def _factory_of(self, resource: Resource[T]) -> InformerFactory:
        return self.factory if resource.namespaced or self.target is None else self.target

    def _namespace(self, resource: Resource[T]) -> str:
        return self.namespace if resource.namespaced else ""


def play(scenario: Callable[[], Coroutine[object, object, R]]) -> R:
    """Run a test's coroutine on virtual time."""
    return run_virtual(scenario)


class Running:
    """Runs controllers while a test acts on the cluster."""

    def __init__(self, cluster: Cluster, controllers: Iterable[Controller]) -> None:
        self.cluster = cluster
        self._controllers = tuple(controllers)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(c.run()) for c in self._controllers]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def settle(self, seconds: float = 5.0) -> None:
        """Let whatever is going on go on for a while of virtual time."""
        await self.cluster.clock.sleep(seconds)
