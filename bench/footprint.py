"""mcm's mirror over a socket at size: two resources at once, memory across relists, and at the peak
of a list.

``python -m bench.footprint mixed|relists|peaks URL`` prints one JSON object. Resident
memory is this process's, in bytes (Linux: from /proc).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import re
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from bench.race import run
from bench.recorded_objects import KINDS, Kind
from mcm.api.core import NODES
from mcm.api.machine import MACHINES, Machine
from mcm.api.meta import KubeObject
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


@dataclass(frozen=True, slots=True)
class Peaks:
    """The first list and a relist that brings every object in another state: resident memory at
    its peak and after it, both per process, and the longest that the loop was kept from others, in
    CPU seconds."""

    objects: int
    first_peak_rss_bytes: int
    first_rss_bytes: int
    first_peak_ratio: float
    relist_peak_rss_bytes: int
    relist_rss_bytes: int
    relist_peak_ratio: float
    longest_block_seconds: float


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
            peak_rss_bytes=_highest_resident(),
            growth_percent=_growth(sizes[0], sizes[-1]),
        )


async def peaks(url: str, kind: Kind) -> Peaks:
    """Follow a server whose first watch ends with 410 Gone."""
    async with _mirror(url, ReflectorOptions(backoff_base=0.001)) as factory:
        informer = factory.informer(kind.resource)
        for label in kind.indexed:
            informer.store.add_index(label, partial(_values, label))
        _forget_peak()
        turns = Turns()
        running = asyncio.create_task(factory.run())
        seen: list[tuple[int, int]] = []
        async with asyncio.timeout(_PATIENCE):
            for lists in (1, 2):
                # A turn of the loop at a time: nothing of the next list is here when we look.
                while informer.stats.listed.count < lists or informer.telling:
                    await turns.next()
                highest = _highest_resident()
                gc.collect()
                seen.append((highest, resident()))
                _forget_peak()
                turns.begin()
        await _stop(running)
        (first_peak, first), (relist_peak, relist) = seen
        return Peaks(
            objects=len(informer.store),
            first_peak_rss_bytes=first_peak,
            first_rss_bytes=first,
            first_peak_ratio=_ratio(first_peak, first),
            relist_peak_rss_bytes=relist_peak,
            relist_rss_bytes=relist,
            relist_peak_ratio=_ratio(relist_peak, relist),
            longest_block_seconds=round(turns.longest, 4),
        )


class Turns:
    """Takes turns with all others on the loop, and notes the longest of theirs, in CPU seconds."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.begin()

    def begin(self) -> None:
        """Leave out what was done since the last turn."""
        self._left = time.thread_time()

    async def next(self) -> None:
        await asyncio.sleep(0)
        now = time.thread_time()
        self.longest = max(self.longest, now - self._left)
        self._left = now


def _values(label: str, obj: KubeObject) -> Iterable[str]:
    value = obj.metadata.labels.get(label)
    return (value,) if value else ()


def _ratio(peak: int, level: int) -> float:
    return round(peak / level, 2) if level else 0.0


def _growth(before: int, after: int) -> float:
    return round(100 * (after / before - 1), 1) if before else 0.0


async def _settled(informer: Informer[Machine], *, lists: int) -> None:
    """Wait until that many lists are in, and everybody knows."""
    while informer.stats.listed.count < lists or informer.telling:  # noqa: ASYNC110 - no event
        await asyncio.sleep(_POLL)
    gc.collect()


def resident() -> int:
    """Return this process's resident bytes (0 where there is no /proc)."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


def _highest_resident() -> int:
    """Return the most that was resident since :func:`_forget_peak`."""
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return int(found[1]) * 1024 if found else 0


def _forget_peak() -> None:
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


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
    parser.add_argument("what", choices=("mixed", "relists", "peaks"))
    parser.add_argument("url")
    parser.add_argument("--relists", type=int, default=10)
    parser.add_argument("--kind", choices=KINDS, default="pods", help="of the peaks")
    given = parser.parse_args()
    result: Synced | Relists | Peaks
    if given.what == "mixed":
        result = run(mixed(given.url))
    elif given.what == "peaks":
        result = run(peaks(given.url, KINDS[given.kind]))
    else:
        result = run(relisted(given.url, given.relists))
    print(json.dumps(asdict(result)))


if __name__ == "__main__":
    main()
