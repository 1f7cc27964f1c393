"""The same request for many objects at once, where one refusal concerns one object only."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from mcm.api.meta import JSONObject, ObjectMeta, Resource, T
from mcm.client.errors import KubeError, NotFound
from mcm.client.verbs import ObjectWriter
from mcm.controllers.preconditions import for_this_object

Item = TypeVar("Item")


async def fan_out(
    act: Callable[[Item], Awaitable[None]], items: Iterable[Item]
) -> tuple[KubeError, ...]:
    """Call ``act`` for every item concurrently; return the client's errors, in no certain order.

    How many requests are really under way at once is the client's to bound. Anything else that
    ``act`` raises cancels the others and leaves as an ExceptionGroup.
    """
    errors: list[KubeError] = []

    async def guarded(item: Item) -> None:
        try:
            await act(item)
        except KubeError as error:
            errors.append(error)

    async with asyncio.TaskGroup() as group:
        for item in items:
            group.create_task(guarded(item))
    return tuple(errors)


async def patch_each(
    writer: ObjectWriter,
    resource: Resource[T],
    changes: Iterable[tuple[ObjectMeta, JSONObject]],
    *,
    bound: Callable[[ObjectMeta, JSONObject], JSONObject] = for_this_object,
) -> tuple[KubeError, ...]:
    """Apply to each object its change, ``bound`` to the object meant; return the refusals.

    One that is gone by now needs no change any more.
    """

    async def patch(pair: tuple[ObjectMeta, JSONObject]) -> None:
        meta, change = pair
        try:
            await writer.patch(resource, meta.name, bound(meta, change), namespace=meta.namespace)
        except NotFound:
            return

    return await fan_out(patch, changes)


def raise_together(message: str, errors: Iterable[KubeError]) -> None:
    """Raise the only error as it is, several as an ExceptionGroup, none not at all."""
    raised = tuple(errors)
    if len(raised) == 1:
        raise raised[0]
    if raised:
        raise ExceptionGroup(message, raised)
