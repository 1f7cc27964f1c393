"""How many machines of one deployment may be given up at a time: one, while nothing else moves.

A machine that turns Failed is destroyed and replaced. If health checks fail for many at once, the
reason is rarely the machines; giving up one after the other, each only after the last replacement
runs, keeps a false alarm from taking the whole fleet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import final

from mcm.api.machine import Machine, MachinePhase
from mcm.api.names import LABEL_NAME
from mcm.controllers.indexes import add_index
from mcm.informers.store import Store

LIMIT = 1

_MOVING = "machines moving, by group"
_WAITING = "machines waiting to fail, by group"

_AT_REST = frozenset({MachinePhase.RUNNING, MachinePhase.UNKNOWN})


def group_of(machine: Machine) -> str:
    """Return the group that shares the limit: the deployment's name; empty if in none.

    In no group, a machine is nobody's replica: its end costs no other machine anything.
    """
    name = machine.metadata.labels.get(LABEL_NAME, "")
    return f"{machine.metadata.namespace}/{name}" if name else ""


def is_moving(machine: Machine) -> bool:
    """Tell whether ``machine`` counts as being replaced, made or taken away.

    Preserved machines do not: they stay as they are until somebody decides.
    """
    if machine.phase == MachinePhase.TERMINATING or machine.metadata.deletion_timestamp:
        return True
    if machine.status.current_status.preserve_expiry_time is not None:
        return False
    return machine.phase not in _AT_REST


def is_waiting(machine: Machine) -> bool:
    """Tell whether ``machine`` may turn Failed, and so waits for the others to come to rest."""
    return machine.phase in (MachinePhase.UNKNOWN, MachinePhase.IN_PLACE_UPDATE_FAILED)


def index_groups(machines: Store[Machine]) -> None:
    """Make the functions below work on ``machines``; may be called more than once."""
    add_index(machines, _MOVING, lambda m: (group_of(m),) if is_moving(m) else ())
    add_index(machines, _WAITING, lambda m: (group_of(m),) if is_waiting(m) else ())


def moving_with(machines: Store[Machine], machine: Machine) -> Sequence[Machine]:
    """Return those of the machine's group that are being made, replaced or taken away."""
    return machines.by_index(_MOVING, group_of(machine))


def waiting_with(machines: Store[Machine], machine: Machine) -> Iterator[Machine]:
    """Yield the others of the machine's group that wait for their group to come to rest."""
    group = group_of(machine)
    if group:
        for other in machines.by_index(_WAITING, group):
            if other.metadata.uid != machine.metadata.uid:
                yield other


@final
@dataclass(slots=True)
class _Write:
    """A turn to Failed that is being written, and the keys of those it stands in the way of."""

    uid: str
    refused: set[str] = field(default_factory=set)


@final
class FailurePermits:
    """Which groups have a machine whose turn to Failed is being written right now.

    The store knows everything but that: between decision and answer, other workers decide too.
    ``wake`` is called with the keys of those who were refused because of a write that then failed.
    """

    def __init__(self, wake: Callable[[str], None]) -> None:
        self._wake = wake
        self._in_flight: dict[str, _Write] = {}

    def may_fail(self, machine: Machine, moving: Iterable[Machine]) -> bool:
        """Tell whether ``machine`` may be given up, given those of its group that move.

        Who is refused is woken: by the group's coming to rest, or by the end of a failed write.
        """
        group = group_of(machine)
        if not group:
            return True
        write = self._in_flight.get(group)
        if write is not None and write.uid != machine.metadata.uid:
            write.refused.add(machine.metadata.key)
            return False
        others = sum(1 for other in moving if other.metadata.uid != machine.metadata.uid)
        return others < LIMIT

    @contextmanager
    def writing(self, machine: Machine) -> Iterator[None]:
        """Hold the group's permit while the write is under way. Call with no await in between."""
        group = group_of(machine)
        write = _Write(machine.metadata.uid)
        if group:
            self._in_flight[group] = write
        written = False
        try:
            yield
            written = True
        finally:
            self._in_flight.pop(group, None)
            if not written:
                for key in sorted(write.refused):
                    self._wake(key)
