"""Gives up a machine that was not created in time, whatever it is stuck at.

This depends on nothing that creates: it is decided from the age of the machine alone, in every pass
over one that is not through, and a timer brings that pass about.
"""

from __future__ import annotations

from collections.abc import Callable, MutableSet
from typing import final

from mcm.api.durations import format_duration
from mcm.api.machine import Machine, MachinePhase, MachineStatus, OperationType
from mcm.api.names import ANNOTATION_EFFECTIVE_CREATION_TIMEOUT
from mcm.api.timestamps import rfc3339
from mcm.controllers.machine import last_operation, status
from mcm.controllers.machine.creation import provider_answers
from mcm.controllers.machine.creation.deadline import CreationTime
from mcm.controllers.machine.creation.obstacles import Obstacles
from mcm.controllers.machine.creation.shared_backoff import SharedBackoff
from mcm.controllers.machine.ports import ControlCluster
from mcm.controllers.machine.settings import is_span
from mcm.controllers.reachability import Reachability
from mcm.controllers.runtime import DONE, Outcome
from mcm.events import EventType

_NOTHING_KNOWN = "this process has not got to try it"


@final
class CreationTimeout:
    """The end of a machine's time to be created. ``told`` holds the UIDs of those whose annotation
    was found unreadable."""

    def __init__(
        self,
        control: ControlCluster,
        *,
        obstacles: Obstacles,
        shared: SharedBackoff,
        time: CreationTime,
        told: MutableSet[str],
        reachability: Callable[[], Reachability],
    ) -> None:
        self._control = control
        self._obstacles = obstacles
        self._shared = shared
        self._time = time
        self._told = told
        self._reachability = reachability

    async def check(self, machine: Machine) -> Outcome:
        """Fail ``machine``, which is not through yet, if its time is over; else look again when it
        will be. Raises Conflict if the machine changed since it was read."""
        control = self._control
        self._tell_if_unreadable(machine)
        left = self._time.left(machine)
        if left > 0:
            return Outcome(after=left + 0.001, reason="creation timeout")
        if not self._reachability().reachable:
            return DONE  # its recovery brings all machines back
        wanted = self._given_up(machine)
        written = await control.write_status(machine, wanted)
        note = written.status.last_operation.description
        control.tell(machine, EventType.WARNING, "Failed", note)
        if machine.metadata.controller_ref() is not None:
            self._shared.forget(machine.metadata.uid, control.clock.monotonic())
        return DONE

    def _tell_if_unreadable(self, machine: Machine) -> None:
        text = machine.metadata.annotations.get(ANNOTATION_EFFECTIVE_CREATION_TIMEOUT)
        if text is None or is_span(text) or machine.metadata.uid in self._told:
            return
        self._told.add(machine.metadata.uid)
        note = (
            f"The annotation {ANNOTATION_EFFECTIVE_CREATION_TIMEOUT} is ignored: "
            f"{text[:80]!r} is no duration like 20m0s"
        )
        self._control.tell(machine, EventType.WARNING, "InvalidCreationTimeout", note)

    def _given_up(self, machine: Machine) -> MachineStatus:
        now, last = self._control.now(), machine.status.last_operation
        obstacle = self._obstacles.of(machine.metadata.uid)
        if obstacle is not None:
            text, since = obstacle.text, obstacle.since
        elif last.type == OperationType.CREATE and last.description:
            text, since = last.description, last.last_update_time or now
        else:
            text, since = _NOTHING_KNOWN, machine.metadata.creation_timestamp or now
        done = last_operation.creation_timed_out(
            machine.metadata.name,
            format_duration(self._control.settings_of(machine).creation_timeout),
            stuck=f"since {rfc3339(since)}: {text.rstrip('. ')}",
            is_replaced=machine.metadata.controller_ref() is not None,
            code=last.error_code if last.type == OperationType.CREATE else "",
        )
        if machine.phase == MachinePhase.PENDING:
            failed = status.with_phase(machine.status, MachinePhase.FAILED, now)
        else:
            failed = provider_answers.on_lateness(machine, now)
        return status.with_operation(failed, done, now)
