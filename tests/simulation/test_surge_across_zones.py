"""Three deployments, one a zone, that share one surge: rolled at once by the whole manager."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from mcm.api.machine import GROUP, MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_SURGE_POOL
from mcm.events import CORE_EVENTS, EVENTS
from mcm.simulation.faults import WatchEnd
from mcm.simulation.harness import Simulation, name_of, phase_of
from mcm.simulation.virtualtime import run_virtual
from mcm.simulation.witness import FleetWitness
from tests.simulation.in_place import Agents, InPlaceFleet
from tests.thoroughness import part_of

API_VERSION = f"{GROUP}/v1alpha1"
ZONES = ("zone-a", "zone-b", "zone-c")
REPLICAS = 3
ALL = REPLICAS * len(ZONES)


def machine_class(name: str) -> JSONObject:
    return {
        "apiVersion": API_VERSION,
        "kind": "MachineClass",
        "metadata": {"name": name, "namespace": "default"},
        "provider": "simulated",
        "providerSpec": {"createLatency": "1s", "bootLatency": "2s", "joinLatency": "1s"},
    }


def deployment(zone: str, surge: int | str, unavailable: int | str) -> JSONObject:
    labels = {"name": zone}
    return {
        "apiVersion": API_VERSION,
        "kind": "MachineDeployment",
        "metadata": {
            "name": zone,
            "namespace": "default",
            "annotations": {ANNOTATION_SURGE_POOL: "workers"},
        },
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": labels},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
            },
            "template": {
                "metadata": {"labels": labels},
                "spec": {"class": {"kind": "MachineClass", "name": "small"}},
            },
        },
    }


async def begin(sim: Simulation, surge: int | str, unavailable: int | str) -> FleetWitness:
    await sim.apply(
        [
            machine_class("small"),
            machine_class("large"),
            *(deployment(zone, surge, unavailable) for zone in ZONES),
        ]
    )
    await sim.until(lambda: sim.running() == ALL, within=120)
    await sim.pass_time(5)
    return FleetWitness(sim)


async def roll(sim: Simulation, zone: str, klass: str) -> None:
    await change(sim, zone, {"template": {"spec": {"class": {"name": klass}}}})


def is_rolled(sim: Simulation, klass: str) -> bool:
    machines = sim.objects(MACHINES)
    classes = Counter(m["spec"]["class"]["name"] for m in machines)  # type: ignore[index]
    return classes == {klass: ALL} and all(phase_of(m) == "Running" for m in machines)


def conditions(sim: Simulation, zone: str) -> dict[str, JSONObject]:
    (found,) = (d for d in sim.objects(MACHINE_DEPLOYMENTS) if name_of(d) == zone)
    listed = found["status"]["conditions"]  # type: ignore[index]
    return {c["type"]: c for c in listed}


class Order:
    """The zones in which machines of the new class appear, in that order."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self._known: set[str] = set()
        self.zones: list[str] = []
        sim.on_change(MACHINES, self._look)

    def _look(self) -> None:
        for machine in self._sim.objects(MACHINES):
            meta, spec = machine["metadata"], machine["spec"]
            assert isinstance(meta, dict)
            assert isinstance(spec, dict)
            name, labels, klass = meta["name"], meta["labels"], spec["class"]
            assert isinstance(labels, dict)
            assert isinstance(klass, dict)
            if klass["name"] == "large" and name not in self._known:
                self._known.add(str(name))
                self.zones.append(str(labels["name"]))


@pytest.mark.parametrize(
    ("surge", "unavailable", "most", "least"),
    [
        (1, 0, ALL + 1, ALL),
        (0, 1, ALL, ALL - 1),
        (2, 1, ALL + 2, ALL - 1),
        (0, 0, ALL, ALL - 1),
        ("10%", "0%", ALL + 1, ALL),
    ],
)
def test_all_zones_together_take_no_more_than_one_may(
    surge: int | str, unavailable: int | str, most: int, least: int
) -> None:
    async def main() -> None:
        async with Simulation(seed=1) as sim:
            witness = await begin(sim, surge, unavailable)
            for zone in ZONES:
                await roll(sim, zone, "large")
            await sim.until(lambda: is_rolled(sim, "large"), within=1200)
            assert witness.most <= most
            assert witness.fewest_serving >= least
            assert all("SurgePool" not in conditions(sim, zone) for zone in ZONES)

    run_virtual(main)


def test_whoever_waits_says_for_whom_and_zones_come_one_after_the_other() -> None:
    async def main() -> None:
        async with Simulation(seed=2) as sim:
            await begin(sim, 1, 0)
            order = Order(sim)
            for zone in ZONES:
                await roll(sim, zone, "large")
            await sim.pass_time(3)
            said = {zone: conditions(sim, zone).get("SurgePool") for zone in ZONES}
            going_on = [zone for zone, condition in said.items() if condition is None]
            assert len(going_on) == 1
            for zone in set(ZONES) - set(going_on):
                condition = said[zone]
                assert condition is not None
                assert (condition["status"], condition["reason"]) == (
                    "False",
                    "WaitingForSurgePool",
                )
                assert condition["message"] == (
                    'waits for surge pool "workers": its budget is used by '
                    f'deployment "{going_on[0]}"'
                )
            await sim.until(lambda: is_rolled(sim, "large"), within=1200)
            first, second, third = (order.zones[i : i + REPLICAS] for i in (0, 3, 6))
            assert [len(set(zone)) for zone in (first, second, third)] == [1, 1, 1]

    run_virtual(main)


SEEDS = part_of(range(24), one_in=8, in_ci=3)


