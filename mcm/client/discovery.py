"""Asks at start-up whether the server knows a resource, to say "CRDs missing" and not 404."""

from __future__ import annotations

import msgspec

from mcm.api.meta import KubeObject, Resource
from mcm.client.client import Client
from mcm.client.errors import NotFound, ProtocolError


class _Served(msgspec.Struct, frozen=True):
    name: str


class _ResourceList(msgspec.Struct, frozen=True):
    resources: tuple[_Served, ...] | None


async def served(client: Client, resource: Resource[KubeObject]) -> bool:
    """Tell whether the resource's group and version are served, and the resource among them.

    False only if the server said so (404, or a list without it); any other failure is raised.
    """
    return resource.plural in await served_plurals(client, resource.group, resource.version)


async def served_plurals(client: Client, group: str, version: str) -> frozenset[str]:
    """Return what is served of a group in a version, by plural names; nothing if it is unknown."""
    place = f"/apis/{group}" if group else "/api"
    try:
        body = await client.get_raw(f"{place}/{version}")
    except NotFound:
        return frozenset()
    try:
        found = msgspec.json.decode(body, type=_ResourceList)
    except msgspec.DecodeError as error:
        name = f"{group}/{version}" if group else version
        raise ProtocolError(f"cannot read the resources of {name}") from error
    return frozenset(entry.name for entry in found.resources or ())
