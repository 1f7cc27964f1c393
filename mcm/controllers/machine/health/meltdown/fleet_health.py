"""How many machines are unhealthy, in each zone and in all: counted at every change, not anew."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, final

from mcm.api.machine import Machine, MachinePhase
from mcm.api.names import CONDITION_NODE_READY, STATUS_FALSE, STATUS_UNKNOWN
from mcm.controllers.machine.health.meltdown.hold import Counts
from mcm.controllers.machine.own_conditions import OwnCondition, find_own
from mcm.informers.change import Change

_JOINED: Final = frozenset(
    {
        MachinePhase.RUNNING,
        MachinePhase.UNKNOWN,
        MachinePhase.IN_PLACE_UPDATING,
        MachinePhase.IN_PLACE_UPDATE_FAILED,
        MachinePhase.IN_PLACE_UPDATE_SUCCESSFUL,
    }
)


def is_member(machine: Machine) -> bool:
    """Tell whether the machine's health says something about that of its neighbours.

    It must have joined and stay, and nobody may have decided to keep it however it is.
    """
    return (
        machine.phase in _JOINED
        and machine.metadata.deletion_timestamp is None
        and machine.status.current_status.preserve_expiry_time is None
        and not machine.spec.disable_health_timeout
    )


def is_held(machine: Machine) -> bool:
    """Tell whether the machine shows that it would have been given up."""
    shown = find_own(machine.status, OwnCondition.REPLACEABLE)
    return shown is not None and shown.status == STATUS_FALSE


class _Share(NamedTuple):
    """What one machine adds to the counts."""

    zone: str
    unhealthy: bool
    silent: bool


@final
class FleetHealth:
    """Told of every change of a machine by ``note``. ``locate`` finds a machine's zone, ``changed``
    is called when anything shown here has changed."""

    def __init__(self, *, locate: Callable[[Machine], str], changed: Callable[[], None]) -> None:
        self._locate = locate
        self._changed = changed
        self._shares: dict[str, _Share] = {}
        self._known_zones: dict[str, str] = {}
        self._held: set[str] = set()
        self._all = Counts()
        self._zones: dict[str, Counts] = {}

    @property
    def all(self) -> Counts:
        return self._all

    @property
    def zones(self) -> Mapping[str, Counts]:
        """The zones with machines that have joined. Those of no known zone are in none."""
        return MappingProxyType(self._zones)

    @property
    def held(self) -> Collection[str]:
        """The keys of the machines that show that they would have been given up."""
        return self._held

    def zone(self, machine: Machine) -> str:
        """Return the machine's zone; the last known one if what told it is gone."""
        uid = machine.metadata.uid
        found = self._locate(machine) or self._known_zones.get(uid, "")
        if found:
            self._known_zones[uid] = found
        return found

    def note(self, change: Change[Machine]) -> None:
        """Take in what became of a machine."""
        if change.resync:
            return
        machine = change.object
        if change.new is None:
            self._put(machine, None)
            self._known_zones.pop(machine.metadata.uid, None)
            self._note_held(machine.metadata.key, held=False)
            return
        self.look(machine)

    def look(self, machine: Machine) -> None:
        """Count the machine as it is now; where its zone may have become known, too."""
        self._note_held(machine.metadata.key, held=is_held(machine))
        zone = self.zone(machine)
        self._put(machine, _share_of(machine, zone) if is_member(machine) else None)

    def _note_held(self, key: str, *, held: bool) -> None:
        if held != (key in self._held):
            (self._held.add if held else self._held.discard)(key)
            self._changed()

    def _put(self, machine: Machine, share: _Share | None) -> None:
        uid = machine.metadata.uid
        before = self._shares.pop(uid, None)
        if share is not None:
            self._shares[uid] = share
        if before == share:
            return
        if before is not None:
            self._add(before, -1)
        if share is not None:
            self._add(share, 1)
        self._changed()

    def _add(self, share: _Share, sign: int) -> None:
        self._all = _plus(self._all, share, sign)
        if not share.zone:
            return
        counts = _plus(self._zones.get(share.zone, Counts()), share, sign)
        if counts.members:
            self._zones[share.zone] = counts
        else:
            self._zones.pop(share.zone, None)


def _share_of(machine: Machine, zone: str) -> _Share:
    unhealthy = machine.phase == MachinePhase.UNKNOWN
    ready = (c for c in machine.status.conditions if c.type == CONDITION_NODE_READY)
    silent = unhealthy and any(c.status == STATUS_UNKNOWN for c in ready)
    return _Share(zone, unhealthy, silent)


def _plus(counts: Counts, share: _Share, sign: int) -> Counts:
    return Counts(
        counts.members + sign,
        counts.unhealthy + sign * share.unhealthy,
        counts.silent + sign * share.silent,
    )
