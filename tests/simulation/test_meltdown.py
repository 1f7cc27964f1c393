"""Zones and fleets that go dark: no machine is destroyed for what is no machine's fault."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from mcm.api.core import NodeCondition
from mcm.api.machine import MACHINES, MachineStatus
from mcm.api.meta import JSONObject, Resource, T
from mcm.controllers.settings import ControllerSettings
from mcm.events import CORE_EVENTS, EVENTS
from mcm.options import LeaderElection, Options
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.faults import Broken, Fault
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual

MINUTES = 60.0
ZONES = ("a", "b", "c")


def test_a_zone_that_is_dark_for_half_an_hour_costs_no_machine() -> None:
    async def main() -> None:
        async with fleet(zones=ZONES, replicas=10, limit=10) as sim:
            await sim.until(lambda: sim.running() == 30, within=120)
            vms, machines = uids(sim, VIRTUAL_MACHINES), versions(sim, ("b", "c"))
            darkness = go_dark(sim, "a")
            await sim.until(lambda: sim.phases()["Unknown"] == 10, within=60)
            assert active(sim) == {"": 0, "a": 1, "b": 0, "c": 0}
            await sim.pass_time(29 * MINUTES)
            assert sim.phases() == {"Running": 20, "Unknown": 10}
            assert held(sim) == names(sim, "a")
            assert sim.registry.get_sample_value("mcm_machine_controller_held_machines") == 10
            assert len(events(sim, "ReplacementHeld")) == 10
            darkness.lift()
            await sim.until(lambda: sim.running() == 30, within=60)
            assert held(sim) == set()
            assert not any(shown(m) for m in sim.objects(MACHINES))
            await sim.pass_time(15 * MINUTES)
            assert active(sim) == {"": 0, "a": 0, "b": 0, "c": 0}
            assert uids(sim, VIRTUAL_MACHINES) == vms
            assert versions(sim, ("b", "c")) == machines
            assert len(events(sim, "ReplacementHeld")) == 10

    run_virtual(main)


def test_while_a_zone_is_dark_the_others_still_replace_what_is_broken() -> None:
    async def main() -> None:
        async with fleet(zones=ZONES, replicas=4, limit=1) as sim:
            await sim.until(lambda: sim.running() == 12, within=120)
            dark = vm_uids(sim, "a")
            go_dark(sim, "a")
            await sim.pass_time(1 * MINUTES)
            (broken,) = sorted(names(sim, "b"))[:1]
            await switch_off(sim, broken)
            await sim.until(
                lambda: broken not in names(sim, "b") and len(names(sim, "b")) == 4,
                within=15 * MINUTES,
            )
            assert vm_uids(sim, "a") == dark

    run_virtual(main)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_a_single_broken_machine_is_replaced_in_time_however_small_its_pool(size: int) -> None:
    async def main() -> None:
        async with fleet(zones=("a",), replicas=size, limit=1) as sim:
            await sim.until(lambda: sim.running() == size, within=120)
            broken = min(names(sim, "a"))
            await switch_off(sim, broken)
            await sim.until(
                lambda: broken not in names(sim, "a") and sim.running() == size,
                within=(0.7 + 10 + 1) * MINUTES,
            )

    run_virtual(main)


def test_of_a_fleet_that_is_dark_as_a_whole_nothing_is_deleted() -> None:
    async def main() -> None:
        async with fleet(zones=ZONES, replicas=4, limit=10) as sim:
            await sim.until(lambda: sim.running() == 12, within=120)
            vms = uids(sim, VIRTUAL_MACHINES)
            darkness = go_dark(sim, "")
            await sim.pass_time(90 * MINUTES)
            assert sim.phases() == {"Unknown": 12}
            assert uids(sim, VIRTUAL_MACHINES) == vms
            assert {reason for _, _, reason in conditions(sim)} == {"HealthNotObservable"}
            assert active(sim)[""] == 1
            darkness.lift()
            await sim.until(lambda: sim.running() == 12, within=60)
            assert uids(sim, VIRTUAL_MACHINES) == vms

    run_virtual(main)


def test_what_stays_dark_after_the_rest_came_back_gets_its_whole_time_again() -> None:
    """A zone is dark for half an hour; two of its six machines are dead when it comes back."""

    async def main() -> None:
        async with fleet(zones=("a", "b"), replicas=6, limit=6) as sim:
            await sim.until(lambda: sim.running() == 12, within=120)
            go_dark(sim, "a")
            dead = set(sorted(names(sim, "a"))[:2])
            await sim.pass_time(30 * MINUTES)
            sim.kubelet_faults.clear()
            for name in dead:
                await switch_off(sim, name)
            await sim.until(lambda: sim.running() == 10, within=60)
            await sim.pass_time(10.5 * MINUTES)
            assert dead <= names(sim, "a")
            assert held(sim) == set()
            await sim.until(
                lambda: sim.running() == 12 and not dead & names(sim, "a"), within=2 * MINUTES
            )

    run_virtual(main)


def test_a_manager_that_starts_anew_holds_what_the_one_before_held() -> None:
    async def main() -> None:
        async with fleet(zones=ZONES, replicas=4, limit=10) as sim:
            await sim.until(lambda: sim.running() == 12, within=120)
            vms = uids(sim, VIRTUAL_MACHINES)
            darkness = go_dark(sim, "a")
            for _ in range(4):
                await sim.pass_time(8 * MINUTES)
                await sim.crash_manager()
                sim.start_manager()
            assert uids(sim, VIRTUAL_MACHINES) == vms
            assert len(held(sim)) == 4
            darkness.lift()
            await sim.until(lambda: sim.running() == 12, within=120)
            assert uids(sim, VIRTUAL_MACHINES) == vms

    run_virtual(main)


def test_nobody_is_given_up_for_time_in_which_no_manager_ran() -> None:
    """The API server is out for 20 minutes, and the manager ends of it; one Node is dark already.

    No process is left that knows of the outage. The one that comes after it is followed by another
    at once, which knows of it neither.
    """

    async def main() -> None:
        async with fleet(zones=("a",), replicas=5, limit=1) as sim:
            await sim.until(lambda: sim.running() == 5, within=120)
            dark, vms = min(names(sim, "a")), vm_uids(sim, "a")
            await switch_off(sim, dark)
            await sim.until(lambda: sim.phases()["Unknown"] == 1, within=60)
            await sim.pass_time(2 * MINUTES)
            outage = sim.faults.add(Broken.REFUSED)
            await sim.pass_time(20 * MINUTES)
            outage.lift()
            assert sim.losses == 1  # and the next process has just been started
            await sim.pass_time(3 * MINUTES)
            await restart(sim)
            await sim.pass_time(6.5 * MINUTES)
            assert dark in names(sim, "a")
            assert sim.phases() == {"Running": 4, "Unknown": 1}
            assert vm_uids(sim, "a") == vms
            await sim.until(
                lambda: dark not in names(sim, "a") and sim.running() == 5, within=3 * MINUTES
            )

    run_virtual(main)


@pytest.mark.parametrize("pause", [1.0, 40.0, 330.0])
def test_a_manager_that_crashes_all_the_time_still_replaces_what_is_broken(pause: float) -> None:
    """It works for a minute each time; 330 s is the longest that a kubelet waits, and the lease."""

    async def main() -> None:
        async with fleet(zones=("a",), replicas=5, limit=1) as sim:
            await sim.until(lambda: sim.running() == 5, within=120)
            broken = min(names(sim, "a"))
            await switch_off(sim, broken)
            await sim.until(lambda: sim.phases()["Unknown"] == 1, within=60)
            began, round_trip = sim.clock.monotonic(), pause + 1.5 * MINUTES
            while sim.clock.monotonic() - began < 10 * MINUTES + 3 * round_trip:
                await sim.crash_manager()
                await sim.clock.sleep(pause)
                sim.start_manager()
                await sim.pass_time(1 * MINUTES)
            assert broken not in names(sim, "a")

    run_virtual(main)


def test_without_leader_election_no_lease_tells_anything_and_timeouts_run_on() -> None:
    async def main() -> None:
        election = replace(Options().leader_election, enabled=False)
        async with fleet(zones=("a",), replicas=3, limit=1, election=election) as sim:
            await sim.until(lambda: sim.running() == 3, within=120)
            broken = min(names(sim, "a"))
            await switch_off(sim, broken)
            await sim.until(lambda: sim.phases()["Unknown"] == 1, within=60)
            await sim.crash_manager()
            await sim.clock.sleep(9 * MINUTES)
            sim.start_manager()
            await sim.until(lambda: broken not in names(sim, "a"), within=3 * MINUTES)

    run_virtual(main)


def test_vms_that_are_really_dead_are_held_for_hours_and_can_be_deleted_by_hand() -> None:
    async def main() -> None:
        async with fleet(zones=ZONES, replicas=4, limit=1) as sim:
            await sim.until(lambda: sim.running() == 12, within=120)
            dead = names(sim, "a")
            for name in dead:
                await switch_off(sim, name)
            await sim.pass_time(90 * MINUTES)
            assert held(sim) == dead == names(sim, "a")
            assert active(sim)["a"] == 1
            for name in sorted(dead)[:2]:
                await sim.client.delete(MACHINES, name, namespace="default")
            # Two of four are unhealthy now, and no two of them at once are replaced.
            await sim.until(
                lambda: sim.running() == 12 and not dead & names(sim, "a"), within=60 * MINUTES
            )
            assert active(sim)["a"] == 0

    run_virtual(main)


# ---- fleets, and what befalls them ---------------------------------------------------------------


def fleet(
    *,
    zones: tuple[str, ...],
    replicas: int,
    limit: int,
    election: LeaderElection | None = None,
) -> _Fleet:
    """A simulation with one deployment of so many machines in each zone."""
    settings = replace(
        ControllerSettings(),
        max_concurrent_replacements=limit,
        drain_timeout=timedelta(minutes=1),
    )
    options = replace(Options(), settings=settings)
    if election is not None:
        options = replace(options, leader_election=election)
    return _Fleet(Simulation(seed=5, options=options), zones, replicas)


class _Fleet:
    def __init__(self, sim: Simulation, zones: tuple[str, ...], replicas: int) -> None:
        self._sim, self._zones, self._replicas = sim, zones, replicas

    async def __aenter__(self) -> Simulation:
        await self._sim.__aenter__()
        for zone in self._zones:
            await self._sim.apply(_manifests(zone, self._replicas))
        return self._sim

    async def __aexit__(self, *why: object) -> None:
        await self._sim.__aexit__(None, None, None)


def _manifests(zone: str, replicas: int) -> list[JSONObject]:
    found = {(str(o["kind"]), name_of(o)): o for o in samples.load()}
    sample = found["MachineClass", "small"]
    template = {**sample["nodeTemplate"], "zone": zone}  # type: ignore[dict-item]
    metadata: JSONObject = {"name": zone, "namespace": "default"}
    labels = {"name": zone}
    spec: JSONObject = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"class": {"kind": "MachineClass", "name": zone}},
        },
    }
    return [
        found["Secret", "sample-secret"],
        {**sample, "metadata": metadata, "nodeTemplate": template},
        {**found["MachineDeployment", "sample"], "metadata": metadata, "spec": spec},
    ]


def go_dark(sim: Simulation, zone: str) -> Fault:
    """Let the kubelets of a zone reach nothing; their VMs run on. Empty: those of all zones."""
    return sim.kubelet_faults.add(Broken.HANGS, path=f"/(leases|nodes)/{zone}")


async def restart(sim: Simulation) -> None:
    """End the manager's process without a goodbye, if it still runs, and start the next."""
    await sim.crash_manager()
    sim.start_manager()


