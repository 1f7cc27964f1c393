"""One contestant over a socket, in a process of its own.

``python -m bench.race NAME KIND URL --count N --rounds R`` prints one JSON object.
``--weigh`` counts bytes instead of seconds, as counting slows everything down.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import tracemalloc
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import TypeVar

from bench.contestants import CONTESTANTS
from bench.mirror import Race
from bench.recorded_objects import KINDS, Kind
from mcm.clock import SystemClock
from mcm.garbage_collector import collect_rarely
from mcm.workqueue.queue import WorkQueue

R = TypeVar("R")

_PATIENCE = 600.0  # seconds: some contestants retry in silence for ever


@dataclass(frozen=True, slots=True)
class Times:
    """``objects`` and ``queued`` are counted in the mirror and in the queue at the end."""

    objects: int
    events: int
    queued: int
    list_cpu_seconds: float
    list_wall_seconds: float
    events_per_cpu_second: int


@dataclass(frozen=True, slots=True)
class Weight:
    objects: int
    bytes_per_object: int


def run(main: Coroutine[object, object, R]) -> R:
    """Run as the manager does, whoever races: on uvloop where there is one, collecting rarely."""
    collect_rarely()
    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)


async def timed(name: str, kind: Kind, url: str, *, count: int, rounds: int) -> Times:
    async with _finished(name, kind, url, count, rounds) as race:
        return Times(
            objects=race.size(),
            events=race.events,
            queued=len(race.queue),
            list_cpu_seconds=round(race.list_seconds, 3),
            list_wall_seconds=round(race.list_wall_seconds, 3),
            events_per_cpu_second=round(race.events / race.watch_seconds),
        )


async def weighed(name: str, kind: Kind, url: str, *, count: int, rounds: int) -> Weight:
    """Weigh the mirror after its events: by then nothing of the list is left over."""
    CONTESTANTS[name].prepare()
    tracemalloc.start()
    before = _live_bytes()
    async with _finished(name, kind, url, count, rounds) as race:
        race.queue = _queue()  # the keys are not the mirror's
        weight = _live_bytes() - before
        tracemalloc.stop()
        return Weight(objects=race.size(), bytes_per_object=weight // race.size())


@asynccontextmanager
async def _finished(
    name: str, kind: Kind, url: str, count: int, rounds: int
) -> AsyncIterator[Race]:
    """Yield the race when it is over, while the mirror still stands."""
    contestant = CONTESTANTS[name]
    contestant.prepare()
    race = Race(queue=_queue(), count=count, last=kind.last_version(count, rounds))
    running = asyncio.ensure_future(contestant.run(url, kind, race))
    over = asyncio.create_task(race.finished.wait())
    try:
        async with asyncio.timeout(_PATIENCE):
            await asyncio.wait((running, over), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            await running
            raise RuntimeError(f"{name} ended before the last event")
        yield race
    finally:
        for task in (running, over):
            task.cancel()
        await asyncio.gather(running, over, return_exceptions=True)


def _queue() -> WorkQueue[str]:
    return WorkQueue("bench", clock=SystemClock())


def _live_bytes() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", choices=CONTESTANTS)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("url")
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--weigh", action="store_true")
    given = parser.parse_args()
    arguments = (given.name, KINDS[given.kind], given.url)
    result: Times | Weight
    if given.weigh:
        result = run(weighed(*arguments, count=given.count, rounds=given.rounds))
    else:
        result = run(timed(*arguments, count=given.count, rounds=given.rounds))
    print(json.dumps(asdict(result)))


if __name__ == "__main__":
    main()
