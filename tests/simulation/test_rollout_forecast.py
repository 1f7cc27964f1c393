"""What is forecast is what the controllers do: the same sizes of the same sets, in the same order,
and the same machines deleted."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from mcm.api.codec import read_object
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject, Resource, T
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.rollout.forecast import Forecast, Outcome, Step
from mcm.rollout.supposition import Namespace, Supposition, supposed
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual
from tests.simulation.in_place import Agents
from tests.thoroughness import part_of

Sizes = dict[str, int]


def rolling(surge: int | str, unavailable: int | str) -> JSONObject:
    limits = {"maxSurge": surge, "maxUnavailable": unavailable}
    return {"type": "RollingUpdate", "rollingUpdate": limits}


RECREATE: JSONObject = {"type": "Recreate", "rollingUpdate": None}
NEW_CLASS: JSONObject = {"template": {"spec": {"class": {"name": "large"}}}}


class Witness:
    """Notes each new state of the sets' sizes, and each machine whose deletion begins."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self.sizes = [sizes_of(sim)]
        self._going: list[str] = []
        self._note_deletions()
        self._before = len(self._going)
        sim.on_change(MACHINE_SETS, self._note_sizes)
        sim.on_change(MACHINES, self._note_deletions)

    @property
    def deleted(self) -> list[str]:
        return self._going[self._before :]

    def _note_sizes(self) -> None:
        if (now := sizes_of(self._sim)) != self.sizes[-1]:
            self.sizes.append(now)

    def _note_deletions(self) -> None:
        for machine in self._sim.objects(MACHINES):
            metadata = machine["metadata"]
            assert isinstance(metadata, dict)
            if "deletionTimestamp" in metadata and name_of(machine) not in self._going:
                self._going.append(name_of(machine))


def sizes_of(sim: Simulation) -> Sizes:
    return {s.metadata.name: s.spec.replicas for s in read(sim, MACHINE_SETS)}


def read(sim: Simulation, resource: Resource[T]) -> list[T]:
    return [read_object(resource, orjson.dumps(o)) for o in sim.objects(resource)]


def forecast_sizes(begin: Sizes, steps: list[Step]) -> list[Sizes]:
    states = [begin]
    for step in steps:
        for resize in step.sizes:
            states.append({**states[-1], resize.set: resize.after})
    return states


def seen(sim: Simulation, change: JSONObject) -> DeploymentSnapshot:
    (raw,) = sim.objects(MACHINE_DEPLOYMENTS)
    found = Namespace(raw, read(sim, MACHINE_SETS), read(sim, MACHINES))
    manifest: JSONObject = {"spec": change}
    return supposed(found, Supposition(manifest=manifest), sim.clock.now())


async def compare(sim: Simulation, change: JSONObject) -> None:
    """Forecast a change, make it, and hold that the one is the other."""
    forecast = Forecast(seen(sim, change), sim.clock.now())
    begin = sizes_of(sim)
    steps = list(forecast.steps())
    assert forecast.ending().outcome is Outcome.COMPLETE
    witness = Witness(sim)
    await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", {"spec": change}, namespace="default")
    end = {s.metadata.name: s.spec.replicas for s in forecast.snapshot.sets}
    replicas = forecast.snapshot.deployment.spec.replicas
    await sim.until(
        lambda: sizes_of(sim) == end and sim.running() == len(sim.objects(MACHINES)) == replicas,
        within=7200,
    )
    await sim.pass_time(60)
    assert witness.sizes == forecast_sizes(begin, steps)
    named = [name for step in steps for deletion in step.deletes for name in deletion.names]
    assert sorted(witness.deleted) == sorted(named)


async def begin(sim: Simulation, replicas: int, strategy: JSONObject, **more: object) -> None:
    await sim.apply(samples.load())
    spec = {"replicas": replicas, "strategy": strategy, **more}
    await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", {"spec": spec}, namespace="default")
    await sim.until(lambda: sim.running() == replicas, within=600)
    await sim.pass_time(60)


ROLLOUTS = [
    (3, rolling(1, 0)),
    (4, rolling(4, 0)),
    (3, rolling(0, 1)),
    (4, rolling(0, 4)),
    (3, RECREATE),
    (5, rolling("20%", "0%")),
    (0, rolling(1, 0)),
]


@pytest.mark.parametrize(("replicas", "strategy"), part_of(ROLLOUTS, one_in=2))
def test_a_rollout_takes_the_forecast_steps(replicas: int, strategy: JSONObject) -> None:
    async def main() -> None:
        async with Simulation(seed=3) as sim:
            await begin(sim, replicas, strategy)
            await compare(sim, NEW_CLASS)

    run_virtual(main)


@pytest.mark.parametrize("change", [{"replicas": 6}, {"replicas": 1}, {"replicas": 0}])
def test_a_change_of_the_size_takes_the_forecast_steps(change: JSONObject) -> None:
    async def main() -> None:
        async with Simulation(seed=3) as sim:
            await begin(sim, 3, rolling(1, 0))
            await compare(sim, change)

    run_virtual(main)


def test_machines_that_must_serve_for_a_while_are_waited_for() -> None:
    async def main() -> None:
        async with Simulation(seed=3) as sim:
            await begin(sim, 2, rolling(1, 0), minReadySeconds=90)
            await sim.pass_time(90)
            await compare(sim, NEW_CLASS)

    run_virtual(main)


def test_a_rollback_in_the_middle_of_a_rollout_is_forecast_from_there() -> None:
    async def main() -> None:
        async with Simulation(seed=3) as sim:
            await begin(sim, 4, rolling(1, 0))
            spec = {"spec": NEW_CLASS}
            await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", spec, namespace="default")
            await sim.until(lambda: sorted(sizes_of(sim).values()) == [2, 2], within=600)
            await compare(sim, {"template": {"spec": {"class": {"name": "small"}}}})

    run_virtual(main)


IN_PLACE = [(1, 0), (0, 1)]


@pytest.mark.parametrize(("surge", "unavailable"), part_of(IN_PLACE, one_in=2))
def test_an_update_in_place_takes_the_forecast_steps(surge: int, unavailable: int) -> None:
    async def main() -> None:
        async with Simulation(seed=3) as sim:
            limits = {
                "maxSurge": surge,
                "maxUnavailable": unavailable,
                "orchestrationType": "Auto",
            }
            strategy: JSONObject = {
                "type": "InPlaceUpdate",
                "rollingUpdate": None,
                "inPlaceUpdate": limits,
            }
            working = asyncio.create_task(Agents(sim).run())
            try:
                await begin(sim, 3, strategy)
                await compare(sim, NEW_CLASS)
            finally:
                working.cancel()
                await asyncio.wait({working})

    run_virtual(main)
