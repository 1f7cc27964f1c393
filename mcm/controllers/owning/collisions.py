"""Whose the object is that has the name of a child that should be created."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

import msgspec

from mcm.api.meta import ObjectMeta, Resource, T
from mcm.client.errors import AlreadyExists
from mcm.client.verbs import ObjectWriter
from mcm.informers.store import Store


class NameHolder(Enum):
    """Who holds a name."""

    OURS = "a child of the owner itself"
    LEAVING = "a child of the owner that is being deleted"
    ORPHAN = "an object without a controller, which the owner does not select"
    FOREIGN = "another owner's child"


class NameTaken(AlreadyExists):
    """The name belongs to another object: only another name can help."""


def holder_of_name(present: ObjectMeta, owner_uid: str) -> NameHolder:
    """Tell how ``present`` stands to the owner that wants to use its name."""
    controller = present.controller_ref()
    if controller is None:
        return NameHolder.ORPHAN
    if controller.uid != owner_uid:
        return NameHolder.FOREIGN
    return NameHolder.OURS if present.deletion_timestamp is None else NameHolder.LEAVING


def name_taken(error: AlreadyExists, holder: str) -> NameTaken:
    """Return ``error`` with who holds the name."""
    return NameTaken(error.code, error.reason, f"{error.message}: it is {holder}")


async def create_or_find(
    writer: ObjectWriter,
    store: Store[T],
    resource: Resource[T],
    name: str,
    body: Mapping[str, object] | msgspec.Struct,
    *,
    owner: ObjectMeta,
    serves: Callable[[T], bool],
) -> tuple[T, bool]:
    """Create a child whose ``name`` follows from what it is; return it, and whether it is new.

    A child of ours that has the name already, and ``serves``, is as good as a new one: an earlier
    request was heard. Raises NameTaken if the name belongs to anything else, and AlreadyExists
    while the store does not show yet to what.
    """
    try:
        return await writer.create(resource, body, namespace=owner.namespace), True
    except AlreadyExists as error:
        present = store.get(f"{owner.namespace}/{name}")
        if present is None:
            raise
        holder = holder_of_name(present.metadata, owner.uid)
        if holder is not NameHolder.OURS:
            raise name_taken(error, holder.value) from error
        if not serves(present):
            raise name_taken(error, "a child of the owner that was made differently") from error
        return present, False
