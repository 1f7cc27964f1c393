"""A namespace to measure in: made with all kinds defined, and left without a trace."""

from __future__ import annotations

import asyncio
import base64
import random
import string
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Final

from bench.instant import manifests
from mcm.api.core import LEASES, NODES, SECRETS, Secret
from mcm.api.machine import MACHINE_CLASSES, MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject, KubeObject, Resource
from mcm.client.client import Client
from mcm.client.errors import NotFound
from mcm.clock import SystemClock
from mcm.launcher.installation import NAMESPACES, install, planned

_TOKENS = "kube-system"
_PAGE: Final = 500
_AT_ONCE: Final = 32


def new_name() -> str:
    return "mcm-bench-" + "".join(random.choices(string.ascii_lowercase, k=6))


@asynccontextmanager
async def prepared(
    client: Client,
    namespace: str,
    machine_class: JSONObject,
    *,
    bootstrap_tokens: bool,
    clean: bool,
) -> AsyncIterator[None]:
    """Have the namespace with the classes of a fleet in it; then, if ``clean``, delete whatever
    was made there or for it, finalizers or not. The manager must have ended by then.
    ``machine_class`` has fields for the classes, whose user data asks for ``bootstrap_tokens`` or
    for none.

    Raises what :func:`mcm.launcher.installation.planned` does for a cluster that cannot be used.
    """
    await install(client, await planned(client, (), namespace), SystemClock())
    try:
        secret = manifests.secret(bootstrap_tokens=bootstrap_tokens)
        await client.create(SECRETS, secret, namespace=namespace)
        for name in manifests.CLASSES:
            body = manifests.machine_class(name, namespace, machine_class)
            await client.create(MACHINE_CLASSES, body, namespace=namespace)
        yield
    finally:
        if clean:
            await remove(client, namespace)


async def remove(client: Client, namespace: str) -> None:
    """Delete all that a run left behind: what is in the namespace, its Nodes and their tokens."""
    machines = await _names(client, MACHINES, namespace)
    for kind in (MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES, MACHINE_CLASSES, SECRETS):
        await _delete_all(client, kind, await _names(client, kind, namespace), namespace)
    label = f"{manifests.FLEET_LABEL}={namespace}"
    await _delete_all(client, NODES, await _names(client, NODES, "", label), "")
    leases = await _names(client, LEASES, manifests.LEASES_OF_NODES, label)
    await _delete_all(client, LEASES, leases, manifests.LEASES_OF_NODES)
    await _delete_all(client, SECRETS, await _tokens_of(client, machines, namespace), _TOKENS)
    with suppress(NotFound):
        await client.delete(NAMESPACES, namespace)


async def _names(
    client: Client, kind: Resource[KubeObject], namespace: str, label_selector: str = ""
) -> list[str]:
    names: list[str] = []
    token = ""
    while True:
        page = await client.list_page(
            kind,
            namespace=namespace,
            label_selector=label_selector,
            limit=_PAGE,
            continue_token=token,
        )
        names += [item.metadata.name for item in page.items]
        token = page.continue_token
        if not token:
            return names


async def _tokens_of(client: Client, machines: Iterable[str], namespace: str) -> list[str]:
    """Return the bootstrap tokens whose description names one of these machines."""
    words = [f"{namespace}/", *(f'"{name}"' for name in machines)]
    page = await client.list_page(SECRETS, namespace=_TOKENS)
    return [
        item.metadata.name
        for item in page.items
        if item.metadata.name.startswith("bootstrap-token-")
        and any(word in _description(item) for word in words)
    ]


def _description(token: Secret) -> str:
    try:
        return base64.b64decode(token.data.get("description", "")).decode(errors="replace")
    except ValueError:
        return ""


async def _delete_all(
    client: Client, kind: Resource[KubeObject], names: Iterable[str], namespace: str
) -> None:
    turns = asyncio.Semaphore(_AT_ONCE)

    async def delete(name: str) -> None:
        async with turns:
            with suppress(NotFound):
                left = await client.delete(kind, name, namespace=namespace)
                if left is not None:
                    free = {"metadata": {"finalizers": None}}
                    await client.patch(kind, name, free, namespace=namespace)

    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(delete(name))
