"""A large fleet, put into a server's store without a request: as many pools as it takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Final

import orjson

from bench.large_fleet.pattern import WORKLOAD
from bench.large_fleet.pool import COPIED, NAME, SHARED, Pool, pool_at_rest
from bench.large_fleet.volumes import volume_handle
from bench.large_fleet.workload import Entry, budgets_for, pods_on, volumes_on
from mcm.api.core import NODES, POD_DISRUPTION_BUDGETS, PODS
from mcm.api.meta import JSONObject, KubeObject, Resource
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.apiserver.store import Stored
from mcm.sandbox.cluster import create_all, first_objects

_IN_A_POOL: Final = 100
_IMAGES: Final = 20
_VERSION: Final = re.compile(rb'"resourceVersion":"[0-9]+"')
_UNNUMBERED: Final = b'"resourceVersion":"0"'
_UID: Final = re.compile(rb'"uid":"[0-9a-f]{4}')


@dataclass(frozen=True, slots=True)
class Size:
    """How many machines, each with a Node, and how many pods on all of them. Pools are whole: the
    last machines are left out if they make none."""

    machines: int = 10_000
    pods: int = 100_000
    in_a_pool: int = _IN_A_POOL

    @property
    def pools(self) -> int:
        return self.machines // self.in_a_pool

    @classmethod
    def of(cls, machines: int, pods: int) -> Size:
        """Return a size in pools of a hundred, or in one if there are fewer machines."""
        return cls(machines, pods, min(_IN_A_POOL, machines))


async def stored(server: ApiServer, size: Size, pool: Pool) -> None:
    """Fill the store of ``server``, which nobody has asked yet. ``pool``: ``size.in_a_pool``
    machines at rest."""
    await create_all(server, [*first_objects(), _namespace()])
    nodes: list[str] = []
    for resource in COPIED:
        found = list(islice(_copies(pool[resource]), size.pools * len(pool[resource])))
        if resource is NODES:
            nodes = [entry.name for entry in found]
            found = [_with_volume(entry, size, number) for number, entry in enumerate(found)]
        _restore(server, resource, found)
    for resource in SHARED:
        _restore(server, resource, map(_entry_of, pool[resource]))
    _restore(server, PODS, pods_on(nodes, size.pods))
    _restore(server, POD_DISRUPTION_BUDGETS, budgets_for(nodes, size.pods))
    volumes: dict[Resource[KubeObject], list[Entry]] = {}
    for resource, entry in volumes_on(nodes, size.pods):
        volumes.setdefault(resource, []).append(entry)
    for resource, entries in volumes.items():
        _restore(server, resource, entries)


def settled(size: Size) -> Pool:
    """Return the pool of which a fleet of that size is made. Runs a loop of its own."""
    return pool_at_rest(size.in_a_pool)


def _copies(bodies: Sequence[bytes]) -> Iterator[Entry]:
    """Yield the objects of one pool after the other, without an end."""
    patterns = [_entry_of(body) for body in bodies]
    for number in count():
        name = f"pool-{number:04d}"
        for entry in patterns:
            body = entry.body.replace(NAME.encode(), name.encode())
            # What refers to an object does so by the same digits.
            body = _UID.sub(b'"uid":"%04x' % number, body)
            yield Entry(entry.namespace, entry.name.replace(NAME, name), body)


def _entry_of(body: bytes) -> Entry:
    meta = orjson.loads(body)["metadata"]
    unnumbered = _VERSION.sub(_UNNUMBERED, body, count=1)
    return Entry(meta.get("namespace", ""), meta["name"], unnumbered)


def _with_volume(entry: Entry, size: Size, number: int) -> Entry:
    """Put into a Node's status what a real one has there: images, and the volume of its pod."""
    status = orjson.dumps({"images": _images(), **_volume(size, number)})
    body = entry.body.replace(b'"nodeInfo":', status[1:-1] + b',"nodeInfo":', 1)
    return Entry(entry.namespace, entry.name, body)


def _images() -> list[JSONObject]:
    return [
        {
            "names": [
                f"registry.example.com/shop/image-{n}@sha256:" + "0a1b" * 16,
                f"registry.example.com/shop/image-{n}:v1.{n}.0",
            ],
            "sizeBytes": 100_000_000 + n,
        }
        for n in range(_IMAGES)
    ]


def _volume(size: Size, node: int) -> JSONObject:
    number = size.pools * size.in_a_pool + node
    if number >= size.pods:
        return {}
    name = volume_handle(number)
    return {"volumesInUse": [name], "volumesAttached": [{"name": name, "devicePath": ""}]}


def _namespace() -> JSONObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": WORKLOAD}}


def _restore(server: ApiServer, resource: Resource[KubeObject], entries: Iterable[Entry]) -> None:
    storage = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
    first = server.store.revision + 1
    server.store.restore(
        storage,
        (
            Stored.restored(
                entry.namespace,
                entry.name,
                entry.body.replace(_UNNUMBERED, b'"resourceVersion":"%d"' % revision, 1),
                api_version=resource.api_version,
                revision=revision,
            )
            for revision, entry in enumerate(entries, first)
        ),
    )
