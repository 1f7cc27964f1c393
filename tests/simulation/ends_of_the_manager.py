"""The end of the manager at one of its writes: the write lost on its way, or only its answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import final

from mcm.client.transport import Request
from mcm.simulation.faults import Broken
from mcm.simulation.harness import Simulation

WRITES = ("POST", "PUT", "PATCH", "DELETE")


@final
class End:
    """The end of the manager at its write number ``number``; ``arrived``: that one got through.

    Nothing of the process gets through any more, and another one begins with what it finds. That
    one ends in the same way, until it has happened ``times``. Leases and events are not counted.
    ``is_now``: a process has ended, and the next one has not begun.
    """

    def __init__(self, sim: Simulation, number: int, *, arrived: bool, times: int = 1) -> None:
        self.came = False
        self.writes = 0
        self._sim = sim
        self._number = number
        self._arrived = arrived
        self._times = times
        self.is_now = False
        self._moment = asyncio.Event()
        self._lie_in_wait()

    def _lie_in_wait(self) -> None:
        self.writes = 0
        self._moment.clear()
        faults = self._sim.faults
        faults.add(Broken.HANGS, where=lambda _: self.is_now)
        faults.add(Broken.LOST if self._arrived else Broken.RESET, where=self._is_last)

    def _is_last(self, request: Request) -> bool:
        if request.method not in WRITES or "/leases" in request.path or "/events" in request.path:
            return False
        self.writes += 1
        if self.writes == self._number:
            self.came = self.is_now = True
            self._moment.set()
        return self.is_now

    async def then_restart(self) -> None:
        for left in reversed(range(self._times)):
            await self._moment.wait()
            await self._sim.crash_manager()
            self._sim.faults.clear()
            self.is_now = False
            if left:
                self._lie_in_wait()
            self._sim.start_manager()


@asynccontextmanager
async def ending(
    sim: Simulation, number: int, *, arrived: bool, times: int = 1
) -> AsyncIterator[End]:
    """While the context lasts, and for a little longer, the manager may end."""
    end = End(sim, number, arrived=arrived, times=times)
    restart = asyncio.create_task(end.then_restart())
    try:
        yield end
        await sim.pass_time(5)
    finally:
        while end.is_now:
            await sim.clock.sleep(0.1)
        restart.cancel()
        sim.faults.clear()
