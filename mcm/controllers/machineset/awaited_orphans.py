"""What a set says when machines that it could adopt do not come free, and others are not made."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from mcm.api.machine import Machine, MachineSet
from mcm.api.names import REASON_FAILED_CREATE
from mcm.controllers.machineset.status import ReplicaFailure
from mcm.wording import first_few

_PATIENCE: Final = timedelta(minutes=1)
"""The garbage collector needs seconds; nobody wants to read of those."""
_SHOWN: Final = 3


def told(
    machine_set: MachineSet, awaited: Sequence[Machine], now: datetime
) -> ReplicaFailure | None:
    """Return what to say; None as long as all goes its usual way."""
    created = machine_set.metadata.creation_timestamp
    if not awaited or (created is not None and now - created < _PATIENCE):
        return None
    names = sorted(m.metadata.name for m in awaited)
    return ReplicaFailure(
        REASON_FAILED_CREATE,
        f"machines that this set selects belong to an owner that is gone: "
        f"{first_few(names, _SHOWN)}. No others are made in their stead until the garbage "
        "collector takes their owner reference off or deletes them",
    )
