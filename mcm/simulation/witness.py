"""A witness of a simulated fleet: sees every committed change, as a watch without gaps would."""

from __future__ import annotations

from typing import final

from mcm.api.machine import MACHINES, MachinePhase
from mcm.api.meta import JSONObject
from mcm.simulation.harness import Simulation, phase_of

_SERVING = frozenset({MachinePhase.RUNNING, MachinePhase.AVAILABLE})


@final
class FleetWitness:
    """Keeps the most machines and the fewest serving ones that any moment showed."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self.most = 0
        self.fewest_serving = 0
        self.restart()
        sim.on_change(MACHINES, self._look)

    def restart(self) -> None:
        """Forget what was seen: what comes now is another story."""
        machines = self._sim.objects(MACHINES)
        self.most, self.fewest_serving = len(machines), _serving(machines)

    def _look(self) -> None:
        machines = self._sim.objects(MACHINES)
        self.most = max(self.most, len(machines))
        self.fewest_serving = min(self.fewest_serving, _serving(machines))


def _serving(machines: list[JSONObject]) -> int:
    return sum(phase_of(m) in _SERVING and not _terminating(m) for m in machines)


def _terminating(machine: JSONObject) -> bool:
    meta = machine["metadata"]
    return isinstance(meta, dict) and "deletionTimestamp" in meta
