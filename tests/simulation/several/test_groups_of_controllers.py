"""Set controllers in one process, machine controllers in another, each under its own lease."""

from __future__ import annotations

from mcm.manager import LEASE_NAMES
from mcm.options import Clusters, ControllerChoice, Options
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.virtualtime import run_virtual
from tests.simulation.several.managers import Managers

SETS, MACHINES = LEASE_NAMES
SET_CONTROLLERS = Options(controllers=ControllerChoice(("set-controllers",)))
MACHINE_CONTROLLERS = Options(controllers=ControllerChoice(("machine-controllers",)))
ALL_CONTROLLERS = Options()


def test_two_halves_do_the_work_of_one() -> None:
    async def main() -> None:
        async with Managers.open() as managers:
            sim = managers.sim
            managers.start("sets", SET_CONTROLLERS)
            machines = managers.start("machines", MACHINE_CONTROLLERS)
            await sim.apply(samples.load())
            await sim.until(lambda: sim.running() == 3, within=120)
            assert (managers.holder(SETS), managers.holder(MACHINES)) == ("sets", "machines")
            assert managers.controllers_of("sets") <= {
                "machinedeployment", "machineset", "machinesafetyovershooting",
                "machinesafetyfreeze",
            }  # fmt: skip
            assert {"machine", "machineclass", "secret"} <= managers.controllers_of("machines")
            assert not managers.controllers_of("machines") & managers.controllers_of("sets")
            # One half goes: the other one goes on alone.
            await machines.stop()
            assert (managers.holder(SETS), managers.holder(MACHINES)) == ("sets", "")
            assert not managers.processes[0].task.done()

    run_virtual(main)


def test_a_half_mirrors_and_calls_no_more_than_it_needs() -> None:
    async def main() -> None:
        async with Managers.open() as managers:
            without_target = Clusters(target_kubeconfig="none", control_kubeconfig="x")
            sets = managers.start("sets", SET_CONTROLLERS)
            alone = managers.start(
                "alone", Options(controllers=SET_CONTROLLERS.controllers, clusters=without_target)
            )
            finalizers = managers.start("s", Options(controllers=ControllerChoice(("secret",))))
            fleet = {"machines", "machinesets", "machinedeployments"}
            assert {name.split(".")[0] for name in sets.mirrored} == {
                *fleet, "machineclasses", "nodes",
            }  # fmt: skip
            assert {name.split(".")[0] for name in alone.mirrored} == {*fleet, "machineclasses"}
            assert {name.split(".")[0] for name in finalizers.mirrored} == {
                *fleet, "machineclasses", "secrets",
            }  # fmt: skip

    run_virtual(main)


def test_a_half_waits_for_nobody_but_the_holder_of_its_own_lease() -> None:
    async def main() -> None:
        async with Managers.open() as managers:
            sim = managers.sim
            await managers.hold_lease(MACHINES)
            await sim.apply(samples.load())
            managers.start("sets", SET_CONTROLLERS)
            managers.start("machines", MACHINE_CONTROLLERS)
            managers.start("both", ALL_CONTROLLERS)
            # Beside a Go machine controller: machines are wanted, and left to it.
            await sim.until(lambda: sim.phases()[""] == 3, within=60)
            await sim.pass_time(120)
            assert managers.acting() == {"sets"}
            assert sim.objects(VIRTUAL_MACHINES) == []
            await managers.let_go(MACHINES)
            await sim.until(lambda: sim.running() == 3, within=60)
            assert managers.acting() == {"sets", "machines"}
            # The other way round; and where both are free, one process may have both.
            for process in managers.processes[:2]:
                await process.stop()
            await sim.until(lambda: managers.holder(SETS) == "both", within=60)
            assert managers.holder(MACHINES) == "both"

    run_virtual(main)


def test_beside_a_set_manager_of_go_the_machine_controllers_act_alone() -> None:
    async def main() -> None:
        async with Managers.open() as managers:
            sim = managers.sim
            await managers.hold_lease(SETS)
            managers.start("sets", SET_CONTROLLERS)
            managers.start("machines", MACHINE_CONTROLLERS)
            await sim.apply(samples.load())
            await sim.pass_time(60)
            assert managers.controllers_of("machines") == {"machineclass", "secret"} & (
                managers.controllers_of("machines")
            )
            assert "sets" not in managers.acting() and managers.holder(MACHINES) == "machines"

    run_virtual(main)