@pytest.mark.parametrize("seed", SEEDS)
def test_lost_answers_and_a_manager_that_dies_break_no_promise_of_the_pool(seed: int) -> None:
    async def main() -> None:
        async with Simulation(seed=seed) as sim:
            chance = random.Random(f"pool {seed}")
            witness = await begin(sim, 1, 0)
            make_writes_uncertain(sim)
            for zone in chance.sample(ZONES, len(ZONES)):
                await roll(sim, zone, "large")
                await sim.pass_time(chance.choice([0.0, 0.5, 3.0]))
            for _ in range(4):
                await sim.pass_time(chance.uniform(1, 30))
                await trouble(sim, chance)
            sim.faults.clear()
            await sim.until(lambda: is_rolled(sim, "large"), within=1800)
            assert witness.most <= ALL + 1
            assert witness.fewest_serving >= ALL

    run_virtual(main)


def make_writes_uncertain(sim: Simulation) -> None:
    """What the server is asked to do, it may have done or not."""
    writes = "POST|PATCH|DELETE"
    sim.faults.lose_answers(path="machinesets", probability=0.3)
    sim.faults.lose_answers(path="machinedeployments|machines/", probability=0.05)
    sim.faults.answer(409, method="PATCH", path="machinesets", probability=0.1)
    sim.faults.answer(500, method=writes, path="machinesets", probability=0.1)
    sim.faults.delay((0.0, 1.0), back=(0.0, 1.0), path="machine")


async def trouble(sim: Simulation, chance: random.Random) -> None:
    match chance.randrange(3):
        case 0:
            await sim.crash_manager()
            await sim.pass_time(chance.uniform(0, 10))
            sim.start_manager()
        case 1:
            sim.faults.cut_watches(chance.choice(list(WatchEnd)))
        case _:
            sim.server.store.compact()
            sim.server.end_watches()


def test_numbers_that_allow_nothing_are_warned_of_once_and_no_more_once_they_are_mended() -> None:
    async def main() -> None:
        async with Simulation(seed=3) as sim:
            await begin(sim, 0, "1%")
            said = {zone: conditions(sim, zone)["StrategyAdjusted"] for zone in ZONES}
            assert {c["reason"] for c in said.values()} == {"NothingReplaceable"}
            writes: list[int] = []
            for resource in (MACHINE_DEPLOYMENTS, MACHINE_SETS):
                sim.on_change(resource, lambda: writes.append(1))
            await sim.pass_time(3600)
            assert writes == []
            events = (*sim.objects(EVENTS), *sim.objects(CORE_EVENTS))
            told = [e for e in events if e["reason"] == "NothingReplaceable"]
            assert [e["type"] for e in told] == ["Warning"] * len(ZONES)
            assert not any("series" in e for e in told)
            for zone in ZONES:
                block: JSONObject = {"maxSurge": 1, "maxUnavailable": 0}
                await change(sim, zone, {"strategy": {"rollingUpdate": block}})
            await sim.pass_time(5)
            assert all("StrategyAdjusted" not in conditions(sim, zone) for zone in ZONES)

    run_virtual(main)


def test_a_zone_that_is_stuck_holds_up_the_others_visibly_until_it_is_mended() -> None:
    async def main() -> None:
        async with Simulation(seed=4) as sim:
            witness = await begin(sim, 1, 0)
            await roll(sim, "zone-b", "nonexistent")
            await sim.pass_time(5)
            await roll(sim, "zone-a", "large")
            await sim.pass_time(120)
            waiting = conditions(sim, "zone-a")["SurgePool"]
            assert str(waiting["message"]).endswith('used by deployment "zone-b"')
            await roll(sim, "zone-b", "large")
            await roll(sim, "zone-c", "large")
            await sim.until(lambda: is_rolled(sim, "large"), within=2400)
            assert witness.most <= ALL + 1
            assert witness.fewest_serving >= ALL
            assert "SurgePool" not in conditions(sim, "zone-a")

    run_virtual(main)


@pytest.mark.parametrize("lossy", [False, True])
def test_updates_in_place_share_what_may_be_unavailable_too(*, lossy: bool) -> None:
    async def main() -> None:
        async with Simulation(seed=5) as sim, asyncio.TaskGroup() as tasks:
            await begin(sim, 1, 0)
            block: JSONObject = {"maxSurge": 0, "maxUnavailable": 1, "orchestrationType": "Auto"}
            strategy: JSONObject = {"type": "InPlaceUpdate", "rollingUpdate": None}
            strategy["inPlaceUpdate"] = block
            for zone in ZONES:
                await change(sim, zone, {"strategy": strategy})
            await sim.pass_time(5)
            agents = tasks.create_task(Agents(sim, takes=10.0).run())
            fleet = InPlaceFleet(sim, ALL)
            before = fleet.names()
            fleet.keep_within(floor=ALL - 1, ceiling=ALL)
            if lossy:
                sim.faults.lose_answers(path="nodes|machinesets", probability=0.15)
                sim.faults.delay((0.0, 1.0), back=(0.0, 1.0), path="machine|nodes")
            labels: JSONObject = {"version": "2"}
            for zone in ZONES:
                await change(sim, zone, {"template": {"metadata": {"labels": labels}}})
            if lossy:
                await sim.pass_time(120)
                sim.faults.clear()
            await sim.until(lambda: fleet.is_whole("2"), within=3600)
            assert fleet.least_seen == ALL - 1
            assert fleet.names() == before
            agents.cancel()

    run_virtual(main)


async def change(sim: Simulation, zone: str, spec: JSONObject) -> None:
    await sim.client.patch(MACHINE_DEPLOYMENTS, zone, {"spec": spec}, namespace="default")
