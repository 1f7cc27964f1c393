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
    root = f"/apis/{resource.group}" if resource.group else "/api"
    try:
        body = await client.get_raw(f"{root}/{resource.version}")
    except NotFound:
        return False
    try:
        found = msgspec.json.decode(body, type=_ResourceList)
    except msgspec.DecodeError as error:
        raise ProtocolError(f"cannot read the resources of {resource.api_version}") from error
    return any(entry.name == resource.plural for entry in found.resources or ())
