"""Owns every task of the process, and does what :class:`.machine.Lifecycle` decides."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, final

from mcm.clock import Clock
from mcm.lifecycle.actions import Action, Cancel, Finish, Lead, ShutDownQueues, Start
from mcm.lifecycle.inputs import Begin, Input, LeaseWon, StopAsked, TaskEnded, TimePassed
from mcm.lifecycle.machine import Lifecycle
from mcm.lifecycle.tasks import TaskName

log = logging.getLogger(__name__)

_TICK = 0.001  # seconds: no timer is armed for less
Work = Callable[[], Coroutine[Any, Any, None]]


@final
class Runner:
    """Runs one life to its end. ``work`` has a coroutine function for each task there may be.

    ``lead`` is called when services and controllers are about to start, ``shut_down_queues`` when
    no new work is to be taken. Neither may raise.
    """

    def __init__(
        self,
        lifecycle: Lifecycle,
        work: Mapping[TaskName, Work],
        *,
        lead: Callable[[], None],
        shut_down_queues: Callable[[], None],
        clock: Clock,
    ) -> None:
        self._lifecycle = lifecycle
        self._work = work
        self._lead = lead
        self._shut_down_queues = shut_down_queues
        self._clock = clock
        self._tasks: dict[TaskName, asyncio.Task[None]] = {}
        self._inbox: deque[Input] = deque([Begin()])
        self._arrived = asyncio.Event()
        self._finish: Finish | None = None

    def lease_won(self, lease: str) -> None:
        """For whoever holds leases: ``lease`` is held from now on."""
        self._tell(LeaseWon(lease))

    async def run(self, stop: asyncio.Event) -> None:
        """Live until ``stop`` is set, or something ends that must not; raise what that was.

        Setting ``stop`` ends everything in order, within the grace period. Cancelling this call
        hurries: what is in flight is cancelled, and little time is left for the rest; but it never
        leaves a task behind that obeys a cancellation.
        """
        cancellations = _cancellations()
        watch = asyncio.create_task(stop.wait(), name="stop asked")
        watch.add_done_callback(lambda _: self._tell(StopAsked()))
        try:
            finish = await self._live()
        finally:
            for task in (watch, *self._tasks.values()):
                task.cancel()
        with suppress(asyncio.CancelledError):
            await watch
        for left in finish.left:
            log.error("%s did not end although it was cancelled; it is left behind", left)
        log.info("stopped")
        if _cancellations() > cancellations:
            raise asyncio.CancelledError
        if finish.error is not None:
            raise finish.error

    async def _live(self) -> Finish:
        """Take in and act until it is over. A cancellation cuts no more than a wait."""
        while self._finish is None:
            try:
                await self._input_arrives()
            except asyncio.CancelledError:
                self._inbox.append(StopAsked(at_once=True))
            self._take_in()
        return self._finish

    async def _input_arrives(self) -> None:
        """Return when there is something to take in; that may be that a deadline has come."""
        if self._inbox:
            return
        limit = None
        if (deadline := self._lifecycle.deadline) is not None:
            limit = max(_TICK, deadline - self._clock.monotonic())
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await self._arrived.wait()

    def _take_in(self) -> None:
        self._arrived.clear()
        while self._finish is None:
            event = self._inbox.popleft() if self._inbox else None
            now = self._clock.monotonic()
            for action in self._lifecycle.handle(event or TimePassed(), now):
                self._do(action)
            if event is None:
                return

    def _do(self, action: Action) -> None:
        match action:
            case Start(task):
                started = asyncio.create_task(self._work[task](), name=str(task))
                started.add_done_callback(lambda done: self._ended(task, done))
                self._tasks[task] = started
            case Cancel(task):
                if task in self._tasks:  # else its end is in the inbox
                    self._tasks[task].cancel()
            case Lead():
                self._lead()
            case ShutDownQueues():
                log.info("stopping: finishing work in flight")
                self._shut_down_queues()
            case Finish():
                self._finish = action

    def _ended(self, name: TaskName, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else _cause(task.exception())
        del self._tasks[name]
        if error is not None and self._lifecycle.stopping:
            log.warning("%s ended with an error: %s", name, error)
        self._tell(TaskEnded(name, error))

    def _tell(self, event: Input) -> None:
        self._inbox.append(event)
        self._arrived.set()


def _cancellations() -> int:
    """Return how often the current task was cancelled."""
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0


def _cause(error: BaseException | None) -> Exception | None:
    """Return ``error`` out of the groups that task groups wrap a single one in."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if error is None or isinstance(error, Exception):
        return error
    return RuntimeError(repr(error))
