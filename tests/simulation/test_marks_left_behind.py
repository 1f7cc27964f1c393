"""What an update in place left on a set pins nothing once the set is used otherwise."""

from __future__ import annotations

from typing import Any

from mcm.api.machine import MACHINE_SETS, MACHINES
from mcm.api.names import LABEL_SCALE_UP_DISABLED
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual

FLEET = 3


def test_a_set_that_may_make_no_machines_any_more_makes_them_again() -> None:
    async def main() -> None:
        async with Simulation(seed=61) as sim:
            await sim.apply(samples.load())
            await sim.until(lambda: sim.running() == FLEET, within=120)
            (found,) = sim.objects(MACHINE_SETS)
            left: dict[str, Any] = {"metadata": {"labels": {LABEL_SCALE_UP_DISABLED: "true"}}}
            await sim.client.patch(MACHINE_SETS, name_of(found), left, namespace="default")
            await sim.pass_time(30)
            (found,) = sim.objects(MACHINE_SETS)
            labels: Any = found["metadata"]["labels"]  # type: ignore[index]
            assert LABEL_SCALE_UP_DISABLED not in labels
            victim = name_of(sim.objects(MACHINES)[0])
            await sim.client.delete(VIRTUAL_MACHINES, victim, namespace="default")
            await sim.until(
                lambda: victim not in {name_of(m) for m in sim.objects(MACHINES)}, within=1200
            )
            await sim.until(lambda: sim.running() == FLEET, within=120)

    run_virtual(main)
