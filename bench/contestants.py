"""The same work by several clients: list, watch, keep an indexed mirror, enqueue keys.

Every contestant is used as its own documentation has it, with its types for Nodes and its form of
untyped objects for Machines. Those that bring no store fill a :class:`.mirror.PlainMirror`. None of
the foreign ones is needed: each is imported when it runs, and by name, as most have no types.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from bench.mirror import CAMEL_CASE, DICTS, SNAKE_CASE, PlainMirror, Race, View
from bench.recorded_objects import Kind
from mcm.api import codec
from mcm.api.meta import KubeObject
from mcm.client.client import Client
from mcm.client.connection import ConnectionSpec
from mcm.client.http import HTTPTransport
from mcm.clock import SystemClock
from mcm.informers import Change, Informer
from mcm.informers.lines import LineSplitter
from mcm.informers.watch_events import Event, FrameDecoder

_FOREVER = 3600


@dataclass(frozen=True, slots=True)
class Contestant:
    """``run`` mirrors ``kind`` from the server at a URL, and never ends by itself. ``modules`` are
    those it uses, beginning with the package that is installed."""

    run: Callable[[str, Kind, Race], Awaitable[None]]
    modules: tuple[str, ...]

    @property
    def package(self) -> str:
        return self.modules[0]

    @property
    def installed(self) -> bool:
        return importlib.util.find_spec(self.package) is not None

    @property
    def version(self) -> str:
        return importlib.metadata.version(self.package)

    def prepare(self) -> None:
        """Import everything, so that it is not measured."""
        for module in self.modules:
            importlib.import_module(module)


async def _mcm(url: str, kind: Kind, race: Race) -> None:
    clock = SystemClock()
    client = Client(HTTPTransport(ConnectionSpec(url), clock=clock), clock=clock)
    informer = Informer(client, kind.resource, clock=clock, randomness=random.Random(0))
    for label in kind.indexed:
        informer.store.add_index(label, _by_label(label))
    told = 0

    def handle(change: Change[KubeObject]) -> None:
        nonlocal told
        meta = change.object.metadata
        if not change.initial:
            race.changed(meta.key, meta.resource_version)
            return
        race.queue.add(meta.key)
        told += 1
        if told == race.count:
            race.listed()

    informer.add_handler(handle)
    race.size = informer.store.__len__
    try:
        await informer.run()
    finally:
        await client.aclose()


async def _bare(url: str, kind: Kind, race: Race) -> None:
    """Read, cut into lines, decode, keep: what is left when a mirror has no index, no queue and
    nothing that protects it. No contestant, but the measure of what the machine can do."""
    decode = FrameDecoder(kind.resource).decode
    async with aiohttp.ClientSession(url, read_bufsize=256 * 1024) as session:
        async with session.get(kind.path) as answer:
            listed = codec.decode_list(kind.resource, await answer.read())
        objects = {obj.metadata.key: obj for obj in listed.items}
        race.size = objects.__len__
        race.listed()
        splitter = LineSplitter()
        async with session.get(kind.path, params={"watch": "true"}, timeout=None) as answer:
            async for chunk in answer.content.iter_any():
                for line in splitter.feed(chunk):
                    frame = decode(line)
                    assert isinstance(frame, Event)
                    meta = frame.object.metadata
                    objects[meta.key] = frame.object
                    race.kept(meta.resource_version)


def _by_label(label: str) -> Callable[[KubeObject], Iterable[str]]:
    def values(obj: KubeObject) -> Iterable[str]:
        value = obj.metadata.labels.get(label)
        return (value,) if value else ()

    return values


async def _kubernetes_asyncio(url: str, kind: Kind, race: Race) -> None:
    library = importlib.import_module("kubernetes_asyncio")
    async with library.client.ApiClient(library.client.Configuration(host=url)) as api:
        lister, fixed = _lister(library, api, kind)
        view, listed = _lists_of(await lister(**fixed))
        mirror = PlainMirror(view, kind.indexed, race)
        for obj in listed.items:
            mirror.listed(obj)
        version = listed.version
        del listed
        race.listed()
        watch = library.watch.Watch()
        async for event in watch.stream(lister, resource_version=version, **fixed):
            mirror.event(event["type"], event["object"])


@dataclass(frozen=True, slots=True)
class _Listed:
    items: Iterable[Any]
    version: str


def _lister(library: Any, api: Any, kind: Kind) -> tuple[Any, Mapping[str, str]]:
    """Return the method that lists and watches ``kind``, and its fixed arguments."""
    resource = kind.resource
    if not resource.group:
        return library.client.CoreV1Api(api).list_node, {}
    return library.client.CustomObjectsApi(api).list_cluster_custom_object, {
        "group": resource.group,
        "version": resource.version,
        "plural": resource.plural,
    }


def _lists_of(answer: Any) -> tuple[View[Any], _Listed]:
    if isinstance(answer, dict):
        return DICTS, _Listed(answer["items"], answer["metadata"]["resourceVersion"])
    return SNAKE_CASE, _Listed(answer.items, answer.metadata.resource_version)


async def _lightkube(url: str, kind: Kind, race: Race) -> None:
    library = importlib.import_module("lightkube")
    models = importlib.import_module("lightkube.config.models")
    config = library.KubeConfig.from_one(
        cluster=models.Cluster(server=url), user=models.User(), namespace="default"
    )
    client = library.AsyncClient(config)
    resource = kind.resource
    if resource.group:
        generic = importlib.import_module("lightkube.generic_resource")
        model = generic.create_namespaced_resource(
            resource.group, resource.version, resource.kind, resource.plural
        )
        scope = {"namespace": "*"}
    else:
        model = importlib.import_module("lightkube.resources.core_v1").Node
        scope = {}
    mirror = PlainMirror(CAMEL_CASE, kind.indexed, race)
    listing = client.list(model, **scope)
    async for obj in listing:
        mirror.listed(obj)
    version = listing.resourceVersion
    race.listed()
    watching = client.watch(model, resource_version=version, server_timeout=_FOREVER, **scope)
    async for event, obj in watching:
        mirror.event(event, obj)


async def _kopf(url: str, kind: Kind, race: Race) -> None:
    """kopf's own watch stream, without the per-object workers its operator runs behind it."""
    kopf = importlib.import_module("kopf")
    watching = importlib.import_module("kopf._cogs.clients.watching")
    auth = importlib.import_module("kopf._cogs.clients.auth")
    credentials = importlib.import_module("kopf._cogs.structs.credentials")
    references = importlib.import_module("kopf._cogs.structs.references")
    auth.vault_var.set(credentials.Vault({"it": kopf.ConnectionInfo(server=url)}))
    resource = kind.resource
    stream = watching.infinite_watch(
        settings=kopf.OperatorSettings(),
        resource=references.Resource(
            resource.group,
            resource.version,
            resource.plural,
            kind=resource.kind,
            namespaced=resource.namespaced,
        ),
        namespace=None,
    )
    mirror = PlainMirror(DICTS, kind.indexed, race)
    async for event in stream:
        if event is watching.Bookmark.LISTED:
            race.listed()
        elif event["type"] is None:
            mirror.listed(event["object"])
        else:
            mirror.event(event["type"], event["object"])


