"""Tells of the drains of machines after each pass: condition, events and numbers."""

from __future__ import annotations

from typing import final

from mcm.api.machine import Machine, MachineStatus
from mcm.controllers.machine.draining.condition import DrainShown, shown, withdrawn
from mcm.controllers.machine.draining.metrics import DrainMetrics
from mcm.controllers.machine.draining.news import News, again_at, ended, news_of, told_before
from mcm.controllers.machine.drains_under_way import Drain
from mcm.controllers.machine.own_conditions import OwnCondition, find_own
from mcm.controllers.machine.ports import ControlCluster
from mcm.drain.execution import Verb
from mcm.drain.mode import Force
from mcm.drain.record import Record
from mcm.drain.request import DrainRequest, Purpose
from mcm.drain.result import Done, Quiet, TimedOut, Working
from mcm.drain.watch import DrainWatch
from mcm.events import EventType


@final
class DrainTelling:
    """Writes nothing itself: the status that it returns goes with what else there is to write."""

    def __init__(self, control: ControlCluster, metrics: DrainMetrics) -> None:
        self._control = control
        self._metrics = metrics

    def begun(self, machine: Machine, request: DrainRequest) -> DrainWatch:
        """Begin to look at a drain; what another process told of it is not told again."""
        before = find_own(machine.status, OwnCondition.DRAINED)
        return DrainWatch(request.purpose, told=told_before(before))

    def under_way(
        self,
        machine: Machine,
        request: DrainRequest,
        result: Working | Quiet,
        drain: Drain,
        record: Record,
    ) -> DrainShown:
        """Tell of a pass after which the drain goes on."""
        now, watch = self._control.now(), drain.watch
        self._count(drain, record)
        watch.pods = result.pods if isinstance(result, Working) else ()
        deleted = [
            uid
            for uid, asked in drain.memory.asked.items()
            if asked.verb is Verb.DELETE and uid in record.held_since
        ]
        for news in news_of(watch.pods, deleted, request, watch.told, now):
            self._tell(machine, news, watch)
        found = shown(
            machine.status,
            result,
            start=request.start,
            deadline=request.deadline,
            now=now,
            told_at=watch.shown_at,
        )
        if found.status is not machine.status:
            watch.shown_at = now
        news_at = again_at(watch.pods, request, watch.told, now)
        waits = [found.again, (news_at - now).total_seconds() if news_at else None]
        again = min((wait for wait in waits if wait is not None), default=None)
        return DrainShown(found.status, again)

    def over(
        self,
        machine: Machine,
        request: DrainRequest,
        result: Done | TimedOut,
        drain: Drain,
        record: Record,
        *,
        at_once: bool,
    ) -> MachineStatus:
        """Tell of the last pass; ``at_once``: pods were deleted without grace. A machine that lives
        on shows nothing of it."""
        now = self._control.now()
        if result.force is Force.NONE:
            self._count(drain, record)
            for news in ended(request, drain.watch.told, now):
                self._tell(machine, news, drain.watch)
        else:
            grace = ", without grace, as nothing is heard of its kubelet" if at_once else ""
            note = f"Pods are deleted by force: {result.force.value}{grace}"
            self._control.tell(machine, EventType.WARNING, "ForceDrained", note)
        if request.purpose is not Purpose.DELETION:
            return withdrawn(machine.status)
        return shown(
            machine.status,
            result,
            start=request.start,
            deadline=request.deadline,
            now=now,
            told_at=None,
        ).status

    def _count(self, drain: Drain, record: Record) -> None:
        asked = drain.memory.asked
        found = drain.watch.durations(asked, record.held_since, self._control.now())
        for seconds in found.left:
            self._metrics.left(seconds)
        for seconds in found.held:
            self._metrics.held(seconds)

    def _tell(self, machine: Machine, news: News, watch: DrainWatch) -> None:
        self._control.tell(machine, news.kind, news.reason, news.note)
        watch.told.add(news.key)
