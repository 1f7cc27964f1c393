"""A rollout is followed to its end, whatever the server does meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINES
from mcm.client.client import Client
from mcm.client.errors import ConnectionRefused, NotFound
from mcm.client.transport import Request, Response, StreamResponse
from mcm.rollout.cluster import Cluster
from mcm.rollout.progress import Progress
from mcm.rollout.watching import Watching
from mcm.sandbox import samples
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.loopback import LoopbackTransport
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual


class Severed:
    """A way to the server that can be cut, streams under way included."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._inner = LoopbackTransport(server)
        self.refused = 0
        self._cut = False

    async def cut(self) -> None:
        self._cut = True
        await self._inner.aclose()

    def mend(self) -> None:
        self._cut, self._inner = False, LoopbackTransport(self._server)

    async def request(self, request: Request) -> Response:
        self._check()
        return await self._inner.request(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        self._check()
        async with self._inner.stream(request) as response:
            yield response

    async def aclose(self) -> None:
        await self._inner.aclose()

    def _check(self) -> None:
        if self._cut:
            self.refused += 1
            raise ConnectionRefused("nothing listens there")


class Follower:
    """Follows the sample; ``seen`` is what was shown."""

    def __init__(self, sim: Simulation, *, revision: int = 0, name: str = "sample") -> None:
        self.way = Severed(sim.server)
        client = Client(self.way, clock=sim.clock)
        cluster = Cluster(client, "default")
        self.seen: list[Progress] = []
        self.watching = Watching(cluster, name, clock=sim.clock, revision=revision)

    async def follow(self) -> Progress:
        return await self.watching.follow(self.seen.append)


def in_a_fleet(test: Callable[[Simulation], object]) -> Callable[[], None]:
    """Run ``test`` where three machines of the sample run."""

    def run() -> None:
        async def main() -> None:
            async with Simulation(seed=1) as sim:
                await sim.apply(samples.load())
                await sim.until(lambda: sim.running() == 3, within=600)
                await sim.pass_time(10)
                await test(sim)  # type: ignore[misc]

        run_virtual(main)

    run.__name__ = test.__name__
    return run


async def roll(sim: Simulation) -> None:
    change = {"spec": {"template": {"spec": {"class": {"name": "large"}}}}}
    await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", change, namespace="default")


@in_a_fleet
async def test_each_change_is_shown_until_it_is_done(sim: Simulation) -> None:
    await roll(sim)
    follower = Follower(sim)
    ended = await follower.follow()
    assert ended.done
    updated = [progress.updated for progress in follower.seen]
    assert updated == sorted(updated)
    assert {1, 2, 3} <= {*updated}
    assert sim.running() == len(sim.objects(MACHINES)) == 3


@in_a_fleet
async def test_a_server_that_goes_away_is_waited_for(sim: Simulation) -> None:
    await roll(sim)
    follower = Follower(sim)
    async with asyncio.TaskGroup() as group:
        following = group.create_task(follower.follow())
        await sim.until(lambda: len(follower.seen) > 1, within=60)
        await follower.way.cut()
        await sim.pass_time(120)
        assert not following.done()
        assert follower.way.refused > 5
        follower.way.mend()
    assert (await following).done
    assert sim.clock.monotonic() < 300


@in_a_fleet
async def test_a_deployment_that_is_deleted_meanwhile_ends_it(sim: Simulation) -> None:
    await roll(sim)
    follower = Follower(sim)
    async with asyncio.TaskGroup() as group:
        following = group.create_task(follower.follow())
        await sim.until(lambda: len(follower.seen) > 1, within=60)
        await sim.client.delete(MACHINE_DEPLOYMENTS, "sample", namespace="default")
    assert "deleted" in (await following).failure


@in_a_fleet
async def test_it_ends_when_it_is_another_revision_s_turn(sim: Simulation) -> None:
    follower = Follower(sim, revision=2)
    assert (await follower.follow()).failure == (
        "desired revision (2) is different from the running revision (1)"
    )
    await roll(sim)
    await sim.pass_time(2)
    async with asyncio.TaskGroup() as group:
        following = group.create_task(Follower(sim, revision=2).follow())
    assert (await following).done


@in_a_fleet
async def test_what_is_not_there_is_told_at_once(sim: Simulation) -> None:
    with pytest.raises(Exception, match='"other" not found') as refusal:
        await Follower(sim, name="other").follow()
    assert not isinstance(refusal.value, NotFound)


@in_a_fleet
async def test_a_cancelled_one_leaves_nothing_behind(sim: Simulation) -> None:
    change = {"spec": {"paused": True}}
    await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", change, namespace="default")
    await roll(sim)
    follower = Follower(sim)
    before = sim.server.watch_count
    following = asyncio.ensure_future(follower.follow())
    await sim.until(lambda: bool(follower.seen), within=60)
    assert sim.server.watch_count > before
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following
    await sim.pass_time(1)
    assert sim.server.watch_count == before
