"""mcm's mirror over a socket at size: two resources at once, and memory across relists.

``python -m bench.footprint mixed|relists URL --machines N --nodes M --relists K`` prints one JSON
object. Resident memory is this process's, in bytes (Linux: from /proc).
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
from mcm.api.machine import MACHINES
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
    """Each relist brings every object in another state. RSS after each list, the first included."""

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
    async with _mirror(url, ReflectorOptions(backoff_base=0.0)) as factory:
        informer = factory.informer(MACHINES)
        running = asyncio.create_task(factory.run())
        sizes: list[int] = []
        async with asyncio.timeout(_PATIENCE):
            for done in range(times + 1):
                await _listed(informer.stats.watches.__index__, informer, done)
                sizes.append(resident())
        await _stop(running)
        growth = 100 * (sizes[-1] / sizes[0] - 1)
        return Relists(
            objects=len(informer.store),
            relists=informer.stats.relists,
            rss_bytes=tuple(sizes),
            peak_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            growth_percent=round(growth, 1),
        )
