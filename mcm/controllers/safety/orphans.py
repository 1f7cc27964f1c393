"""Which VMs are nobody's: listed by the provider, claimed by no machine, and that for a while."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import final

from mcm.api.machine import Machine, MachinePhase
from mcm.controllers.provider import CALL_LIMIT
from mcm.driver.codes import Code

GRACE = 300.0
"""Seconds between the first look that finds a VM unclaimed and the one that may delete it. What is
just being made or deleted looks unclaimed too, for moments."""

_AMBIGUOUS = Code.OUT_OF_RANGE.text
GRACE_OF_NAMELESS = CALL_LIMIT + GRACE
"""The same for a VM without machine name: nobody but a creation under way could still claim it."""

MOST_AT_ONCE = 10
"""VMs of a class that are deleted after one look: a mistake made by many VMs at once must leave
somebody the time to see it."""

_IN_CREATION = ("", MachinePhase.CRASH_LOOP_BACK_OFF)


@final
@dataclass(frozen=True, slots=True)
class Vm:
    """One VM as the provider lists it."""

    provider_id: str
    machine_name: str


def is_claimed(vm: Vm, machine: Machine | None) -> bool:
    """Tell whether the machine of that name (None: there is none) may own ``vm``.

    It does unless it clearly owns another one: a machine still being made, being taken away, or
    without recorded VM settles by itself what belongs to it. One whose provider finds several VMs
    does not: it has its own, and cannot go on before the others are gone.
    """
    if machine is None:
        return False
    if machine.metadata.faults:
        return True  # what it records may be just what could not be read
    recorded = machine.spec.provider_id
    return (
        not recorded
        or recorded == vm.provider_id
        or (machine.phase in _IN_CREATION and not is_ambiguous(machine))
        or machine.metadata.deletion_timestamp is not None
    )


def is_ambiguous(machine: Machine) -> bool:
    """Tell whether the provider says that several VMs bear the machine's name."""
    return _AMBIGUOUS in machine.status.last_operation.description


@final
class Unclaimed:
    """The unclaimed VMs of one class, and when each comes of age (monotonic seconds)."""

    def __init__(self) -> None:
        self._due: dict[Vm, float] = {}

    @property
    def vms(self) -> tuple[Vm, ...]:
        """Those of the last look that were not deleted."""
        return tuple(self._due)

    def look(self, unclaimed: Collection[Vm], now: float) -> tuple[Vm, ...]:
        """Take what is unclaimed now; return what has been for the whole grace period."""
        self._due = {vm: self._due.get(vm, now + _grace_of(vm)) for vm in unclaimed}
        return tuple(vm for vm in unclaimed if self._due[vm] <= now)

    def next_due(self, now: float) -> float | None:
        """Return the seconds until the next of those that are waiting comes of age."""
        return min((due - now for due in self._due.values() if due > now), default=None)

    def forget(self, vm: Vm) -> None:
        self._due.pop(vm, None)


@final
class Collected:
    """The VMs whose deletion was asked for a moment ago: clouds list them for a while yet, and
    several classes may list the same ones. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._asked_at: dict[str, float] = {}

    def add(self, vm: Vm, now: float) -> None:
        self._asked_at = {id_: at for id_, at in self._asked_at.items() if now - at < GRACE}
        self._asked_at[vm.provider_id] = now

    def holds(self, vm: Vm, now: float) -> bool:
        asked_at = self._asked_at.get(vm.provider_id)
        return asked_at is not None and now - asked_at < GRACE

    def discard(self, vm: Vm) -> None:
        """It was not deleted after all."""
        self._asked_at.pop(vm.provider_id, None)


def _grace_of(vm: Vm) -> float:
    return GRACE if vm.machine_name else GRACE_OF_NAMELESS


def vms_in(listed: Mapping[str, str]) -> Iterator[Vm]:
    """Yield the provider's answer in a stable order."""
    for provider_id in sorted(listed):
        yield Vm(provider_id, listed[provider_id])
