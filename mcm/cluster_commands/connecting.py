"""Finds the cluster that a command talks to as kubectl finds it, and reads whole collections."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from mcm.api.meta import Resource, T
from mcm.client import incluster
from mcm.client.client import Client
from mcm.client.connection import ConnectionSpec
from mcm.client.errors import ConfigurationError, Gone
from mcm.client.http import HTTPTransport
from mcm.client.verbs import ObjectReader
from mcm.clock import Clock

_PAGE: Final = 500


@final
@dataclass(frozen=True, slots=True)
class Connected:
    """An API server, and the namespace in which its user works unless told otherwise."""

    client: Client
    namespace: str


def connect(
    kubeconfig: Path | None,
    *,
    context: str,
    clock: Clock,
    user_agent: str,
    flag: str = "--kubeconfig",
) -> Connected:
    """Connect to what is named (by ``flag``), else what kubectl would, else the pod's own cluster.

    Raises ConfigurationError, whose text names the file or flag and the remedy.
    """
    found = _specification(kubeconfig, context, flag)
    client = Client(HTTPTransport(found, clock=clock), clock=clock, user_agent=user_agent)
    return Connected(client, found.namespace or "default")


def _specification(path: Path | None, context: str, flag: str) -> ConnectionSpec:
    from mcm.client import kubeconfig  # costs 60 MiB of imports

    if path is None and not context and not kubeconfig.candidates() and incluster.available():
        return incluster.load()
    try:
        return kubeconfig.load(str(path) if path else None, context=context or None)
    except ConfigurationError as error:
        raise ConfigurationError(f"{flag}: {error}" if path else str(error)) from error


async def read_all(
    client: ObjectReader,
    resource: Resource[T],
    *,
    namespace: str = "",
    label_selector: str = "",
    field_selector: str = "",
) -> tuple[T, ...]:
    """Read a collection in pages; as a whole where its pages expire. Raises what the client does.

    Without a namespace: of all.
    """
    items: list[T] = []
    token = ""
    while True:
        try:
            page = await client.list_page(
                resource,
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=_PAGE,
                continue_token=token,
            )
        except Gone:  # what was begun is no longer kept
            whole = await client.list_page(
                resource,
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
            )
            return whole.items
        items += page.items
        token = page.continue_token
        if not token:
            return tuple(items)
