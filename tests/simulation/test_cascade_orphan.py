"""Owners deleted with ``--cascade=orphan``: what takes their place adopts all and makes nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES, Machine
from mcm.api.meta import JSONObject
from mcm.events.wire import CORE_EVENTS
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.faults import WatchEnd
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual

FLEET = 3


class Witness:
    """Fails as soon as a machine is made or deleted."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self._uids = {m.metadata.uid for m in machines(sim)}
        self.trouble: list[str] = []
        sim.on_change(MACHINES, self._look)

    def _look(self) -> None:
        found = machines(self._sim)
        if {m.metadata.uid for m in found} != self._uids:
            self.trouble.append(f"{[m.metadata.name for m in found]}")
        if any(m.metadata.deletion_timestamp for m in found):
            self.trouble.append("one is deleted")


def machines(sim: Simulation) -> list[Machine]:
    return [msgspec.convert(m, Machine) for m in sim.objects(MACHINES)]


def owners(sim: Simulation) -> set[str]:
    refs = (m.metadata.controller_ref() for m in machines(sim))
    return {ref.uid if ref else "" for ref in refs}


def uid_of(obj: JSONObject) -> str:
    meta: Any = obj["metadata"]
    return str(meta["uid"])


async def begin(sim: Simulation) -> JSONObject:
    """Run a fleet; return its set."""
    await sim.apply(samples.load())
    await sim.until(lambda: sim.running() == FLEET, within=120)
    await sim.pass_time(30)
    (found,) = sim.objects(MACHINE_SETS)
    return found


def adopted(sim: Simulation, old: str) -> bool:
    sets = sim.objects(MACHINE_SETS)
    return len(sets) == 1 and uid_of(sets[0]) != old and owners(sim) == {uid_of(sets[0])}


async def still_replaces(sim: Simulation) -> None:
    """The fleet is looked after as before."""
    victim = machines(sim)[0].metadata.name
    await sim.client.delete(VIRTUAL_MACHINES, victim, namespace="default")
    await sim.until(lambda: victim not in {m.metadata.name for m in machines(sim)}, within=1200)
    await sim.until(lambda: sim.running() == FLEET, within=300)


@pytest.mark.parametrize("lag", [0.0, 20.0], ids=["", "the-mirror-of-machines-lags"])
def test_a_set_that_is_orphaned_is_replaced_by_one_that_adopts_its_machines(lag: float) -> None:
    async def main() -> None:
        async with Simulation(seed=51) as sim:
            old = await begin(sim)
            witness = Witness(sim)
            if lag:
                sim.faults.cut_watches(WatchEnd.CLOSED)
                sim.faults.delay(lag, method="GET", path="/machines$", times=3)
                await sim.pass_time(2)
            await sim.client.delete(
                MACHINE_SETS, name_of(old), namespace="default", propagation="Orphan"
            )
            await sim.until(lambda: adopted(sim, uid_of(old)), within=120)
            await sim.pass_time(120)
            assert not witness.trouble
            (new,) = sim.objects(MACHINE_SETS)
            assert name_of(new) == name_of(old)
            assert owners(sim) == {uid_of(new)}
            await still_replaces(sim)

    run_virtual(main)


def test_a_set_that_is_orphaned_while_no_manager_runs() -> None:
    async def main() -> None:
        async with Simulation(seed=52) as sim:
            old = await begin(sim)
            witness = Witness(sim)
            await sim.crash_manager()
            await sim.client.delete(
                MACHINE_SETS, name_of(old), namespace="default", propagation="Orphan"
            )
            await sim.clock.sleep(60)
            assert owners(sim) == {""}
            sim.start_manager()
            await sim.until(lambda: adopted(sim, uid_of(old)), within=180)
            assert not witness.trouble

    run_virtual(main)


def test_a_deployment_that_is_orphaned_and_made_again_finds_its_sets_and_machines() -> None:
    async def main() -> None:
        async with Simulation(seed=53) as sim:
            old = await begin(sim)
            (deployment,) = sim.objects(MACHINE_DEPLOYMENTS)
            witness = Witness(sim)
            await sim.client.delete(
                MACHINE_DEPLOYMENTS, "sample", namespace="default", propagation="Orphan"
            )
            await sim.until(lambda: not sim.objects(MACHINE_DEPLOYMENTS), within=60)
            await sim.pass_time(300)
            assert owners(sim) == {uid_of(old)}, "a set without a deployment goes on"
            meta: Any = deployment["metadata"]
            fresh = {k: meta[k] for k in ("name", "namespace")}
            spec = deployment["spec"]
            await sim.apply(
                [
                    {
                        "apiVersion": deployment["apiVersion"],
                        "kind": deployment["kind"],
                        "metadata": fresh,
                        "spec": spec,
                    }
                ]
            )
            await sim.pass_time(120)
            assert not witness.trouble
            (found,) = sim.objects(MACHINE_SETS)
            assert uid_of(found) == uid_of(old)
            owner: Any = found["metadata"]["ownerReferences"]  # type: ignore[index]
            (made,) = sim.objects(MACHINE_DEPLOYMENTS)
            assert owner[0]["uid"] == uid_of(made)
            await still_replaces(sim)

    run_virtual(main)


