"""A cloud that answers each machine code at random for an hour: when it heals, so does the fleet.

It fails before it did what it was asked for, or after. It lies, too: ``NotFound`` of a VM that
exists, ``OK`` as an error, exceptions that no contract knows.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import TypeVar, final

import pytest

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_CLASSES, MACHINE_DEPLOYMENTS, MACHINES
from mcm.api.meta import JSONObject
from mcm.driver import (
    Code,
    CreateMachineRequest,
    CreateMachineResponse,
    DeleteMachineRequest,
    DeleteMachineResponse,
    Driver,
    DriverError,
    GetMachineStatusRequest,
    GetMachineStatusResponse,
    GetVolumeIDsRequest,
    GetVolumeIDsResponse,
    InitializeMachineRequest,
    InitializeMachineResponse,
    ListMachinesRequest,
    ListMachinesResponse,
    ProviderContext,
    UnsupportedDriver,
    UpdateMachineRequest,
    UpdateMachineResponse,
)
from mcm.providers import simulated
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual
from tests.thoroughness import part_of

SEEDS = part_of(range(4), one_in=4, in_ci=2)
HOUR = 3600.0
R = TypeVar("R")


@final
class Mood:
    """How often a call fails, and what was answered so far, by verb."""

    def __init__(self, chance: random.Random) -> None:
        self.failing = 0.5
        self.answered: defaultdict[str, set[Code | None]] = defaultdict(set)
        self._deck: list[Code | None] = []
        self._chance = chance

    async def answer(self, verb: str, act: Callable[[], Awaitable[R]]) -> R:
        if self._chance.random() >= self.failing:
            return await act()
        if self._chance.random() < 0.5:
            await act()
        code = self._draw()
        self.answered[verb].add(code)
        if code is None:
            raise ValueError("no contract knows this")
        raise DriverError(code, f"by chance in {verb}")

    def _draw(self) -> Code | None:
        """Take a code of which none comes again before all have come."""
        if not self._deck:
            self._deck = [*Code, None]
            self._chance.shuffle(self._deck)
        return self._deck.pop()


@final
class MoodyDriver(UnsupportedDriver):
    """The simulated cloud's driver, in whatever mood it is."""

    def __init__(self, inner: Driver, mood: Mood) -> None:
        self._inner = inner
        self._mood = mood

    async def create_machine(self, request: CreateMachineRequest) -> CreateMachineResponse:
        return await self._mood.answer("create", lambda: self._inner.create_machine(request))

    async def initialize_machine(
        self, request: InitializeMachineRequest
    ) -> InitializeMachineResponse:
        return await self._mood.answer(
            "initialize", lambda: self._inner.initialize_machine(request)
        )

    async def delete_machine(self, request: DeleteMachineRequest) -> DeleteMachineResponse:
        return await self._mood.answer("delete", lambda: self._inner.delete_machine(request))

    async def get_machine_status(
        self, request: GetMachineStatusRequest
    ) -> GetMachineStatusResponse:
        return await self._mood.answer("status", lambda: self._inner.get_machine_status(request))

    async def update_machine(self, request: UpdateMachineRequest) -> UpdateMachineResponse:
        return await self._mood.answer("update", lambda: self._inner.update_machine(request))

    async def list_machines(self, request: ListMachinesRequest) -> ListMachinesResponse:
        return await self._mood.answer("list", lambda: self._inner.list_machines(request))

    async def get_volume_ids(self, request: GetVolumeIDsRequest) -> GetVolumeIDsResponse:
        return await self._mood.answer("volumes", lambda: self._inner.get_volume_ids(request))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_fleet_outlives_an_hour_of_random_answers(seed: int) -> None:
    async def main() -> None:
        chance = random.Random(f"codes {seed}")
        mood = Mood(chance)

        def provider(context: ProviderContext) -> Driver:
            return MoodyDriver(simulated.provider(context), mood)

        async with Simulation(seed=seed, provider=provider) as sim:
            made: defaultdict[str, set[str]] = defaultdict(set)

            def look() -> None:
                for vm in sim.objects(VIRTUAL_MACHINES):
                    made[name_of(vm)].add(str(vm["metadata"]["uid"]))  # type: ignore[index]

            sim.on_change(VIRTUAL_MACHINES, look)
            await sim.apply(samples.load())
            end = sim.clock.monotonic() + HOUR
            while sim.clock.monotonic() < end:
                await scale(sim, chance.randint(1, 8))
                await tag(sim, str(chance.randrange(100)))
                await sim.pass_time(chance.uniform(100, 500))
            mood.failing = 0.0
            await scale(sim, 4)
            await tag(sim, "the last")
            await sim.until(lambda: as_declared(sim, 4), within=2 * HOUR, what="4 that run")
            verbs = {"create", "initialize", "update", "delete", "status", "list"}
            assert set(mood.answered) == verbs
            assert set().union(*mood.answered.values()) == {*Code, None}
            assert all(len(uids) == 1 for uids in made.values()), made

    run_virtual(main)


async def scale(sim: Simulation, replicas: int) -> None:
    patch: JSONObject = {"spec": {"replicas": replicas}}
    await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", patch, namespace="default")


async def tag(sim: Simulation, text: str) -> None:
    """Change what all VMs of the class are to bear."""
    patch: JSONObject = {"providerSpec": {"tags": {"vm": {"of": text}}}}
    await sim.client.patch(MACHINE_CLASSES, "small", patch, namespace="default")


def as_declared(sim: Simulation, wanted: int) -> bool:
    """Tell whether so many run, each with its VM and Node, and there is no other VM.

    A VM whose machine went by a lie may have joined after that. It is collected; its Node object
    would be deleted by the cluster's cloud controller.
    """
    machines = {name_of(machine) for machine in sim.objects(MACHINES)}
    return (
        sim.running() == wanted == len(machines)
        and {name_of(vm) for vm in sim.objects(VIRTUAL_MACHINES)} == machines
        and {name_of(node) for node in sim.objects(NODES)} >= machines
    )
