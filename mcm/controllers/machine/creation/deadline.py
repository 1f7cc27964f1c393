"""Until when a machine must have been created and have joined."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import final

from mcm.api.machine import Machine, MachinePhase
from mcm.api.timestamps import whole_seconds
from mcm.controllers.machine.ports import ControlCluster
from mcm.controllers.reachability import Reachability

AT_LEAST_TRIED_FOR = 60.0
"""Seconds that each process gives a machine, however old it is: what was made while nobody worked,
or is made while our clock is wrong, is tried before it is given up."""

_HALF_A_SECOND = timedelta(seconds=0.5)


@final
@dataclass(frozen=True, slots=True)
class FirstSight:
    """When a process first saw a machine, in monotonic seconds, and how old it was then. From here
    on its age is counted in monotonic time: no jump of the wall clock makes it older."""

    at: float
    age: float


def first_sight(machine: Machine, now: datetime, monotonic: float) -> FirstSight:
    born = machine.metadata.creation_timestamp or now
    return FirstSight(monotonic, max(0.0, (now - born).total_seconds()))


def seconds_left(timeout: timedelta, seen: FirstSight, monotonic: float) -> float:
    """Return how long the machine may yet take, zero or less if its time is over."""
    known_for = monotonic - seen.at
    by_age = timeout.total_seconds() - (seen.age + known_for)
    return max(by_age, min(AT_LEAST_TRIED_FOR, timeout.total_seconds()) - known_for)


@final
class CreationTime:
    """The one clock of creations: it is counted in monotonic time once a machine is known, and a
    time in which a server was out of reach does not count. ``seen`` holds the first sights by UID.
    """

    def __init__(
        self,
        control: ControlCluster,
        *,
        seen: MutableMapping[str, FirstSight],
        reachability: Callable[[], Reachability],
    ) -> None:
        self._control = control
        self._seen = seen
        self._reachability = reachability

    def left(self, machine: Machine) -> float:
        """Return the seconds in which ``machine`` may yet be created and join; zero or less if its
        time is over."""
        control, servers = self._control, self._reachability()
        timeout, monotonic = (
            control.settings_of(machine).creation_timeout,
            control.clock.monotonic(),
        )
        seen = self._first_sight(machine)
        if machine.phase == MachinePhase.FAILED:
            # It has been given up before: a process that has just begun owes it no time.
            left = timeout.total_seconds() - self._age(seen)
        else:
            left = seconds_left(timeout, seen, monotonic)
        if servers.restored_at is not None:
            # What could not be done while a server was out of reach has its time from then on.
            since_then = (servers.restored_at + timeout - control.now()).total_seconds()
            left = max(left, min(since_then, timeout.total_seconds()))
        return left

    def is_over(self, machine: Machine) -> bool:
        """Tell whether ``machine`` is to be given up. While a server is out of reach none is: its
        recovery brings all machines back."""
        return self._reachability().reachable and self.left(machine) <= 0

    def end(self, machine: Machine) -> datetime:
        """Return when it is over, by the wall clock as it goes now; in whole seconds."""
        end = self._control.now() + timedelta(seconds=self.left(machine))
        return whole_seconds(end + _HALF_A_SECOND)

    def born(self, machine: Machine) -> datetime:
        """Return when ``machine`` was made, by the wall clock as it goes now."""
        return self._control.now() - timedelta(seconds=self._age(self._first_sight(machine)))

    def _first_sight(self, machine: Machine) -> FirstSight:
        now, monotonic = self._control.now(), self._control.clock.monotonic()
        uid = machine.metadata.uid
        if uid not in self._seen:
            self._seen[uid] = first_sight(machine, now, monotonic)
        return self._seen[uid]

    def _age(self, seen: FirstSight) -> float:
        return seen.age + self._control.clock.monotonic() - seen.at
