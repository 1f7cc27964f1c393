"""What a deployment's history may never show: looked for after each committed change.

Bounds are those of the spec, or of one that was in force shortly before: a user's change reaches
the controllers a moment later. What users and clouds did to a machine counts for as long, too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.simulation.harness import Simulation, name_of, phase_of

SHORTLY: Final = 120.0
"""Seconds in which what happened to a machine, or was asked for, may still excuse something."""
SERVING: Final = frozenset({"Running", "Available"})
BROKEN: Final = frozenset({"Unknown", "Failed", "CrashLoopBackOff", "InPlaceUpdateFailed"})


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """What one spec allows: the ``most`` machines, the ``least`` that serve; None: no promise."""

    most: int
    least: int | None


def limits_of(spec: Mapping[str, Any]) -> Limits:
    """Work the limits out of a stored deployment's spec with plain numbers."""
    replicas, strategy = int(spec.get("replicas", 0)), spec["strategy"]
    block: Mapping[str, Any] = {}
    if strategy["type"] == "RollingUpdate":
        block = strategy["rollingUpdate"]
    elif strategy["type"] == "InPlaceUpdate":
        block = strategy["inPlaceUpdate"]
    surge, unavailable = int(block.get("maxSurge", 0)), int(block.get("maxUnavailable", 0))
    if block.get("orchestrationType") == "Manual":
        surge = 0
    if surge == unavailable == 0:
        unavailable = 1
    least = max(0, replicas - unavailable) if block else None
    return Limits(most=replicas + surge if replicas else 0, least=least)


@final
@dataclass(frozen=True, slots=True)
class Seen:
    """A machine as it was last seen."""

    name: str
    phase: str
    terminating: bool

    @property
    def serves(self) -> bool:
        return self.phase in SERVING and not self.terminating


@final
class Promises:
    """Looks at ``sim`` all the time; ``broken`` tells what should never have been."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self.broken: list[str] = []
        self._said = ""
        self._machines: Mapping[str, Seen] = {}
        self._limits: Limits | None = None
        self._earlier: list[tuple[float, Limits]] = []
        self._excess = 0
        self._excused: dict[str, float] = {}
        self._extras: set[str] = set()
        sim.on_change(MACHINE_DEPLOYMENTS, self._look_at_limits)
        sim.on_change(MACHINES, self._look_at_machines)

    def excuse(self, *names: str) -> None:
        """Somebody does something to these machines."""
        self._excused.update(dict.fromkeys(names, self._now))

    def ignore(self, name: str) -> None:
        """Somebody makes this machine himself; it is one too many, and counts as none."""
        self._extras.add(name)

    @property
    def _now(self) -> float:
        return self._sim.clock.monotonic()

    # ---- what is asked for ----------------------------------------------------------------------

    def _look_at_limits(self) -> None:
        found = [d for d in self._sim.objects(MACHINE_DEPLOYMENTS) if name_of(d) == "sample"]
        spec: Any = found[0]["spec"] if found else None
        limits = limits_of(spec) if spec else Limits(0, None)
        if limits == self._limits:
            return
        if self._limits is not None:
            self._earlier.append((self._now, self._limits))
            self._excess = max(self._excess, self._limits.most, self._counted)
        self._limits = limits

    def _recent(self) -> Collection[Limits]:
        """The limits in force, and those that were shortly before."""
        assert self._limits is not None
        horizon = self._now - SHORTLY
        self._earlier = [(until, limits) for until, limits in self._earlier if until >= horizon]
        return (self._limits, *(limits for _, limits in self._earlier))

    # ---- what there is --------------------------------------------------------------------------

    @property
    def _counted(self) -> int:
        """Machines that count: not those of users, nor what leaves because it had broken."""
        return sum(
            name not in self._extras and not (seen.terminating and name in self._excused)
            for name, seen in self._machines.items()
        )

    def _look_at_machines(self) -> None:
        before = self._machines
        self._machines = {
            name_of(m): Seen(name_of(m), phase_of(m), _is_terminating(m))
            for m in self._sim.objects(MACHINES)
        }
        self.excuse(*(name for name, seen in self._machines.items() if seen.phase in BROKEN))
        if self._limits is not None:
            self._check_count()
            self._check_service(before)

    def _check_count(self) -> None:
        recent = self._recent()
        allowed = max(self._excess, *(limits.most for limits in recent))
        if self._counted > allowed:
            self._tell(f"{self._counted} machines, {allowed} may be")
        if len(recent) == 1:  # what sets still want they may make again, if it fails
            wanted = sum(_replicas(s) for s in self._sim.objects(MACHINE_SETS))
            self._excess = min(self._excess, max(self._counted, wanted))

    def _check_service(self, before: Mapping[str, Seen]) -> None:
        """Nobody takes a machine that serves out of service where too few are left."""
        taken = [
            name
            for name, seen in self._machines.items()
            if name in before and before[name].serves and name not in self._excused
            if seen.terminating or seen.phase == "InPlaceUpdating"
        ]
        leasts = [limits.least for limits in self._recent()]
        if not taken or None in leasts:
            return
        horizon = self._now - SHORTLY
        slack = sum(since >= horizon for since in self._excused.values())
        least = min(least for least in leasts if least is not None) - slack
        left = sum(seen.serves for seen in self._machines.values())
        if left < least:
            self._tell(f"{', '.join(taken)} taken, {left} serve, {least} must")

    def _tell(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self.broken.append(f"{self._now:.0f} s: {text}")


def _replicas(machine_set: Any) -> int:
    return int(machine_set["spec"].get("replicas", 0))


def _is_terminating(machine: Any) -> bool:
    return "deletionTimestamp" in machine["metadata"] or phase_of(machine) == "Terminating"
