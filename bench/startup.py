"""How long a large fleet has nobody who acts: after a cold start, and when the leader dies.

``python -m bench.startup`` serves 10,000 machines with their Nodes, 100,000 pods and 10,000 volumes
by the sandbox's API server, and asks one deployment for one machine more. The first act is the
first write of a manager to anything but leases and events, as the server sees it.

- Cold start: from the start of the process until its mirrors are synced, it leads, and acts.
- Failover: with two replicas, the leader is killed; from that until the other has won the leases,
  which takes as long as they are respected, and from there until it acts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from bench.large_fleet.copies import Size
from bench.large_fleet.managers import ManagerProcess, manager
from bench.large_fleet.pool import NAME
from bench.large_fleet.serving import Served, serving

SHORT: Final = Size(machines=1000, pods=10_000)
_READY_WITHIN: Final = 120.0
_AT_REST_WITHIN: Final = 60.0
_ACTS_WITHIN: Final = 90.0
_LOOK_EVERY: Final = 0.2


@dataclass(frozen=True, slots=True)
class ColdStart:
    """Seconds since the start of the process, CPU seconds until it rests, memory in MiB."""

    synced: float
    leading: float
    first_act: float
    cpu_seconds: float
    resident_mib: float
    peak_mib: float


@dataclass(frozen=True, slots=True)
class Failover:
    """``won``: seconds from the leader's death until the standby holds all leases; ``first_act``:
    from there until it acts. Memory in MiB is the standby's before that, CPU its use while it
    waits, in percent of a core."""

    won: float
    first_act: float
    standby_resident_mib: float
    standby_cpu_percent: float


@dataclass(frozen=True, slots=True)
class Startup:
    """Each as often as was asked for. ``stalls``: of all processes, the loop standing still."""

    objects: int
    cold: Sequence[ColdStart]
    failover: Sequence[Failover]
    stalls: Sequence[str]


async def measure(size: Size, *, repeat: int, lease: float) -> Startup:
    """Measure both ``repeat`` times on one server, whose fleet has one machine more each time.

    ``lease``: seconds for which a dead leader's leases are respected.
    """
    flags = _flags(lease)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stalls: list[str] = []
        async with serving(size, folder) as served:
            cold = [await _cold_start(served, folder, flags, stalls) for _ in range(repeat)]
            failover = [await _failover(served, folder, flags, stalls) for _ in range(repeat)]
            return Startup(served.objects, cold, failover, stalls)


def _flags(lease: float) -> Sequence[str]:
    """Return the flags of a lease of so many seconds, in the proportions of the default."""
    times = {"lease-duration": lease, "renew-deadline": lease * 2 / 3, "retry-period": lease / 7.5}
    return tuple(f"--leader-elect-{name}={seconds:.1f}s" for name, seconds in times.items())


async def _cold_start(
    served: Served, folder: Path, flags: Sequence[str], stalls: list[str]
) -> ColdStart:
    await served.ask("scale", deployment=NAME, by=1)
    await served.ask("acts")
    async with manager(served.kubeconfig, folder, flags=flags) as process:
        synced = await process.ready(within=_READY_WITHIN)
        history = await _first_act(served)
        await process.at_rest(within=_AT_REST_WITHIN)
        used = process.usage()
        stalls += process.stalls()
        await process.stop()
    return ColdStart(
        synced=round(synced, 2),
        leading=round(history.led_at - process.started_at, 2),
        first_act=round(history.acted_at - process.started_at, 2),
        cpu_seconds=round(used.cpu, 2),
        resident_mib=round(used.resident, 1),
        peak_mib=round(used.peak, 1),
    )


async def _failover(
    served: Served, folder: Path, flags: Sequence[str], stalls: list[str]
) -> Failover:
    async with manager(served.kubeconfig, folder, name="leader", flags=flags) as leader:
        await leader.ready(within=_READY_WITHIN)
        async with manager(served.kubeconfig, folder, name="standby", flags=flags) as standby:
            await standby.ready(within=_READY_WITHIN)
            await asyncio.gather(
                leader.at_rest(within=_AT_REST_WITHIN), standby.at_rest(within=_AT_REST_WITHIN)
            )
            waiting, resident = await _waiting(standby)
            await served.ask("acts")
            killed = time.monotonic()
            await leader.kill()
            await served.ask("scale", deployment=NAME, by=1)
            history = await _first_act(served)
            stalls += [*leader.stalls(), *standby.stalls()]
            await standby.stop()
    return Failover(
        won=round(history.led_at - killed, 2),
        first_act=round(history.acted_at - history.led_at, 3),
        standby_resident_mib=round(resident, 1),
        standby_cpu_percent=round(waiting, 2),
    )


async def _waiting(standby: ManagerProcess, seconds: float = 5.0) -> tuple[float, float]:
    before = standby.usage()
    await asyncio.sleep(seconds)
    after = standby.usage()
    return 100 * (after.cpu - before.cpu) / (after.at - before.at), after.resident


@dataclass(frozen=True, slots=True)
class _History:
    led_at: float
    acted_at: float


async def _first_act(served: Served) -> _History:
    """Wait for the first act of whoever leads. Raises RuntimeError if there is none in time."""
    led: dict[str, float] = {}
    deadline = time.monotonic() + _ACTS_WITHIN
    while time.monotonic() < deadline:
        told: dict[str, list[Any]] = await served.ask("acts")
        led |= {lease: at for at, lease, holder in told["holders"] if holder}
        if told["acts"] and led:
            return _History(led_at=max(led.values()), acted_at=told["acts"][0][0])
        await asyncio.sleep(_LOOK_EVERY)
    raise RuntimeError(f"nobody acted within {_ACTS_WITHIN:.0f} s")


def show(found: Startup, console: Console) -> None:
    """Print the times for people."""
    console.print(f"{found.objects:,} objects served")
    for name, rows in (("cold start", found.cold), ("failover", found.failover)):
        table = Table(name)
        for header in ("least", "median", "most"):
            table.add_column(header, justify="right")
        for field in fields(rows[0]):
            values = [getattr(row, field.name) for row in rows]
            numbers = (min(values), median(values), max(values))
            table.add_row(field.name.replace("_", " "), *(f"{n:,.2f}" for n in numbers))
        console.print(table)
    for stall in found.stalls:
        console.print(stall, highlight=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--machines", type=int, default=0, help="10,000; short: 1,000")
    parser.add_argument("--pods", type=int, default=0, help="100,000; short: 10,000")
    parser.add_argument("--repeat", type=int, default=0, help="3; short: 1")
    parser.add_argument("--lease", type=float, default=0.0, help="its seconds: 15; short: 6")
    parser.add_argument("--short", action="store_true", help="fewer objects, and each once")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    usual = SHORT if given.short else Size()
    size = Size.of(given.machines or usual.machines, given.pods or usual.pods)
    repeat = given.repeat or (1 if given.short else 3)
    lease = given.lease or (6.0 if given.short else 15.0)
    found = asyncio.run(measure(size, repeat=repeat, lease=lease))
    if given.json:
        parameters = {**asdict(size), "repeat": repeat, "lease": lease}
        print(json.dumps({"bench": "startup", "parameters": parameters, "results": asdict(found)}))
    else:
        show(found, Console(width=120))


if __name__ == "__main__":
    main()
