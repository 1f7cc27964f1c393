"""One driver call in a task of its own, for as long as it may take and not a moment longer."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import final

from mcm.clock import Clock
from mcm.controllers.provider.metrics import DriverMetrics
from mcm.fence import Fence

logger = logging.getLogger(__name__)

SLOW_AFTER = 1.0
"""Seconds after which a call takes time, and whoever asked says so."""

CANCEL_GRACE = 3.0
"""Seconds in which a cancelled call must have ended: within what a lost lease leaves us."""

_SOONEST = 0.05
"""Seconds between two looks at a fence that neither stands nor falls."""


@final
class Overdue(Exception):
    """The call did not end in time. ``ignores``: it does not end when it is cancelled, either."""

    def __init__(self, *, ignores: bool) -> None:
        self.ignores = ignores
        super().__init__(ignores)


@final
@dataclass(frozen=True, slots=True)
class Runaway:
    """A call that was cancelled at ``since`` and did not end by that."""

    verb: str
    since: datetime


@final
class BoundedCalls:
    """Runs driver calls, and owns their tasks.

    A driver may do anything: hang, raise what is no Exception, swallow its cancellation. Only its
    own task must ever suffer from that, so each call has one. One that does not end when told to
    cannot be ended by anybody; it is kept track of by its ``subject``, until it ends.
    """

    def __init__(self, *, clock: Clock, fence: Fence, metrics: DriverMetrics | None = None) -> None:
        self._clock = clock
        self._fence = fence
        self._metrics = metrics
        self._runaways: dict[str, tuple[Runaway, asyncio.Task[object]]] = {}

    def runaway(self, subject: str) -> Runaway | None:
        """Return the call for ``subject`` that still runs although it was cancelled."""
        found = self._runaways.get(subject)
        return found[0] if found else None

    async def run(
        self,
        call: Callable[[], object],
        *,
        verb: str,
        subject: str,
        limit: float,
        slow: Callable[[], Awaitable[None]] | None = None,
    ) -> asyncio.Task[object]:
        """Return the task of ``await call()`` once it has ended, however it has. ``slow`` is
        awaited, once, while a call goes on that takes longer than a moment.

        Raises :class:`Overdue` after ``limit`` seconds, CancelledError if *we* are cancelled, and
        what the fence raises as soon as it does: it is looked at again whenever its time is over,
        since it may have been renewed. In all these cases the call was cancelled.
        """
        task = asyncio.create_task(_awaited(call), name=f"{verb} {subject}")
        try:
            await self._wait(task, limit, slow)
        except TimeoutError:
            ended = await self._cancel(task, verb, subject)
            if ended and not task.cancelled() and task.exception() is None:
                return task  # it had the answer after all
            raise Overdue(ignores=not ended) from None
        except BaseException:
            await self._cancel(task, verb, subject)
            raise
        return task

    async def _wait(
        self, task: asyncio.Task[object], limit: float, slow: Callable[[], Awaitable[None]] | None
    ) -> None:
        started = self._clock.monotonic()
        while True:
            passed = self._clock.monotonic() - started
            if passed >= limit:
                raise TimeoutError
            patience = min(limit - passed, self._fence.time_left())
            if slow is not None:
                patience = min(patience, SLOW_AFTER - passed)
            # A remainder too small to move the clock would never come to an end.
            done, _ = await asyncio.wait({task}, timeout=max(patience, _SOONEST))
            if done:
                return
            self._fence.check()
            if slow is not None and self._clock.monotonic() - started >= SLOW_AFTER:
                tell, slow = slow, None
                await tell()

    async def _cancel(self, task: asyncio.Task[object], verb: str, subject: str) -> bool:
        """Tell the call to end, and wait a moment for it; return whether it did."""
        since = self._clock.now()
        task.cancel()
        try:
            await asyncio.wait({task}, timeout=CANCEL_GRACE)
        finally:  # also if we are told to hurry
            if not task.done():
                self._runaways[subject] = Runaway(verb, since), task
                self._report()
                logger.error(
                    "a driver call was cancelled and still runs",
                    extra={"verb": verb, "subject": subject},
                )
            task.add_done_callback(lambda ended: self._ended(ended, subject))
        return task.done()

    def _ended(self, task: asyncio.Task[object], subject: str) -> None:
        if not task.cancelled():
            task.exception()  # nobody else will ask for it, and asyncio would log it unmasked
        known = self._runaways.get(subject)
        if known is not None and known[1] is task:
            del self._runaways[subject]
            self._report()
            logger.warning("a driver call ended at last", extra={"subject": subject})

    def _report(self) -> None:
        if self._metrics is not None:
            self._metrics.runaways.set(len(self._runaways))


async def _awaited(call: Callable[[], object]) -> object:
    try:
        coroutine = call()
        if not inspect.isawaitable(coroutine):
            raise TypeError("the verb is no coroutine function")
        return await coroutine
    except SystemExit as exit_:
        raise RuntimeError(f"the driver tried to end the process: {exit_.code!r}") from None
