"""Shards through random histories: labels, sizes, kills and lags; never two act for one object."""

from __future__ import annotations

import random
from typing import final

import pytest

from mcm.api.machine import MACHINES
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.simulation.virtualtime import run_virtual
from tests.simulation.several.managers import Managers, Process
from tests.simulation.several.shards import (
    fleet,
    hold_to_the_law,
    label,
    marks,
    scale,
    start,
)
from tests.thoroughness import part_of

SHARDS = ("a", "b", "c")
POOLS = ("one", "two", "three")
CALM = 400.0


@pytest.mark.parametrize("seed", part_of((1, 2, 0, 3), one_in=4, in_ci=2))
def test_whatever_happens_each_object_is_looked_after_by_one(seed: int) -> None:
    async def main() -> None:
        async with Managers.open(seed=seed) as managers:
            hold_to_the_law(managers)
            await _History(managers, random.Random(seed)).run(steps=8)

    run_virtual(main)


@final
class _History:
    def __init__(self, managers: Managers, chance: random.Random) -> None:
        self._managers, self._sim, self._random = managers, managers.sim, chance
        self._running = {name: start(managers, name) for name in SHARDS}
        self._sizes = dict.fromkeys(POOLS, 2)
        self._homes = {pool: chance.choice(SHARDS) for pool in POOLS}
        self._lives = 0

    async def run(self, *, steps: int) -> None:
        await self._sim.apply(fleet(self._homes))
        for _ in range(steps):
            await self._random.choice((self._relabel, self._relabel, self._resize, self._kill))()
            self._disturb(self._random.choice(list(self._running.values())))
            await self._sim.pass_time(self._random.choice((0.0, 0.5, 3.0, 12.0, 40.0)))
        for process in self._running.values():
            process.faults.clear()
            process.faults.cut_watches()
        total = sum(self._sizes.values())
        await self._sim.until(lambda: self._is_settled(total), within=CALM, what="all is in place")
        assert self._managers.offences == [] and self._managers.overlaps() == []
        assert len(self._sim.objects(VIRTUAL_MACHINES)) == total

    def _is_settled(self, total: int) -> bool:
        placed = all(marks(self._sim, pool) == {home} for pool, home in self._homes.items())
        return placed and len(self._sim.objects(MACHINES)) == total == self._sim.running()

    async def _relabel(self) -> None:
        pool = self._random.choice(POOLS)
        self._homes[pool] = self._random.choice(SHARDS)
        await label(self._sim, pool, self._homes[pool])

    async def _resize(self) -> None:
        pool = self._random.choice(POOLS)
        self._sizes[pool] = self._random.randint(0, 4)
        await scale(self._sim, pool, self._sizes[pool])

    async def _kill(self) -> None:
        name = self._random.choice(SHARDS)
        killed = self._running[name]
        await (killed.kill() if self._random.random() < 0.7 else killed.stop())
        self._lives += 1
        self._running[name] = start(self._managers, name, process=f"{name}-{self._lives}")

    def _disturb(self, process: Process) -> None:
        """Let some of its requests be slow, or their answers be lost."""
        process.faults.clear()
        faults, path = process.faults, r"/machine(s|sets|deployments)"
        match self._random.randrange(5):
            case 0:
                faults.delay_events(self._random.choice((2.0, 10.0, 30.0)), path=path)
                faults.cut_watches()
            case 1:
                faults.lose_answers(method="PATCH|POST", path=path, probability=0.3)
            case 2:
                faults.delay((0.0, 3.0), back=(0.0, 3.0), method="PATCH|POST|DELETE")
            case 3:
                faults.cut_watches()
            case _:
                pass
