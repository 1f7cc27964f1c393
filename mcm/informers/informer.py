"""A shared informer: one reflector, one store, and everyone who wants to hear of changes."""

from __future__ import annotations

import asyncio
import logging
import random as random_module
from collections import deque
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, final

from mcm.api.meta import Resource, T
from mcm.client.verbs import ObjectReader
from mcm.clock import Clock
from mcm.informers.change import Change, Changes, Handler
from mcm.informers.freshness import Freshness
from mcm.informers.listwatch import ReflectorOptions
from mcm.informers.reflector import Reflector
from mcm.informers.stats import InformerStats
from mcm.informers.store import Store

logger = logging.getLogger(__name__)

HEALTHY_SILENCE = 180.0
"""Seconds without a sign of the server after which a mirror is no longer believed to be current:
three bookmark periods, two silent watches and their back-off."""

_SLICE = 256


class MirrorEnded(Exception):
    """A part of a mirror ended though nobody asked it to: what it holds only gets older."""


async def until_one_ends(tasks: Collection[asyncio.Task[None]]) -> None:
    """Wait until one of ``tasks``, which run for ever in a group, ends all the same.

    A group takes no notice of a task that was cancelled from without, or that just returned: then
    MirrorEnded is raised. What a task raised is left to the group.
    """
    forever = asyncio.get_running_loop().create_future()
    await asyncio.wait({forever, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    done = [task for task in tasks if task.done()]
    if all(task.cancelled() or task.exception() is None for task in done):
        names = ", ".join(task.get_name() for task in done)
        raise MirrorEnded(f"{names} ended without being asked to")


@dataclass(frozen=True, slots=True)
class InformerStatus:
    """A snapshot for ``/readyz`` and logs. ``silence`` is in seconds, None before ``run``."""

    resource: str
    namespace: str
    synced: bool
    healthy: bool
    objects: int
    unreadable: int
    resource_version: str
    silence: float | None


@final
class Informer(Generic[T]):
    """Mirrors ``resource`` (of one namespace, or of all if ``namespace`` is empty).

    With a ``field_selector`` only what it selects; what it selects no more counts as gone.

    Handlers are called one after the other, in the order in which they were added, after the store
    and its indexes hold the change. For each key the changes a handler sees form a chain: ``old``
    is what it was last told. ``synced`` is set when every handler has seen the whole first list.
    """

    def __init__(
        self,
        source: ObjectReader,
        resource: Resource[T],
        *,
        clock: Clock,
        namespace: str = "",
        field_selector: str = "",
        options: ReflectorOptions | None = None,
        randomness: random_module.Random | None = None,
        resync_period: float | None = None,
    ) -> None:
        self.resource = resource
        self.namespace = namespace
        self.store: Store[T] = Store()
        self.stats = InformerStats()
        self._clock = clock
        self._resync_period = resync_period
        self._handlers: list[Handler[T]] = []
        self._backlog: deque[Change[T]] = deque()
        self._synced = asyncio.Event()
        self._freshness_moved = asyncio.Event()
        self._told_current: list[Callable[[], None]] = []
        self._told_stale: list[Callable[[], None]] = []
        self._started_at: float | None = None
        self._reflector = Reflector(
            source,
            resource,
            sink=self,
            clock=clock,
            namespace=namespace,
            field_selector=field_selector,
            options=options or ReflectorOptions(),
            randomness=randomness or random_module.Random(),
            stats=self.stats,
        )
        self.store.subscribe(self.deliver)

    def __repr__(self) -> str:
        scope = self.namespace or "all namespaces"
        state = "synced" if self.synced else "not synced"
        return f"<Informer {self.resource.name} in {scope}: {len(self.store)} objects, {state}>"

    # ---- handlers ------------------------------------------------------------------------------

    def add_handler(self, handler: Handler[T]) -> None:
        """Call ``handler`` for every change from now on, first for what is here already."""
        self._flush()
        self._handlers.append(handler)
        for obj in self.store.list():
            self._tell(Change(None, obj, initial=True), (handler,))

    def deliver(self, changes: Changes[T]) -> None:
        """Tell every handler now, after whatever was not told yet."""
        if self._backlog:
            self._backlog.extend(changes)
            self._flush()
            return
        for change in changes:
            self._tell(change, self._handlers)

    def deliver_initial(self, changes: Changes[T]) -> None:
        """Tell every handler of objects of the first list, which is not complete yet."""
        self.deliver(_as_initial(changes))

    async def replaced(self, changes: Changes[T]) -> None:
        """Tell every handler of a list's difference, in slices that let the loop breathe."""
        self._backlog.extend(changes if self.synced else _as_initial(changes))
        while self._backlog:
            self._flush(_SLICE)
            await self._clock.sleep(0)
        self._synced.set()

    def _flush(self, limit: int | None = None) -> None:
        """Tell what waits, oldest first. An own write in between goes through here as well, so
        that the chain of each key stays in order."""
        backlog = self._backlog
        for _ in range(len(backlog) if limit is None else min(limit, len(backlog))):
            self._tell(backlog.popleft(), self._handlers)

    def _tell(self, change: Change[T], handlers: Iterable[Handler[T]]) -> None:
        for handler in handlers:
            try:
                handler(change)
            except Exception:
                # One handler's mistake costs that handler one change; the mirror serves all others.
                self.stats.handler_errors += 1
                logger.exception(
                    "handler failed",
                    extra={"resource": self.resource.name, "key": change.object.metadata.key},
                )

    # ---- life ----------------------------------------------------------------------------------

    @property
    def synced(self) -> bool:
        """Whether the first list is in the store and every handler has been told of it."""
        return self._synced.is_set()

    @property
    def telling(self) -> bool:
        """Whether handlers have not heard yet of all that the last list has changed."""
        return bool(self._backlog)

    async def wait_synced(self) -> None:
        await self._synced.wait()

    @property
    def last_heard(self) -> float | None:
        """When the server last sent anything (monotonic seconds), None if it never did."""
        return self.stats.last_heard

    def healthy(self, now: float) -> bool:
        """Whether the server was heard from lately; before ``run`` nothing can be wrong."""
        silence = self._silence(now)
        return silence is None or silence <= HEALTHY_SILENCE

    def freshness(self, now: float) -> Freshness:
        """Tell whether the mirror is believed to be current at ``now`` (monotonic seconds): before
        anything is concluded from something not being there."""
        return self._reflector.currency.judged(now)

    def unready(self, now: float) -> str:
        """Return why nobody can rely on the mirror at ``now`` (monotonic seconds); empty if one
        can. Asked for readiness: it is judged sooner than :meth:`healthy`, and by more than
        :meth:`freshness`, as nothing is decided by it about objects."""
        return self._reflector.currency.unready(now)

    def when_current(self, handler: Callable[[], None]) -> None:
        """Call ``handler`` each time the mirror is current that was not, the first time included.

        It may neither wait nor raise, as a handler of changes.
        """
        self._told_current.append(handler)

    def when_stale(self, handler: Callable[[], None]) -> None:
        """Call ``handler`` each time a mirror that was current is so no more: its watch ended, and
        none could be opened in time."""
        self._told_stale.append(handler)

    def freshness_moved(self) -> None:
        """Have those told who wait for the mirror to be current, or to be so no more."""
        self._freshness_moved.set()

    def status(self) -> InformerStatus:
        now = self._clock.monotonic()
        return InformerStatus(
            resource=self.resource.name,
            namespace=self.namespace,
            synced=self.synced,
            healthy=self.healthy(now),
            objects=len(self.store),
            unreadable=len(self.store.unreadable),
            resource_version=self.store.resource_version,
            silence=self._silence(now),
        )

    async def run(self) -> None:
        """Mirror until cancelled. May be called once. Raises MirrorEnded, or a group of what was
        raised, if a part of it ended by itself."""
        if self._started_at is not None:
            raise RuntimeError(f"{self!r} was run before")
        self._started_at = self._clock.monotonic()
        name = self.resource.name
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._reflector.run(), name=f"reflector {name}")]
            if self._told_current or self._told_stale:
                work = self._follow_freshness()
                tasks.append(group.create_task(work, name=f"freshness {name}"))
            if self._resync_period:
                work = self._resync(self._resync_period)
                tasks.append(group.create_task(work, name=f"resync {name}"))
            await until_one_ends(tasks)

    async def _follow_freshness(self) -> None:
        current = False
        while True:
            self._freshness_moved.clear()
            now = self._clock.monotonic()
            was, current = current, self.freshness(now).current
            if current != was:
                self._tell_freshness(self._told_current if current else self._told_stale)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._reflector.currency.next_change(now)):
                    await self._freshness_moved.wait()

    def _tell_freshness(self, handlers: Iterable[Callable[[], None]]) -> None:
        for handler in handlers:
            try:
                handler()
            except Exception:
                self.stats.handler_errors += 1
                logger.exception("handler failed", extra={"resource": self.resource.name})

    async def _resync(self, period: float) -> None:
        while True:
            await self._clock.sleep(period)
            self.deliver(tuple(Change(o, o, resync=True) for o in self.store.list()))

    def _silence(self, now: float) -> float | None:
        since = self._started_at if self.stats.last_heard is None else self.stats.last_heard
        return None if since is None else now - since


def _as_initial(changes: Changes[T]) -> Changes[T]:
    return tuple(
        Change(change.old, change.new, initial=change.new is not None, tombstone=change.tombstone)
        for change in changes
    )
