"""Keeps each object of one kind for as long as objects of another kind use it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar, final

from mcm.api.meta import JSONObject, KubeObject, Resource, split_key
from mcm.client.errors import NotFound
from mcm.client.verbs import ObjectWriter
from mcm.controllers.context import ControllerContext
from mcm.controllers.enqueue import enqueue_changes
from mcm.controllers.finalizers.changes import finalizer_in_step
from mcm.controllers.runtime import DONE, Controller, Outcome
from mcm.informers import Change, InformerFactory, Store

Used = TypeVar("Used", bound=KubeObject)
User = TypeVar("User", bound=KubeObject)

LOOK_AGAIN: Final = 60.0
"""Seconds, while a user of which it cannot be read might be using any object."""


@final
@dataclass(frozen=True, slots=True)
class InUseDecision:
    """What to write (None: nothing), and in how many seconds time alone may change that."""

    patch: JSONObject | None = None
    after: float | None = None
    reason: str = field(default="", compare=False)


@final
@dataclass(frozen=True, kw_only=True)
class InUse(Generic[Used, User]):
    """Which objects are used by which: all that the engine knows of the two kinds.

    ``uses`` names the keys of the objects that a user needs; ``is_used`` asks the users' store
    about one. Both go by what stands at ``told_at`` (JSON paths) in a user. ``heeded`` tells which
    changes of a used object can matter, by default all.
    """

    used: Resource[Used]
    users: Resource[User]
    uses: Callable[[User], Iterable[str]]
    told_at: tuple[str, ...]
    is_used: Callable[[Used], bool]
    decide: Callable[[Used, bool], InUseDecision]
    heeded: Callable[[Change[Used]], bool] = lambda _: True


def keeping(finalizer: str) -> Callable[[Used, bool], InUseDecision]:
    """Return the usual decision: ``finalizer`` is on what is used, and on nothing else."""

    def decide(obj: Used, used: bool) -> InUseDecision:
        return InUseDecision(finalizer_in_step(obj.metadata, finalizer, used=used))

    return decide


@final
class InUseReconciler(Generic[Used, User]):
    """Keeps each object in step with its use. Stateless."""

    def __init__(
        self,
        in_use: InUse[Used, User],
        objects: Store[Used],
        users: Store[User],
        writer: ObjectWriter,
    ) -> None:
        self._in_use = in_use
        self._objects = objects
        self._users = users
        self._writer = writer

    async def reconcile(self, key: str) -> Outcome:
        """Write what the use of the object ``key`` asks for. Raises what the client raises."""
        obj = self._objects.get(key)
        if obj is None:
            return DONE
        used = self._in_use.is_used(obj)
        decided = self._in_use.decide(obj, used)
        if decided.patch is None:
            return Outcome(decided.after, decided.reason)
        if not used and self._has_untold_uses():
            return Outcome(LOOK_AGAIN, f"{self._in_use.users.plural} that cannot be read")
        namespace, name = split_key(key)
        try:
            await self._writer.patch(self._in_use.used, name, decided.patch, namespace=namespace)
        except NotFound:
            return DONE
        return DONE

    def _has_untold_uses(self) -> bool:
        """Tell whether a user's newest state does not say what it uses: it may be any object."""
        for key in self._users.unreadable:
            user = self._users.get(key)
            if user is None or not user.metadata.faults:
                return True  # not read at all, or not since
            if user.metadata.is_faulty_at(*self._in_use.told_at):
                return True
        return False


def keys_of_user_change(
    uses: Callable[[User], Iterable[str]], change: Change[User]
) -> Sequence[str]:
    """Return the keys of what a user needs or needed, unless that is the same."""
    before = tuple(uses(change.old)) if change.old is not None else ()
    after = tuple(uses(change.new)) if change.new is not None else ()
    if change.resync or (change.old and change.new and before == after):
        return ()
    return tuple(dict.fromkeys((*before, *after)))


def build_in_use(
    ctx: ControllerContext,
    name: str,
    in_use: InUse[Used, User],
    *,
    used_from: InformerFactory,
    users_from: InformerFactory,
) -> Controller:
    """Make the controller ``name`` and register its handlers; nothing runs yet."""
    objects, users = used_from.informer(in_use.used), users_from.informer(in_use.users)
    queue = ctx.queue(name)
    reconciler = InUseReconciler(in_use, objects.store, users.store, used_from.writer)

    def own_key(change: Change[Used]) -> Iterable[str]:
        if change.new is None or not in_use.heeded(change):
            return ()
        return (change.new.metadata.key,)

    enqueue_changes(queue, objects, own_key)
    enqueue_changes(queue, users, lambda change: keys_of_user_change(in_use.uses, change))
    workers = ctx.options.machine_concurrent_syncs
    return ctx.controller(name, queue, reconciler.reconcile, workers=workers, regards=objects)
