"""Until when a machine must have been created and have joined."""

from __future__ import annotations

from datetime import datetime

from mcm.api.machine import Machine
from mcm.controllers.machine.settings import Limits


def is_late(machine: Machine, limits: Limits, now: datetime) -> bool:
    """Tell whether the time to create and join is over."""
    return now > join_deadline(machine, limits, now)


def join_deadline(machine: Machine, limits: Limits, now: datetime) -> datetime:
    return (machine.metadata.creation_timestamp or now) + limits.creation