@pytest.mark.parametrize("whole", [True, False])
def test_a_set_of_its_own_is_orphaned_and_made_again(whole: bool) -> None:
    async def main() -> None:
        async with Simulation(seed=54) as sim:
            old = await begin(sim)
            await sim.client.delete(
                MACHINE_DEPLOYMENTS, "sample", namespace="default", propagation="Orphan"
            )
            await sim.until(lambda: not sim.objects(MACHINE_DEPLOYMENTS), within=60)
            witness = Witness(sim)
            await sim.client.delete(
                MACHINE_SETS, name_of(old), namespace="default", propagation="Orphan"
            )
            await sim.until(lambda: not sim.objects(MACHINE_SETS), within=60)
            if whole:
                await sim.pass_time(600)
                assert owners(sim) == {""}, "nobody touches machines without an owner"
            meta: Any = old["metadata"]
            fresh = {k: meta[k] for k in ("name", "namespace", "labels")}
            again = {
                "apiVersion": old["apiVersion"],
                "kind": old["kind"],
                "metadata": fresh,
                "spec": old["spec"],
            }
            await sim.apply([again])
            await sim.until(lambda: adopted(sim, uid_of(old)), within=60)
            await sim.pass_time(60)
            assert not witness.trouble
            await still_replaces(sim)

    run_virtual(main)


def test_machines_bearing_another_programs_hash_are_adopted_too() -> None:
    async def main() -> None:
        async with Simulation(seed=55) as sim:
            old = await begin(sim)
            mark = {"machine-template-hash": "2424324503"}
            meta, spec = {"labels": mark}, {"selector": {"matchLabels": mark}}
            relabelled: dict[str, Any] = {"metadata": meta, "spec": {**spec, "template": {}}}
            relabelled["spec"]["template"] = {"metadata": {"labels": mark}}
            await sim.stop_manager()
            for machine in machines(sim):
                await sim.client.patch(
                    MACHINES, machine.metadata.name, {"metadata": meta}, namespace="default"
                )
            await sim.client.patch(MACHINE_SETS, name_of(old), relabelled, namespace="default")
            await sim.crash_manager()
            sim.start_manager()
            await sim.pass_time(60)
            witness = Witness(sim)
            await sim.client.delete(
                MACHINE_SETS, name_of(old), namespace="default", propagation="Orphan"
            )
            await sim.until(lambda: adopted(sim, uid_of(old)), within=120)
            await sim.pass_time(60)
            assert not witness.trouble

    run_virtual(main)


def test_machines_that_an_old_set_leaves_in_the_middle_of_a_rollout_are_told_of() -> None:
    def said(sim: Simulation) -> str:
        (pool,) = sim.objects(MACHINE_DEPLOYMENTS)
        status: Any = pool["status"]
        found = [c for c in status["conditions"] if c["type"] == "OrphanedMachines"]
        return str(found[0]["message"]) if found else ""

    async def main() -> None:
        async with Simulation(seed=57) as sim:
            old = await begin(sim)
            (pool,) = sim.objects(MACHINE_DEPLOYMENTS)
            change: JSONObject = {
                "spec": {"template": {"metadata": {"annotations": {"again": "1"}}}}
            }
            await sim.client.patch(MACHINE_DEPLOYMENTS, name_of(pool), change, namespace="default")
            await sim.until(lambda: len(sim.objects(MACHINE_SETS)) == 2, within=60)
            await sim.client.delete(
                MACHINE_SETS, name_of(old), namespace="default", propagation="Orphan"
            )
            await sim.until(lambda: said(sim) != "", within=120)
            await sim.pass_time(600)
            strays = [m for m in machines(sim) if m.metadata.controller_ref() is None]
            assert len(strays) >= 2
            assert len(machines(sim)) == FLEET + len(strays)
            names = ", ".join(sorted(m.metadata.name for m in strays))
            assert said(sim).startswith(f"{len(strays)} machines match spec.selector but no ")
            assert f"will adopt: {names}." in said(sim)
            told = [e for e in sim.objects(CORE_EVENTS) if e["reason"] == "NoMachineSetAdopts"]
            assert len(told) == 1
            before: Any = sim.objects(MACHINE_DEPLOYMENTS)[0]["metadata"]
            await sim.pass_time(3600)
            after: Any = sim.objects(MACHINE_DEPLOYMENTS)[0]["metadata"]
            assert after["resourceVersion"] == before["resourceVersion"]

            for machine in strays:
                await sim.client.delete(MACHINES, machine.metadata.name, namespace="default")
            await sim.until(lambda: said(sim) == "", within=60)
            await sim.until(lambda: len(machines(sim)) == FLEET, within=600)

    run_virtual(main)
