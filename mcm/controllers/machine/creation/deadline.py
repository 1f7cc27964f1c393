"""Until when a machine must have been created and have joined."""

from __future__ import annotations

from datetime import datetime

from mcm.api.machine import Machine
from mcm.controllers.machine.settings import MachineSettings


def is_late(machine: Machine, settings: MachineSettings, now: datetime) -> bool:
    """Tell whether the time to create and join is over."""
    return now > join_deadline(machine, settings, now)


def join_deadline(machine: Machine, settings: MachineSettings, now: datetime) -> datetime:
    return (machine.metadata.creation_timestamp or now) + settings.creation_timeout