async def switch_off(sim: Simulation, name: str) -> None:
    patch: JSONObject = {"spec": {"powerState": "Off"}}
    await sim.client.patch(VIRTUAL_MACHINES, name, patch, namespace="default")


# ---- looking -------------------------------------------------------------------------------------


def names(sim: Simulation, zone: str) -> set[str]:
    return {name_of(m) for m in sim.objects(MACHINES) if name_of(m).startswith(f"{zone}-")}


def uids(sim: Simulation, resource: Resource[T]) -> set[str]:
    return {_meta(o, "uid") for o in sim.objects(resource)}


def vm_uids(sim: Simulation, zone: str) -> set[str]:
    vms = sim.objects(VIRTUAL_MACHINES)
    return {_meta(vm, "uid") for vm in vms if name_of(vm).startswith(f"{zone}-")}


def versions(sim: Simulation, zones: tuple[str, ...]) -> set[str]:
    """Who wrote a machine of these zones anything would change this."""
    machines = sim.objects(MACHINES)
    return {_meta(m, "resourceVersion") for m in machines if name_of(m)[0] in zones}


def _meta(obj: JSONObject, field: str) -> str:
    return str(obj["metadata"][field])  # type: ignore[index]


def conditions(sim: Simulation) -> Iterator[tuple[str, str, str]]:
    """Name, status and reason of what machines show of being replaceable."""
    for machine in sim.objects(MACHINES):
        for condition in shown(machine):
            yield name_of(machine), condition.status, condition.reason


def shown(machine: JSONObject) -> list[NodeCondition]:
    status = msgspec.convert(machine.get("status") or {}, MachineStatus)
    return [c for c in status.conditions if c.type == "Replaceable"]


def held(sim: Simulation) -> set[str]:
    return {name for name, status, _ in conditions(sim) if status == "False"}


def active(sim: Simulation) -> dict[str, float]:
    """By zone, whether the metric says that none of its machines is given up."""
    return {
        sample.labels["zone"]: sample.value
        for family in sim.registry.collect()
        for sample in family.samples
        if sample.name == "mcm_machine_controller_meltdown_protection_active"
    }


def events(sim: Simulation, reason: str) -> list[JSONObject]:
    found = (*sim.objects(EVENTS), *sim.objects(CORE_EVENTS))
    return [event for event in found if event["reason"] == reason]
