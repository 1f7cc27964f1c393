"""mcm's mirror over a socket at size: two resources at once, and memory across relists.

``python -m bench.footprint mixed|relists URL`` prints one JSON object. Resident
memory is this process's, in bytes (Linux: from /proc).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import resource
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.race import run
from mcm.api.core import NODES
from mcm.api.machine import MACHINES, Machine
from mcm.client.client import Client
from mcm.client.connection import ConnectionSpec
from mcm.client.http import HTTPTransport
from mcm.clock import SystemClock
from mcm.informers import Informer, InformerFactory, ReflectorOptions

_PATIENCE = 600.0
_POLL = 0.02


@dataclass(frozen=True, slots=True)
class Synced:
    """From nothing to two complete stores. ``rss_bytes`` is what that added, per process."""

    objects: int
    cpu_seconds: float
    wall_seconds: float
    rss_bytes: int


@dataclass(frozen=True, slots=True)
class Relists:
    """Each relist brings every object in another state, so that two generations live for a moment.

    RSS after each list, the first included; ``growth_percent`` is from the first to the last.
    """

    objects: int
    relists: int
    rss_bytes: tuple[int, ...]
    peak_rss_bytes: int
    growth_percent: float


async def mixed(url: str) -> Synced:
    async with _mirror(url, ReflectorOptions()) as factory:
        stores = (factory.store(MACHINES), factory.store(NODES))
        before = resident()
        cpu, wall = time.process_time(), time.perf_counter()
        running = asyncio.create_task(factory.run())
        async with asyncio.timeout(_PATIENCE):
            await factory.wait_synced()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        added = resident() - before
        await _stop(running)
        objects = sum(len(store) for store in stores)
        return Synced(objects, round(cpu, 3), round(wall, 3), added)


async def relisted(url: str, times: int) -> Relists:
    """Follow a server whose first ``times`` watches end with 410 Gone."""
    # Nobody else is there to be spared by a back-off.
    async with _mirror(url, ReflectorOptions(backoff_base=0.001)) as factory:
        informer = factory.informer(MACHINES)
        running = asyncio.create_task(factory.run())
        sizes: list[int] = []
        async with asyncio.timeout(_PATIENCE):
            for done in range(times + 1):
                await _settled(informer, lists=done + 1)
                sizes.append(resident())
        await _stop(running)
        return Relists(
            objects=len(informer.store),
            relists=informer.stats.relists,
            rss_bytes=tuple(sizes),
            peak_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            growth_percent=_growth(sizes[0], sizes[-1]),
        )


def _growth(before: int, after: int) -> float:
    return round(100 * (after / before - 1), 1) if before else 0.0


async def _settled(informer: Informer[Machine], *, lists: int) -> None:
    """Wait until that many lists are in and the watch after the last of them is open."""
    while informer.stats.watches < lists:  # noqa: ASYNC110 - nothing announces it
        await asyncio.sleep(_POLL)
    gc.collect()


def resident() -> int:
    """Return this process's resident bytes (0 where there is no /proc)."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


@asynccontextmanager
async def _mirror(url: str, options: ReflectorOptions) -> AsyncIterator[InformerFactory]:
    clock = SystemClock()
    client = Client(HTTPTransport(ConnectionSpec(url), clock=clock), clock=clock)
    factory = InformerFactory(client, clock=clock, options=options, randomness=random.Random(0))
    factory.store(MACHINES).add_index(
        "owner", lambda o: [ref.uid for ref in o.metadata.owner_references if ref.controller]
    )
    try:
        yield factory
    finally:
        await client.aclose()


async def _stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("mixed", "relists"))
    parser.add_argument("url")
    parser.add_argument("--relists", type=int, default=10)
    given = parser.parse_args()
    result: Synced | Relists
    if given.what == "mixed":
        result = run(mixed(given.url))
    else:
        result = run(relisted(given.url, given.relists))
    print(json.dumps(asdict(result)))


if __name__ == "__main__":
    main()
