"""Writing on the owner itself: its finalizer, its status, and changes of its own."""

from __future__ import annotations

from typing import Generic, TypeVar, cast, final

import msgspec

from mcm.api.codec import to_json_object
from mcm.api.meta import JSONObject, Resource
from mcm.api.patches import explicit_zeros, merge_diff, zero_counters
from mcm.client.errors import KubeError, NotFound
from mcm.client.verbs import ObjectWriter
from mcm.controllers.finalizers import with_finalizer, without_finalizer
from mcm.controllers.owning.outcome import may_have_happened
from mcm.controllers.owning.ownership import Owner
from mcm.controllers.preconditions import for_this_version

Status = TypeVar("Status", bound=msgspec.Struct)


def status_change(old: Status, wanted: Status) -> JSONObject:
    """Return the merge patch from one status to the other; empty if they are equal."""
    difference = merge_diff(to_json_object(old), to_json_object(wanted))
    return {"status": explicit_zeros(difference)} if difference else {}


@final
class OwnerWriter(Generic[Owner]):
    """Writes to objects of one kind, each to the version that was read. Raises Conflict if that is
    not the present one: the decision then was made on something else.

    Its memory are the owners whose last status write was never answered.
    """

    def __init__(self, resource: Resource[Owner], writer: ObjectWriter) -> None:
        self._resource = resource
        self._writer = writer
        self._unanswered: set[str] = set()

    async def keep_finalizer(self, owner: Owner, finalizer: str) -> Owner:
        """Return the owner with ``finalizer``; written only if it is not there."""
        change = with_finalizer(owner.metadata, finalizer)
        return owner if change is None else await self.patch(owner, change)

    async def let_go(self, owner: Owner, finalizer: str) -> None:
        """Take ``finalizer`` off, if it is there."""
        self._unanswered.discard(owner.metadata.key)
        change = without_finalizer(owner.metadata, finalizer)
        if change is not None:
            await self.patch(owner, change)

    async def write_status(self, owner: Owner, wanted: msgspec.Struct) -> bool:
        """Write what distinguishes ``wanted`` from the owner's status; tell whether anything did.

        All counters are written along, those that are zero included: ``kubectl get`` shows an
        absent one as nothing at all, and another program may have left them out.

        After a write without an answer the owner's status may not be what the mirror says. All of
        ``wanted`` is written then, which a server that has moved on refuses: nobody would come back
        for a status, since a change of nothing else wakes nobody. An owner that was deleted
        meanwhile has nobody left to report to.
        """
        key = owner.metadata.key
        unanswered = key in self._unanswered
        change = status_change(owner.status, wanted)
        if not change and unanswered:
            change = {"status": to_json_object(wanted)}
        if not change:
            return False
        change = {"status": {**cast("JSONObject", change["status"]), **zero_counters(wanted)}}
        self._unanswered.add(key)  # also if this is cancelled
        try:
            await self.patch(owner, change, subresource="status")
        except KubeError as error:
            if isinstance(error, NotFound) or not (unanswered or may_have_happened(error)):
                self._unanswered.discard(key)
            if isinstance(error, NotFound):
                return False
            raise
        self._unanswered.discard(key)
        return True

    async def patch(self, owner: Owner, change: JSONObject, *, subresource: str = "") -> Owner:
        """Apply ``change``; return the owner as it is then."""
        meta = owner.metadata
        return await self._writer.patch(
            self._resource,
            meta.name,
            for_this_version(meta, change),
            namespace=meta.namespace,
            subresource=subresource,
        )
