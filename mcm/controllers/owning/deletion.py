"""Deleting children of an owner: each the one that was seen, none twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mcm.api.meta import Resource, T
from mcm.client.errors import KubeError, NotFound
from mcm.client.verbs import ObjectWriter
from mcm.controllers.fanout import fan_out


async def delete_children(
    writer: ObjectWriter,
    resource: Resource[T],
    children: Iterable[T],
    *,
    unchanged: bool = False,
    tell: Callable[[T, KubeError | None], None] = lambda *_: None,
) -> Sequence[KubeError]:
    """Delete those of ``children`` that are not being deleted yet, all at once; return refusals.

    With ``unchanged`` only as they were seen. ``tell`` hears of each what became of it; one that
    somebody else deleted meanwhile is not worth a word.
    """

    async def delete_one(child: T) -> None:
        meta = child.metadata
        version = meta.resource_version if unchanged else ""
        try:
            await writer.delete(
                resource,
                meta.name,
                namespace=meta.namespace,
                uid=meta.uid,
                resource_version=version,
            )
        except NotFound:
            return
        except KubeError as error:
            tell(child, error)
            raise
        tell(child, None)

    leaving = (c for c in children if c.metadata.deletion_timestamp is None)
    return await fan_out(delete_one, leaving)
