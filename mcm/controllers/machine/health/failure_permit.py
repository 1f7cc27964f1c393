"""How many machines of one deployment may be given up at a time, while how many others move.

A machine that turns Failed is destroyed and replaced. If health checks fail for many at once, the
reason is rarely the machines; giving up a few (one, by default), each only after the last
replacement runs, keeps a false alarm from taking the whole fleet.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

from mcm.api.machine import Machine, MachinePhase
from mcm.api.names import LABEL_NAME
from mcm.controllers.machine.node.settlement import REASON_CONTESTED
from mcm.controllers.machine.own_conditions import OwnCondition, find_own
from mcm.informers.store import Store

_WAITING = "machines waiting to fail, by group"

_MAY_FAIL = frozenset({MachinePhase.UNKNOWN, MachinePhase.IN_PLACE_UPDATE_FAILED})
_AT_REST = _MAY_FAIL | {MachinePhase.RUNNING}


def group_of(machine: Machine) -> str:
    """Return the group that shares the limit: the deployment's name; empty if in none.

    In no group, a machine is nobody's replica: its end costs no other machine anything.
    """
    name = machine.metadata.labels.get(LABEL_NAME, "")
    return f"{machine.metadata.namespace}/{name}" if name else ""


def is_moving(machine: Machine) -> bool:
    """Tell whether ``machine`` counts as being replaced, made or taken away.

    Preserved machines do not: they stay as they are until somebody decides. Nor does one whose Node
    another machine names, too, while it joins: it waits for somebody to correct a label. Neither do
    those that wait for their own turn to fail, or two of them would wait for each other.
    """
    if machine.phase == MachinePhase.TERMINATING or machine.metadata.deletion_timestamp:
        return True
    if machine.status.current_status.preserve_expiry_time is not None:
        return False
    if machine.phase == MachinePhase.PENDING and _is_contested(machine):
        return False
    return machine.phase not in _AT_REST


def _is_contested(machine: Machine) -> bool:
    shown = find_own(machine.status, OwnCondition.NODE_UNAMBIGUOUS)
    return shown is not None and shown.reason == REASON_CONTESTED


def is_waiting(machine: Machine) -> bool:
    """Tell whether ``machine`` may turn Failed, and so waits for the others to come to rest."""
    return machine.phase in _MAY_FAIL


def index_waiting(machines: Store[Machine]) -> None:
    """Make ``waiting_in`` work on ``machines``; may be called more than once."""
    machines.ensure_index(_WAITING, lambda m: (group_of(m),) if is_waiting(m) else ())


def waiting_in(machines: Store[Machine], group: str) -> Iterator[Machine]:
    """Yield those of the group that wait for it to come to rest."""
    if group:
        yield from machines.by_index(_WAITING, group)


@final
@dataclass(slots=True)
class Permit:
    """Leave to give one machine up; ``used`` once the turn to Failed is written."""

    used: bool = False


@final
class FailurePermits:
    """Which groups have machines that are being given up right now.

    The mirror knows everything but that: between decision and answer, other workers decide too.
    At most ``limit`` machines of a group may move. ``unused`` is called with the group of a permit
    that was not used: others may have been refused because of it.
    """

    def __init__(self, unused: Callable[[str], None], *, limit: int = 1) -> None:
        self._unused = unused
        self._limit = limit
        self._in_flight: dict[str, set[str]] = {}
        """The UIDs of those that hold a permit, by group."""

    def may_fail(self, machine: Machine, moving: Collection[str]) -> bool:
        """Tell whether ``machine`` may be given up, given the UIDs of those of its group that
        move."""
        group, uid = group_of(machine), machine.metadata.uid
        if not group:
            return True
        held = self._in_flight.get(group, ())
        unseen = sum(h not in moving and h != uid for h in held)
        return len(moving) - (uid in moving) + unseen < self._limit

    @contextmanager
    def holding(self, machine: Machine) -> Iterator[Permit]:
        """Hold the group's permit from the decision until it is written, or given back unused. Call
        with no await since :meth:`may_fail`."""
        group, uid, permit = group_of(machine), machine.metadata.uid, Permit()
        if not group:
            yield permit
            return
        held = self._in_flight.setdefault(group, set())
        held.add(uid)
        try:
            yield permit
        finally:
            held.discard(uid)
            if not held:
                self._in_flight.pop(group, None)
            if not permit.used:
                self._unused(group)
