"""Until when a machine must have been created and have joined."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import final

from mcm.api.machine import Machine
from mcm.controllers.machine.settings import MachineSettings

AT_LEAST_TRIED_FOR = 60.0
"""Seconds that each process gives a machine, however old it is: what was made while nobody worked,
or is made while our clock is wrong, is tried before it is given up."""


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


def is_late(machine: Machine, settings: MachineSettings, now: datetime) -> bool:
    """Tell whether the time to create and join is over."""
    return now > join_deadline(machine, settings, now)


def join_deadline(machine: Machine, settings: MachineSettings, now: datetime) -> datetime:
    return (machine.metadata.creation_timestamp or now) + settings.creation_timeout
