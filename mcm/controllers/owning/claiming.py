"""Adopting and releasing, so that an owner controls what it selects and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, final

from mcm.api.meta import JSONObject, ObjectMeta
from mcm.client.errors import Conflict, KubeError, NotFound
from mcm.client.verbs import ObjectReader, ObjectWriter
from mcm.controllers.fanout import patch_each, raise_together
from mcm.controllers.owning.abandoned import abandoned_for
from mcm.controllers.owning.claims import (
    adoption,
    claims_of,
    controller_reference,
    kept_of,
    release,
    same_bonds,
)
from mcm.controllers.owning.index import (
    children_of,
    index_by_owner,
    index_by_uid,
    orphans_for,
)
from mcm.controllers.owning.outcome import is_refusal
from mcm.controllers.owning.ownership import Child, Owner, Ownership
from mcm.controllers.preconditions import for_this_version
from mcm.informers.store import Store


class OwnerGone(Conflict):
    """The owner was deleted, or replaced under its name, and the store does not know it yet."""


@final
class Claimer(Generic[Owner, Child]):
    """Claims children for the owners of one :class:`Ownership`; keeps nothing between calls."""

    def __init__(
        self,
        ownership: Ownership[Owner, Child],
        owners: Store[Owner],
        children: Store[Child],
        *,
        reader: ObjectReader,
        writer: ObjectWriter,
    ) -> None:
        index_by_uid(owners)
        index_by_owner(children)
        self._ownership = ownership
        self._owners = owners
        self._children = children
        self._reader = reader
        self._writer = writer

    def owned(self, owner: Owner) -> Sequence[Child]:
        """Return the children that are the owner's now, those on their way out included."""
        meta, selector = owner.metadata, self._ownership.selector(owner)
        return kept_of(meta, selector, children_of(self._children, meta.uid))

    def abandoned(self, owner: Owner) -> Sequence[Child]:
        """Return the children that may soon be the owner's: it selects them, and whoever they still
        refer to is gone or gives them up (:mod:`.abandoned`)."""
        return abandoned_for(
            self._ownership.owner.kind,
            self._ownership.selector(owner),
            owner.metadata.namespace,
            owners=self._owners,
            children=self._children,
        )

    async def claim(self, owner: Owner) -> Sequence[KubeError]:
        """Adopt the orphans that ``owner`` selects, and release what it selects no more.

        Returns the refusals that no retry will change; they keep nobody from going on. Raises,
        after everything was tried, what leaves open whose an orphan is: an owner that went on
        regardless could make a child too many. Raises :class:`OwnerGone` before any adoption.
        """
        meta, selector = owner.metadata, self._ownership.selector(owner)
        claims = claims_of(
            meta,
            selector,
            children=self._legible(children_of(self._children, meta.uid)),
            orphans=self._legible(orphans_for(self._children, selector, meta.namespace)),
        )
        if claims.adopt:
            await self._prove_alive(meta)
        reference = controller_reference(self._ownership.owner, meta)
        released = await self._patch_each(
            (c.metadata, release(c.metadata, meta.uid)) for c in claims.release
        )
        adopted = await self._patch_each(
            (c.metadata, adoption(c.metadata, reference)) for c in claims.adopt
        )
        open_ends = [error for error in adopted if not is_refusal(error)]
        raise_together(f"orphans of {self._ownership.owner.kind} {meta.key}", open_ends)
        return (*released, *adopted)

    async def _prove_alive(self, owner: ObjectMeta) -> None:
        """Ask the server, not the store: what a dead owner adopts, the garbage collector deletes.

        Raises OwnerGone, or whatever else the client does."""
        resource = self._ownership.owner
        try:
            found = await self._reader.get(resource, owner.name, namespace=owner.namespace)
        except NotFound as error:
            raise _gone(resource.kind, owner, "it does not exist any more") from error
        if found.metadata.uid != owner.uid:
            raise _gone(resource.kind, owner, "it is another object of the same name by now")
        if found.metadata.deletion_timestamp is not None:
            raise _gone(resource.kind, owner, "it is being deleted")

    def _legible(self, found: Iterable[Child]) -> Iterator[Child]:
        """Leave out those whose newest state cannot be read: whatever would be decided about the
        last legible one, the server would refuse for as long as that lasts."""
        unreadable = self._children.unreadable
        return (child for child in found if child.metadata.key not in unreadable)

    async def _patch_each(
        self, changes: Iterable[tuple[ObjectMeta, JSONObject]]
    ) -> Sequence[KubeError]:
        return await patch_each(
            self._writer,
            self._ownership.child,
            ((self._latest(child), change) for child, change in changes),
            bound=for_this_version,
        )

    def _latest(self, child: ObjectMeta) -> ObjectMeta:
        """Return the newest known state of a child, if its bonds are as they were when the claim
        was made: what else was written since changes the version, and not the decision."""
        latest = self._children.get(child.key)
        if latest is not None and same_bonds(latest.metadata, child):
            return latest.metadata
        return child


def _gone(kind: str, owner: ObjectMeta, why: str) -> OwnerGone:
    return OwnerGone(409, "Conflict", f"{kind} {owner.key} adopts nothing: {why}")
