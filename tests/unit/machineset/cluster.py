"""A cluster for controllers that read stores and write through a writer.

The server is the sandbox's, and everything above it (writer, stores, handlers, queues, workers) is
the real thing; there is no watch, since a writer's answers reach the stores at once.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Self, TypeVar, cast

import orjson
from prometheus_client import CollectorRegistry

from mcm.api.codec import read_object
from mcm.api.meta import JSONObject, KubeObject, Resource, T
from mcm.client.errors import KubeError, error_from_status
from mcm.client.requests import Call
from mcm.client.transport import Lane, Response, StreamResponse
from mcm.client.verbs import ObjectClient
from mcm.clock import LoopClock
from mcm.controllers.context import ControllerContext
from mcm.controllers.provider import Provider
from mcm.controllers.runtime import Controller
from mcm.controllers.settings import ControllerSettings
from mcm.informers import InformerFactory
from mcm.sandbox.apiserver.patches import apply_merge_patch
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.server import ApiServer, ServerSettings
from mcm.sandbox.apiserver.store import Stored
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


class Api(ObjectClient):
    """A client of a sandbox's server, which keeps the rules; records what is written.

    ``refuse`` may return an error for a write before it happens, ``lose`` after. Kinds and
    namespaces are there as soon as they are asked for; no schema is checked. The server's state can
    be changed behind everybody's back: ``put``, ``alter``, ``remove``.
    """

    def __init__(self, clock: LoopClock) -> None:
        self.writes: list[Write] = []
        self.refuse: Callable[[Write], KubeError | None] = lambda _: None
        self.lose: Callable[[Write], KubeError | None] = lambda _: None
        self.server = ApiServer(
            clock=_BeforeTheLoop(clock),
            random=random.Random(11),
            settings=ServerSettings(raise_bugs=True, managed_fields=False),
        )
        self._clock = clock

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        """Answer the mutating verbs, and GET for what must be certain; all else is wrong here."""
        assert call.resource is not None
        assert call.verb in ("GET", "CREATE", "PATCH", "DELETE"), f"nobody should {call.verb} here"
        self._serve(call.resource, call.namespace)
        await self._clock.sleep(0)
        if call.verb == "GET":
            return read(self._answer(call))
        sent: JSONObject = orjson.loads(call.body) if call.body else {}
        name = call.name or str(_meta(sent)["name"])
        body = {} if call.verb == "DELETE" else sent
        write = Write(call.verb.lower(), call.resource.plural, name, body, call.subresource)
        self.writes.append(write)
        if error := self.refuse(write):
            raise error
        response = self._answer(call)
        if error := self.lose(write):
            raise error
        return read(response)

    def follow(
        self, call: Call, *, read_timeout: float | None
    ) -> AbstractAsyncContextManager[StreamResponse]:
        raise AssertionError("there is no watch here")

    def _answer(self, call: Call) -> Response:
        request = call.request(user_agent="mcm", lane=Lane.REQUEST, timeout=30.0)
        response = self.server.respond(request)
        assert isinstance(response, Response)
        if response.status >= 300:
            raise error_from_status(response.status, response.body)
        return response

    # ---- behind everybody's back ----------------------------------------------------------------

    def all(self, resource: Resource[T]) -> list[JSONObject]:
        return self.server.objects(resource.group, resource.plural)

    def stored(self, resource: Resource[T], name: str, namespace: str = "") -> JSONObject:
        return self._stored(resource, name, namespace).body

    def put(self, resource: Resource[T], obj: JSONObject) -> None:
        """Let an object be there as it is, under the server's next version."""
        meta = _meta(obj)
        namespace = str(meta.get("namespace", ""))
        info = self._serve(resource, namespace)
        body = {"apiVersion": info.api_version, "kind": info.kind, **obj, "metadata": dict(meta)}
        self.server.store.create(info.storage, namespace, str(meta["name"]), body)

    def alter(
        self, resource: Resource[T], name: str, change: JSONObject, namespace: str = ""
    ) -> None:
        """Merge ``change`` into an object past all rules."""
        stored = self._stored(resource, name, namespace)
        body = apply_merge_patch(stored.body, change)
        body = {**body, "metadata": dict(_meta(body))}
        self.server.store.replace(self._serve(resource).storage, stored, body)

    def remove(self, resource: Resource[T], name: str, namespace: str = "") -> None:
        stored = self._stored(resource, name, namespace)
        self.server.store.delete(self._serve(resource).storage, stored)

    def _stored(self, resource: Resource[T], name: str, namespace: str) -> Stored:
        storage = self._serve(resource, namespace).storage
        key = f"{namespace}/{name}" if namespace else name
        found = self.server.store.collection(storage).get(key)
        if found is None:
            raise KeyError(f"there is no {storage} {key}")
        return found

    def _serve(self, resource: Resource[T], namespace: str = "") -> ResourceInfo:
        registry = self.server.registry
        info = registry.find(resource.group, resource.version, resource.plural)
        if info is None:
            info = ResourceInfo(
                resource.group,
                resource.version,
                resource.plural,
                resource.kind,
                namespaced=resource.namespaced,
                subresources=frozenset({"status"}),
            )
            registry.add(info)
        if namespace and self.server.store.collection("namespaces").get(namespace) is None:
            body: JSONObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {}}
            self.server.store.create("namespaces", "", namespace, body)
        return info


class _BeforeTheLoop:
    """A loop's clock that can be asked before there is a loop, whose time begins at zero."""

    def __init__(self, clock: LoopClock) -> None:
        self._clock = clock

    def now(self) -> datetime:
        try:
            return self._clock.now()
        except RuntimeError:
            return EPOCH

    def monotonic(self) -> float:
        return (self.now() - EPOCH).total_seconds()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


def _meta(obj: JSONObject) -> JSONObject:
    return cast("JSONObject", obj["metadata"])


def _decode(resource: Resource[T], obj: JSONObject) -> T:
    return read_object(resource, orjson.dumps(obj))


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
        self.api = Api(self.clock)
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
        return _decode(resource, self.api.stored(resource, name, self._namespace(resource)))

    def all(self, resource: Resource[T]) -> list[T]:
        return [_decode(resource, obj) for obj in self.api.all(resource)]

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

    def catch_up(self, resource: Resource[T]) -> None:
        """Let the store learn of all that no answer told, deletions included."""
        store = self._factory_of(resource).store(resource)
        current = self.all(resource)
        for each in current:
            store.observe(each)
        uids = {each.metadata.uid for each in current}
        for known in store.list():
            if known.metadata.uid not in uids:
                store.observe_deleted(known)

    def show(self, resource: Resource[T], objects: Iterable[JSONObject]) -> None:
        """Begin with ``objects``, on the server and in the store."""
        for obj in objects:
            self.api.put(resource, obj)
        for each in self.all(resource):
            self._factory_of(resource).store(resource).observe(each)

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
