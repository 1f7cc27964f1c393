"""An informer on virtual time, watched by a handler that keeps a mirror of its own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from mcm.api.machine import Machine
from mcm.clock import LoopClock
from mcm.informers import Change, Informer, ReflectorOptions
from mcm.informers.versions import newer
from mcm.simulation.virtualtime import run_virtual
from tests.unit.informers.apiserver import NAMESPACE, WHOLE_MACHINES, ApiServer

R = TypeVar("R")

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def unversioned(machine: Machine) -> Machine:
    """The machine as handlers care for it: a new version alone is not told."""
    meta = msgspec.structs.replace(machine.metadata, resource_version="")
    return msgspec.structs.replace(machine, metadata=meta)


def version_of(machine: Machine) -> str:
    return machine.metadata.resource_version


@dataclass
class Replay:
    """Plays the changes back, and objects to any that does not continue what was told before."""

    told: dict[str, Machine] = field(default_factory=dict)
    changes: list[Change[Machine]] = field(default_factory=list)
    may_rewind: bool = False

    def __call__(self, change: Change[Machine]) -> None:
        self.changes.append(change)
        key = change.object.metadata.key
        before = self.told.get(key)
        assert (change.old is None) == (before is None)
        if change.old is not None and before is not None:
            assert unversioned(change.old) == unversioned(before)
            if change.new is not None and not self.may_rewind:
                assert not newer(version_of(before), version_of(change.new))
        if change.new is None:
            del self.told[key]
        else:
            self.told[key] = change.new

    def equals(self, machines: dict[str, Machine]) -> bool:
        return {k: unversioned(m) for k, m in self.told.items()} == {
            k: unversioned(m) for k, m in machines.items()
        }


@dataclass
class Mirror:
    server: ApiServer
    informer: Informer[Machine]
    replay: Replay
    clock: LoopClock
    task: asyncio.Task[None]

    async def sleep(self, seconds: float) -> None:
        await self.clock.sleep(seconds)

    def agrees(self) -> bool:
        """Whether store, handlers and server hold the same."""
        store = {machine.metadata.key: machine for machine in self.informer.store.list()}
        return store == self.server.machines() and self.replay.equals(self.server.machines())


@asynccontextmanager
async def mirroring(
    server: ApiServer,
    *,
    options: ReflectorOptions | None = None,
    seed: int = 0,
    on_current: Callable[[Mirror], None] | None = None,
    on_stale: Callable[[Mirror], None] | None = None,
) -> AsyncIterator[Mirror]:
    clock = LoopClock(EPOCH)
    informer = Informer(
        server,
        WHOLE_MACHINES,
        clock=clock,
        namespace=NAMESPACE,
        options=options,
        randomness=random.Random(seed),
    )
    replay = Replay()
    informer.add_handler(replay)

    def within_what_the_store_has(version: str) -> None:
        assert not newer(version, informer.store.resource_version)

    server.on_watch = within_what_the_store_has
    if on_current is not None:
        informer.when_current(lambda: on_current(mirror))
    if on_stale is not None:
        informer.when_stale(lambda: on_stale(mirror))
    task = asyncio.create_task(informer.run())
    mirror = Mirror(server, informer, replay, clock, task)
    try:
        yield mirror
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert informer.stats.handler_errors == 0
        assert server.open_streams == 0


def on_mirror(
    scenario: Callable[[Mirror], Awaitable[R]],
    *,
    server: Callable[[], ApiServer] = ApiServer,
    options: ReflectorOptions | None = None,
    seed: int = 0,
    on_current: Callable[[Mirror], None] | None = None,
    on_stale: Callable[[Mirror], None] | None = None,
) -> R:
    """Run a scenario on virtual time against a server and an informer that mirrors it;
    ``on_current`` and ``on_stale`` are called each time the mirror becomes that."""

    async def main() -> R:
        async with mirroring(
            server(), options=options, seed=seed, on_current=on_current, on_stale=on_stale
        ) as mirror:
            return await scenario(mirror)

    return run_virtual(main)
