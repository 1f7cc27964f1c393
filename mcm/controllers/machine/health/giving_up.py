"""Whether a machine may be given up: its deployment's limit and meltdown protection in one place.

Neither is about machines that no set wants: nobody would replace them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import final

from prometheus_client import CollectorRegistry, Counter

from mcm.api.machine import Machine, MachineSet
from mcm.controllers.machine.health.failure_permit import FailurePermits, Permit
from mcm.controllers.machine.health.meltdown.protection import (
    ALLOWED,
    MeltdownProtection,
    Verdict,
)
from mcm.controllers.machine.health.moving_machines import MovingMachines, is_wanted
from mcm.controllers.machine.health.waiting_line import WaitingLine
from mcm.informers.store import Store


def failure_permits(registry: CollectorRegistry) -> Counter:
    """Make the counter of answers."""
    counter = Counter(
        "mcm_machine_failure_permits",
        "Answers to whether a machine whose time is over may be given up, as so few others of its "
        "deployment move.",
        ("answer",),
        registry=registry,
    )
    for answer in ("granted", "refused"):
        counter.labels(answer)
    return counter


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GivingUp:
    """Asked when a machine's time is over; all of it in memory, whatever the size of the fleet."""

    sets: Store[MachineSet]
    moving: MovingMachines
    permits: FailurePermits
    line: WaitingLine
    protection: MeltdownProtection
    asked: Counter
    """How often it was asked whether a machine may fail, by ``answer``."""

    def verdict(self, machine: Machine) -> Verdict:
        """Tell what meltdown protection says of the machine."""
        return self.protection.verdict(machine) if is_wanted(machine, self.sets) else ALLOWED

    def may_fail(self, machine: Machine) -> bool:
        """Tell whether so few of the machine's deployment move that it may be given up, too. If
        not, it waits in line."""
        if not is_wanted(machine, self.sets):
            return True
        granted = self.permits.may_fail(machine, self.moving.in_group_of(machine))
        if granted:
            self.line.granted(machine)
        else:
            self.line.refused(machine)
        self.asked.labels("granted" if granted else "refused").inc()
        return granted

    def holding(self, machine: Machine) -> AbstractContextManager[Permit]:
        """Hold a permit of the deployment until the turn to Failed is written, or not called for
        any more."""
        return self.permits.holding(machine)
