"""Creates an owner's interchangeable children, never one too many, and deletes them.

Both are told as events on the owner.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, final

from mcm.api.meta import JSONObject, KubeObject
from mcm.client.errors import AlreadyExists, Conflict, KubeError
from mcm.client.verbs import ObjectWriter
from mcm.controllers.owning.collisions import NameHolder, holder_of_name, name_taken
from mcm.controllers.owning.deletion import delete_children
from mcm.controllers.owning.outcome import may_have_happened
from mcm.controllers.owning.ownership import Child, Owner, Ownership
from mcm.controllers.owning.slow_start import slow_start
from mcm.controllers.owning.unconfirmed import UnconfirmedCreations
from mcm.events import EventKind, EventSink
from mcm.informers.store import Store

EVENT_CREATED: Final = "SuccessfulCreate"
EVENT_NOT_CREATED: Final = "FailedCreate"
EVENT_DELETED: Final = "SuccessfulDelete"
EVENT_NOT_DELETED: Final = "FailedDelete"

# The API server's own rules for generated names.
_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5
_LONGEST_NAME: Final = 63


def name_prefix(owner: KubeObject) -> str:
    return f"{owner.metadata.name}-"


def generated_name(owner: KubeObject, randomness: random.Random) -> str:
    """Return a new name as the API server would generate it from :func:`name_prefix`.

    It is chosen here, so that a creation whose answer got lost can be asked for again by name.
    """
    suffix = "".join(randomness.choices(_SUFFIX_LETTERS, k=_SUFFIX_LENGTH))
    return name_prefix(owner)[: _LONGEST_NAME - _SUFFIX_LENGTH] + suffix


@final
class ChildControl(Generic[Owner, Child]):
    """Serves all owners of one :class:`Ownership`; ``body(owner, name)`` is a child to create.

    Its memory are the creations whose answers got lost (:mod:`.unconfirmed`).
    """

    def __init__(
        self,
        ownership: Ownership[Owner, Child],
        children: Store[Child],
        writer: ObjectWriter,
        events: EventSink,
        *,
        body: Callable[[Owner, str], JSONObject],
        randomness: random.Random,
    ) -> None:
        self._ownership = ownership
        self._children = children
        self._writer = writer
        self._events = events
        self._body = body
        self._random = randomness
        self._unconfirmed = UnconfirmedCreations()

    async def create(
        self, owner: Owner, count: int, *, go_on: Callable[[], bool] = lambda: True
    ) -> Sequence[KubeError]:
        """Make ``count`` children, slowly at first; return why not all, if so.

        ``go_on`` is asked from time to time whether they are wanted still.

        Children asked for earlier, whose answer never came, are asked for again by their names and
        count. So the owner never gets one too many, even if answers get lost.
        """
        names = self._names_for(owner, count)
        asked_before = {*self._pending(owner)}
        errors: list[KubeError] = []

        async def create_one(number: int) -> bool:
            name = names[number]
            error = await self._create_one(owner, name, again=name in asked_before)
            if error is not None:
                errors.append(error)
            return error is None

        await slow_start(count, create_one, go_on=go_on)
        return errors

    def forget(self, owner_key: str) -> None:
        """The owner is no more, or on its way out."""
        self._unconfirmed.forget(owner_key)

    def unconfirmed(self, owner: Owner) -> int:
        """Return how many children were asked for which the store does not show yet."""
        return len(self._pending(owner))

    async def delete(
        self, owner: Owner, children: Iterable[Child], *, unchanged: bool = False
    ) -> Sequence[KubeError]:
        """Delete those of ``children`` that are not being deleted yet, with ``unchanged`` only as
        they were seen; return the refusals."""

        def tell(child: Child, error: KubeError | None) -> None:
            thing = f"{self._ownership.noun} {child.metadata.name}"
            if error is None:
                self._tell(owner, "Normal", EVENT_DELETED, f"Deleted {thing}")
            elif not (unchanged and isinstance(error, Conflict)):
                note = f"Could not delete {thing}: {error}"
                self._tell(owner, "Warning", EVENT_NOT_DELETED, note)

        return await delete_children(
            self._writer, self._ownership.child, children, unchanged=unchanged, tell=tell
        )

    def _pending(self, owner: Owner) -> Sequence[str]:
        return self._unconfirmed.pending(
            owner.metadata.key, exists=lambda name: self._find(owner, name) is not None
        )

    def _find(self, owner: Owner, name: str) -> Child | None:
        return self._children.get(f"{owner.metadata.namespace}/{name}")

    def _names_for(self, owner: Owner, count: int) -> Sequence[str]:
        names = dict.fromkeys(self._pending(owner)[:count])
        while len(names) < count:
            name = generated_name(owner, self._random)
            if self._find(owner, name) is None:
                names[name] = None
        return tuple(names)

    async def _create_one(self, owner: Owner, name: str, *, again: bool) -> KubeError | None:
        """Request one child. Its name is on record while it is not known what became of that, also
        if this is cancelled. A refusal says nothing about an earlier request (``again``) for the
        name, which may well be what used the quota up."""
        key, noun = owner.metadata.key, self._ownership.noun
        self._unconfirmed.add(key, name)
        try:
            await self._writer.create(
                self._ownership.child, self._body(owner, name), namespace=owner.metadata.namespace
            )
        except AlreadyExists as error:
            return self._already_there(owner, name, error)
        except KubeError as error:
            if not (again or may_have_happened(error)):
                self._unconfirmed.settle(key, name)
            note = f"Could not create {noun} {name}: {error}"
            self._tell(owner, "Warning", EVENT_NOT_CREATED, note)
            return error
        self._unconfirmed.settle(key, name)
        self._tell(owner, "Normal", EVENT_CREATED, f"Created {noun} {name}")
        return None

    def _already_there(self, owner: Owner, name: str, error: AlreadyExists) -> KubeError | None:
        """Usually the first request did arrive, and the watch will bring the child; but the name
        may as well have become another's, and then the owner still lacks one."""
        key, present = owner.metadata.key, self._find(owner, name)
        if present is None:
            return None
        self._unconfirmed.settle(key, name)
        holder = holder_of_name(present.metadata, owner.metadata.uid)
        return None if holder is NameHolder.OURS else name_taken(error, holder.value)

    def _tell(self, owner: Owner, kind: EventKind, reason: str, note: str) -> None:
        self._events.event(self._ownership.owner, owner, kind, reason, note)
