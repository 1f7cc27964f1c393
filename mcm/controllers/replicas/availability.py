"""When a machine counts as available: it serves, and has for ``minReadySeconds``.

The time counts from the moment the machine entered its phase, by the clock that wrote the phase: a
Node that is not ready for a while takes its machine out of the phase, and the time starts again. A
stamp that lies ahead was written while a clock was wrong. Waiting for it could take for ever, so
the next best one counts: since when its Node says it is ready, and since when the machine exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from mcm.api.machine import Machine, MachinePhase, MachineSet
from mcm.api.names import CONDITION_NODE_READY
from mcm.controllers.replicas.membership import is_terminating

_SERVING: Final = frozenset({MachinePhase.AVAILABLE, MachinePhase.RUNNING})
_CLOCKS_DIFFER: Final = timedelta(minutes=1)
"""As far as a time may lie ahead and be believed: clocks of two hosts never agree."""
_MOST_SECONDS: Final = 2**31 - 1
_EVER: Final = datetime.min.replace(tzinfo=UTC)


def min_ready_of(machine_set: MachineSet) -> timedelta:
    """Return ``spec.minReadySeconds`` as a span; what no int32 holds, as far as that goes."""
    return timedelta(seconds=min(max(0, machine_set.spec.min_ready_seconds), _MOST_SECONDS))


def is_available(machine: Machine, min_ready: timedelta, now: datetime) -> bool:
    """Tell whether ``machine`` serves, and has served for ``min_ready``."""
    if not min_ready:
        return serves(machine)  # as nearly always: no time needs to be known
    since = available_from(machine, min_ready, now)
    return since is not None and since <= now


def available_from(machine: Machine, min_ready: timedelta, now: datetime) -> datetime | None:
    """Return since or from when ``machine`` counts as available, if it goes on as it is; None if it
    does not serve."""
    if not serves(machine):
        return None
    believed = now + _CLOCKS_DIFFER
    since = next((at for at in _serving_since(machine) if at <= believed), None)
    return _EVER if since is None else since + min_ready


def next_available_at(
    machines: Iterable[Machine], min_ready: timedelta, now: datetime
) -> datetime | None:
    """Return when the next of ``machines`` becomes available by time alone; None: none will."""
    if not min_ready:
        return None
    moments = (available_from(machine, min_ready, now) for machine in machines)
    return min((at for at in moments if at is not None and at > now), default=None)


def serves(machine: Machine) -> bool:
    """Tell whether ``machine`` is there and well, for however short a time."""
    return machine.phase in _SERVING and not is_terminating(machine)


def _serving_since(machine: Machine) -> Iterator[datetime]:
    """Yield what tells since when the machine is as it is, the best first."""
    status, created = machine.status, machine.metadata.creation_timestamp
    if status.current_status.last_update_time is not None:
        yield status.current_status.last_update_time
    for condition in status.conditions:
        if condition.type == CONDITION_NODE_READY and condition.last_transition_time is not None:
            yield condition.last_transition_time
    if created is not None:
        yield created
