"""Reads all that a drain of one Node looks at, once and by GET only."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from mcm.api.core import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    VOLUME_ATTACHMENTS,
    Node,
)
from mcm.api.meta import Resource, T, split_key
from mcm.client.errors import NotFound
from mcm.client.verbs import ObjectReader
from mcm.cluster_commands.connecting import read_all
from mcm.drain.observation import DrainStores
from mcm.drain.volumes import claim_keys_of
from mcm.informers import Store

_AT_ONCE: Final = 16
"""Requests under way at a time."""


async def read_stores(client: ObjectReader, node: Node) -> DrainStores:
    """Read the Node's pods, the budgets of their namespaces, and their claims and volumes.

    Of VolumeAttachments all, as the server selects none by Node. Raises what the client raises.
    """
    name = node.metadata.name
    pods = await read_all(client, PODS, field_selector=f"spec.nodeName={name}")
    namespaces = sorted({pod.metadata.namespace for pod in pods})
    claim_keys = sorted({key for pod in pods for key in claim_keys_of(pod)})
    turn = asyncio.Semaphore(_AT_ONCE)

    async def one(resource: Resource[T], key: str) -> T | None:
        namespace, object_name = split_key(key)
        async with turn:
            try:
                return await client.get(resource, object_name, namespace=namespace)
            except NotFound:
                return None

    async def every(resource: Resource[T], keys: Iterable[str]) -> list[T]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(resource, key)) for key in keys]
        return [found for task in tasks if (found := task.result()) is not None]

    budgets = [
        budget
        for namespace in namespaces
        for budget in await read_all(client, POD_DISRUPTION_BUDGETS, namespace=namespace)
    ]
    claims = await every(PERSISTENT_VOLUME_CLAIMS, claim_keys)
    names = sorted({claim.spec.volume_name for claim in claims if claim.spec.volume_name})
    volumes = await every(PERSISTENT_VOLUMES, names)
    attachments = await read_all(client, VOLUME_ATTACHMENTS) if names else ()
    return DrainStores(
        nodes=store_of([node]),
        pods=store_of(pods),
        budgets=store_of(budgets),
        claims=store_of(claims),
        volumes=store_of(volumes),
        attachments=store_of(attachments),
    )


def store_of(objects: Iterable[T]) -> Store[T]:
    """Return a store that holds just these."""
    store: Store[T] = Store()
    for obj in objects:
        store.put(obj)
    return store
