"""Start, lead, stop: decides which input lets which task begin or end, without any I/O.

::

    CHECKING ──▶ WAITING ──▶ LEADING ─┐
        └───────────┴─────────────────┴──▶ FINISHING ──▶ FLUSHING ──▶ RELEASING ──▶ ENDED

* CHECKING: the servers are asked whether they can serve us at all.
* WAITING: the mirrors fill, the leases are contended for.
* LEADING: every lease is held and every mirror synced; services and controllers run.
* FINISHING: no new work; the controllers end what is in flight, under leases still renewed.
* FLUSHING: the services end; the event recorder writes what is due.
* RELEASING: nothing acts any more; leases are given up, mirrors end.

Everything from FINISHING on happens within one grace period, of which each stage has its part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import final

from mcm.leaderelection import LeadershipLost
from mcm.lifecycle.actions import Action, Cancel, Finish, Lead, ShutDownQueues, Start
from mcm.lifecycle.inputs import Begin, Input, LeaseWon, StopAsked, TaskEnded, TimePassed
from mcm.lifecycle.tasks import ENDS_BY_ITSELF, Components, Kind, TaskName

GRACE_PERIOD = 20.0
"""Seconds from the wish to stop to the end. Below the 30 s after which Kubernetes kills a pod."""

HURRIED = 1.0
"""Seconds that are left of it once somebody cannot wait."""

# By the end of which part of the grace period who is cancelled that runs still.
_LATE: Sequence[tuple[float, tuple[Kind, ...]]] = (
    (0.5, (Kind.CONTROLLER,)),
    (0.75, (Kind.CONTROLLER, Kind.SERVICE)),
    (0.95, tuple(Kind)),
)
_WORK, _ALL = 1, len(_LATE)  # how many of these have struck when work, when everything is cut


class Stage(Enum):
    """Where a process is in its life."""

    NEW = "new"
    CHECKING = "checking"
    WAITING = "waiting"
    LEADING = "leading"
    FINISHING = "finishing"
    FLUSHING = "flushing"
    RELEASING = "releasing"
    ENDED = "ended"


@final
class Lifecycle:
    """One life. :meth:`handle` takes an input in and returns what is to be done, in order."""

    def __init__(self, components: Components, *, grace_period: float = GRACE_PERIOD) -> None:
        self._components = components
        self._grace = grace_period
        self._stage = Stage.NEW
        self._running: set[TaskName] = set()
        self._synced = False
        self._held: set[str] = set()
        self._complete = False  # all leases were held at once: from then on a loss is the end
        self._to_release: list[TaskName] = []
        self._error: Exception | None = None
        self._failed: dict[str, str] = {}
        # Of a stop: when each of _LATE strikes and, last, when it is over; how many have struck.
        self._due: tuple[float, ...] = ()
        self._struck = 0

    @property
    def stage(self) -> Stage:
        return self._stage

    @property
    def running(self) -> frozenset[TaskName]:
        """What was started and has not ended."""
        return frozenset(self._running)

    @property
    def failed(self) -> Mapping[str, str]:
        """What ended by itself although it should not have, and how, by name."""
        return self._failed

    @property
    def stopping(self) -> bool:
        """Whether the end has begun: nothing that acts is started any more."""
        return bool(self._due)

    @property
    def deadline(self) -> float | None:
        """When :class:`TimePassed` is due; None as long as time alone changes nothing."""
        if not self._due or self._stage is Stage.ENDED:
            return None
        return self._due[self._struck]

    def handle(self, event: Input, now: float) -> Sequence[Action]:
        """Take ``event`` in at the monotonic time ``now``; return the actions that follow."""
        if self._stage is Stage.ENDED:
            return ()
        actions = [*self._taken_in(event, now)]
        if self.stopping:
            actions += self._late(now)
            actions += self._wound_down(now)
        return actions

    # ---- inputs ---------------------------------------------------------------------------------

    def _taken_in(self, event: Input, now: float) -> Iterator[Action]:
        match event:
            case Begin():
                if self._stage is Stage.NEW:
                    self._stage = Stage.CHECKING
                    yield from self._start(Kind.CHECKS)
            case StopAsked(at_once):
                yield from self._stop(now, None)
                if at_once:
                    self._hurry(now)
            case LeaseWon(lease):
                if TaskName(Kind.LEASE, lease) in self._running and not self.stopping:
                    self._held.add(lease)
                    self._complete = self._held == set(self._components.leases)
                    yield from self._lead_if_ready()
            case TaskEnded(task, error):
                if task in self._running:
                    self._running.discard(task)
                    yield from self._after(task, error, now)
            case TimePassed():
                pass

    def _after(self, task: TaskName, error: Exception | None, now: float) -> Iterator[Action]:
        if task.kind is Kind.LEASE:
            yield from self._after_loss(task, error, now)
        elif self.stopping:
            return
        elif error is not None or task.kind not in ENDS_BY_ITSELF:
            if task.kind in (Kind.CONTROLLER, Kind.SERVICE, Kind.MIRROR):
                self._failed[task.name] = f"it ended by itself: {error}" if error else "it ended"
            yield from self._stop(now, error or RuntimeError(f"{task} ended by itself"))
        elif task.kind is Kind.CHECKS:
            self._stage = Stage.WAITING
            self._complete = not self._components.leases
            yield from self._start(Kind.MIRROR, Kind.SYNC, Kind.LEASE)
        elif task.kind is Kind.SYNC:
            self._synced = True
            yield from self._lead_if_ready()

    def _after_loss(self, task: TaskName, error: Exception | None, now: float) -> Iterator[Action]:
        self._held.discard(task.name)
        if not self.stopping and not self._complete and isinstance(error, LeadershipLost):
            self._running.add(task)  # nothing was done under it yet: contend once more
            yield Start(task)
            return
        yield from self._stop(now, error or RuntimeError(f"{task} ended by itself"))
        if self._stage is Stage.FINISHING:
            self._bring_forward(now, _WORK)  # nothing that is in flight may act any more

    def _lead_if_ready(self) -> Iterator[Action]:
        if self._stage is Stage.WAITING and self._synced and self._complete:
            self._stage = Stage.LEADING
            yield Lead()
            yield from self._start(Kind.SERVICE, Kind.CONTROLLER)

    def _start(self, *kinds: Kind) -> Iterator[Action]:
        for kind in kinds:
            for task in self._components.tasks(kind):
                self._running.add(task)
                if kind is Kind.LEASE:
                    self._to_release.append(TaskName(Kind.RELEASE, task.name))
                yield Start(task)

    # ---- winding down ---------------------------------------------------------------------------

    def _stop(self, now: float, error: Exception | None) -> Iterator[Action]:
        """Begin to stop; the first cause is the result."""
        if self.stopping:
            return
        self._error = error
        self._due = tuple(now + part * self._grace for part, _ in (*_LATE, (1.0, ())))
        self._stage = Stage.FINISHING
        yield ShutDownQueues()
        yield from self._cancel(Kind.CHECKS, Kind.SYNC)

    def _bring_forward(self, now: float, number: int) -> None:
        """Let the first ``number`` deadlines strike now at the latest."""
        early = (min(due, now) for due in self._due[:number])
        self._due = (*early, *self._due[number:])

    def _hurry(self, now: float) -> None:
        self._bring_forward(now, _ALL - 1)
        *others, cut, end = self._due
        part = _LATE[-1][0]
        self._due = (*others, min(cut, now + part * HURRIED), min(end, now + HURRIED))

    def _late(self, now: float) -> Iterator[Action]:
        """Cancel what should have ended by now. Each deadline strikes once: what was cancelled may
        clean up until the next."""
        while self._struck < _ALL and now >= self._due[self._struck]:
            _, kinds = _LATE[self._struck]
            self._struck += 1
            yield from self._cancel(*kinds)

    def _wound_down(self, now: float) -> Iterator[Action]:
        """Go as far as what has ended allows: nothing is released while anything may act."""
        if self._stage is Stage.FINISHING and not self._any(Kind.CONTROLLER):
            self._stage = Stage.FLUSHING
            yield from self._cancel(Kind.SERVICE)
        if self._stage is Stage.FLUSHING and not self._any(Kind.SERVICE):
            self._stage = Stage.RELEASING
            yield from self._cancel(Kind.LEASE, Kind.MIRROR)
        if self._stage is Stage.RELEASING:
            yield from self._release()
        done = self._stage is Stage.RELEASING and not self._running
        if done or now >= self._due[-1]:
            self._stage = Stage.ENDED
            yield Finish(self._error, tuple(sorted(self._running, key=str)))

    def _release(self) -> Iterator[Action]:
        """Release each lease that nobody renews any more, unless it is too late for that."""
        for task in tuple(self._to_release):
            if self._struck < _ALL and TaskName(Kind.LEASE, task.name) not in self._running:
                self._to_release.remove(task)
                self._running.add(task)
                yield Start(task)

    def _any(self, kind: Kind) -> bool:
        return any(task.kind is kind for task in self._running)

    def _cancel(self, *kinds: Kind) -> Iterator[Action]:
        for kind in kinds:
            for task in self._components.tasks(kind):
                if task in self._running:
                    yield Cancel(task)
