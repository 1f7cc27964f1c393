"""Meltdown protection of one fleet: holds for each zone and for all, shown in metrics and logs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, final

from prometheus_client import CollectorRegistry, Gauge

from mcm.api.machine import Machine
from mcm.clock import Clock
from mcm.controllers.machine.health.meltdown.fleet_health import FleetHealth
from mcm.controllers.machine.health.meltdown.hold import CALM, Counts, Hold, Threshold
from mcm.controllers.runtime import Outcome, earliest
from mcm.metrics import once_per_registry

logger = logging.getLogger(__name__)

REASON_ZONE: Final = "ManyUnhealthyInZone"
REASON_FLEET: Final = "ManyUnhealthy"
REASON_UNOBSERVED: Final = "HealthNotObservable"

FLEET: Final = ""
"""Stands for all zones together where a zone is named."""


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a machine may be given up now. If ``held``, ``reason`` and ``message`` say why;
    ``clocks_from``: its health timeout starts no earlier than this (None: no bound)."""

    held: bool = False
    reason: str = ""
    message: str = ""
    clocks_from: datetime | None = None


ALLOWED: Final = Verdict()


@final
class MeltdownProtection:
    """``verdict`` answers from counts that are kept, in the same time however large the fleet.

    ``reconcile`` is a controller's body with a single key: to be woken when counts change. It sees
    holds end in time, and calls ``wake`` with the keys of those who were held.
    """

    def __init__(
        self,
        fleet: FleetHealth,
        *,
        of_zone: Threshold,
        of_fleet: Threshold,
        wake: Callable[[Iterable[str]], None],
        clock: Clock,
        registry: CollectorRegistry,
    ) -> None:
        self._fleet = fleet
        self._of_zone = of_zone
        self._of_fleet = of_fleet
        self._wake = wake
        self._clock = clock
        self._metrics = once_per_registry(registry, _Metrics)
        self._all = Hold()
        self._zones: dict[str, Hold] = {}
        self._announced: frozenset[str] = frozenset()

    def verdict(self, machine: Machine) -> Verdict:
        """Tell whether ``machine`` is held now."""
        zone = self._fleet.zone(machine)
        of_all = self._step_all()
        if of_all.on:
            return self._held_with_all(of_all)
        of_zone = self._step_zone(zone) if zone else Hold()
        if of_zone.on:
            counts = self._fleet.zones.get(zone, Counts())
            message = _message(counts, f" of zone {zone}", self._of_zone, of_zone)
            return Verdict(held=True, reason=REASON_ZONE, message=message)
        ends = [hold.ended_at for hold in (of_all, of_zone) if hold.ended_at is not None]
        return Verdict(clocks_from=max(ends, default=None))

    async def reconcile(self, key: str) -> Outcome:
        """Step every hold, show what holds, and say when the next one may end."""
        holds = [self._step_all()]
        for zone in sorted(self._fleet.zones.keys() | self._zones.keys()):
            holds.append(self._step_zone(zone))
            if zone not in self._fleet.zones and not holds[-1].on:
                del self._zones[zone]
        self._announce()
        self._metrics.show(self._fleet, self._announced)
        monotonic = self._clock.monotonic()
        return earliest(
            *(Outcome(hold.ends_in(monotonic), "a hold on giving up may end") for hold in holds)
        )

    def _announce(self) -> None:
        """Tell of what began and ended since this was last done. Verdicts step holds as well."""
        zones = {zone for zone, hold in self._zones.items() if hold.on}
        now_on = frozenset(zones | {FLEET} if self._all.on else zones)
        for scope in sorted(now_on - self._announced):
            counts = self._fleet.zones.get(scope, Counts()) if scope else self._fleet.all
            logger.warning(
                "too many machines are unhealthy: none is given up",
                extra={"zone": scope, "unhealthy": counts.unhealthy, "machines": counts.members},
            )
        ended = self._announced - now_on
        for scope in sorted(ended):
            logger.warning("machines may be given up again", extra={"zone": scope})
        self._announced = now_on
        if ended:
            self._wake(tuple(self._fleet.held))

    def _held_with_all(self, hold: Hold) -> Verdict:
        counts = self._fleet.all
        reason = REASON_FLEET
        if counts.silent == counts.members > 0:
            reason = REASON_UNOBSERVED
        return Verdict(held=True, reason=reason, message=_message(counts, "", self._of_fleet, hold))

    def _step_all(self) -> Hold:
        self._all = self._step(self._all, self._of_fleet, self._fleet.all)
        return self._all

    def _step_zone(self, zone: str) -> Hold:
        counts = self._fleet.zones.get(zone, Counts())
        hold = self._step(self._zones.get(zone, Hold()), self._of_zone, counts)
        self._zones[zone] = hold
        return hold

    def _step(self, hold: Hold, threshold: Threshold, counts: Counts) -> Hold:
        return hold.step(
            reached=threshold.is_reached(counts),
            now=self._clock.now(),
            monotonic=self._clock.monotonic(),
        )


def _message(counts: Counts, where: str, threshold: Threshold, hold: Hold) -> str:
    found = f"{counts.unhealthy} of {counts.members} machines{where} are unhealthy"
    if hold.calm_since is not None:
        return f"{found}; machines are given up again once there have been so few for {CALM:.0f} s"
    return (
        f"{found}; from {threshold.share:.0%} on the fault is rarely the machines', "
        "so none is given up until fewer are"
    )


@final
class _Metrics:
    """One object a registry. Zones are a label; it is empty for the fleet as a whole."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._active = Gauge(
            "mcm_machine_controller_meltdown_protection_active",
            "1 while so many machines (of the zone; of all, where it is empty) are unhealthy that "
            "none is given up.",
            ("zone",),
            registry=registry,
        )
        self._unhealthy = Gauge(
            "mcm_machine_controller_unhealthy_ratio",
            "Share of the machines that have joined which are unhealthy.",
            ("zone",),
            registry=registry,
        )
        self._held = Gauge(
            "mcm_machine_controller_held_machines",
            "Machines unhealthy for longer than their timeout that are not given up.",
            registry=registry,
        )
        self._shown: set[str] = set()

    def show(self, fleet: FleetHealth, on: Collection[str]) -> None:
        counts = {FLEET: fleet.all, **fleet.zones}
        for scope in self._shown - counts.keys() - set(on):
            self._active.remove(scope)
            self._unhealthy.remove(scope)
        self._shown = {*counts, *on}
        for scope in self._shown:
            self._active.labels(scope).set(scope in on)
            self._unhealthy.labels(scope).set(counts.get(scope, Counts()).share)
        self._held.set(len(fleet.held))