async def _aiok8s(url: str, kind: Kind, race: Race) -> None:
    """aiok8s's shared index informer, which lists and watches through kubernetes_asyncio."""
    library = importlib.import_module("kubernetes_asyncio")
    informers = importlib.import_module("aiok8s.cache.shared_informer")
    indexes = importlib.import_module("aiok8s.cache.index")
    sources = importlib.import_module("aiok8s.cache.list_watch")
    async with library.client.ApiClient(library.client.Configuration(host=url)) as api:
        lister, fixed = _lister(library, api, kind)
        view: View[Any] = DICTS if kind.resource.group else SNAKE_CASE

        async def list_all(options: Mapping[str, Any]) -> Any:
            return await lister(**fixed, **options)

        async def watch(options: Mapping[str, Any]) -> Any:
            await race.list_done.wait()  # else it would read ahead, and list and watch mix
            return library.watch.Watch().stream(lister, **fixed, **options)

        informer = informers.new_shared_index_informer(
            sources.ListWatch(list_all, watch),
            None,
            0,
            indexes.Indexers({label: _values(view, label) for label in kind.indexed}),
        )
        race.size = lambda: len(informer.get_indexer().list_keys())
        await informer.add_event_handler(_Handler(informer, view, race))
        await informer.run()


def _values(view: View[Any], label: str) -> Callable[[Any], list[str]]:
    def values(obj: Any) -> list[str]:
        value = view.labels(obj).get(label)
        return [value] if value else []

    return values


class _Handler:
    """The list is in when the last of its additions was told, and nothing waits any more."""

    def __init__(self, informer: Any, view: View[Any], race: Race) -> None:
        self._informer = informer
        self._view = view
        self._race = race
        self._told = 0

    async def on_add(self, obj: Any) -> None:
        self._race.queue.add(self._view.key(obj))
        self._told += 1
        if self._informer.has_synced() and self._told == self._race.size():
            self._race.listed()

    async def on_update(self, old: Any, new: Any) -> None:
        self._race.changed(self._view.key(new), self._view.version(new))

    async def on_delete(self, obj: Any) -> None:
        self._race.changed(self._view.key(obj), self._view.version(obj))


CONTESTANTS: Mapping[str, Contestant] = {
    "mcm": Contestant(_mcm, ("mcm",)),
    "bare": Contestant(_bare, ("msgspec", "aiohttp")),
    "lightkube": Contestant(
        _lightkube, ("lightkube", "lightkube.generic_resource", "lightkube.resources.core_v1")
    ),
    "kopf": Contestant(_kopf, ("kopf", "kopf._cogs.clients.watching")),
    "kubernetes_asyncio": Contestant(_kubernetes_asyncio, ("kubernetes_asyncio",)),
    "aiok8s": Contestant(_aiok8s, ("aiok8s", "aiok8s.cache.shared_informer", "kubernetes_asyncio")),
}
