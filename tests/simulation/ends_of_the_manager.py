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

    Nothing of the process gets through any more, and another one begins with what it finds. Leases
    and events are not counted. ``writes`` were seen so far.
    """

    def __init__(self, sim: Simulation, number: int, *, arrived: bool) -> None:
        self.came = False
        self.writes = 0
        self._sim = sim
        self._number = number
        self._moment = asyncio.Event()
        sim.faults.add(Broken.HANGS, where=lambda _: self.came)
        sim.faults.add(Broken.LOST if arrived else Broken.RESET, where=self._is_last)

    def _is_last(self, request: Request) -> bool:
        if request.method not in WRITES or "/leases" in request.path or "/events" in request.path:
            return False
        self.writes += 1
        if self.writes == self._number:
            self.came = True
            self._moment.set()
        return self.came

    async def then_restart(self) -> None:
        await self._moment.wait()
        await self._sim.crash_manager()
        self._sim.faults.clear()
        self._sim.start_manager()


@asynccontextmanager
async def ending(sim: Simulation, number: int, *, arrived: bool) -> AsyncIterator[End]:
    """While the context lasts, and for a little longer, the manager may end."""
    end = End(sim, number, arrived=arrived)
    restart = asyncio.create_task(end.then_restart())
    try:
        yield end
        await sim.pass_time(5)
    finally:
        if end.came:
            await restart
        restart.cancel()
        sim.faults.clear()
