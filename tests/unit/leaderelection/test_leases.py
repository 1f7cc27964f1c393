"""Two leases, taken together or not at all: among our own kind, and beside the Go original."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcm.clock import LoopClock
from mcm.leaderelection import AllLeases, LeaderElector, LeadershipLost
from mcm.leaderelection.precedence import LeaseView, obstructed_for
from mcm.simulation.virtualtime import run_virtual
from tests.unit.leaderelection.lease_server import EPOCH, LeaseLink, LeaseServer, Network
from tests.unit.leaderelection.test_elector import usurp, virtual

CLOCK = LoopClock(EPOCH)
NAMES = ("first", "second")
DURATION, RETRY = 15.0, 2.0

OURS, VACANT, UNKNOWN = LeaseView(True, 0.0), LeaseView(False, 0.0), LeaseView(False, math.inf)


def theirs(seconds: float) -> LeaseView:
    return LeaseView(False, seconds)


@pytest.mark.parametrize(
    ("views", "rank", "seconds"),
    [
        ([VACANT, VACANT], 0, 0.0),
        ([VACANT, theirs(7.0)], 0, 7.0),
        ([VACANT, UNKNOWN], 0, math.inf),
        ([theirs(3.0), VACANT], 0, 0.0),  # that the lease itself is taken is its election's affair
        ([OURS, theirs(7.0)], 0, 7.0),  # held already: then it is to be given up
        ([OURS, OURS], 0, 0.0),
        ([VACANT, VACANT], 1, math.inf),
        ([theirs(3.0), VACANT], 1, math.inf),
        ([OURS, VACANT], 1, 0.0),
        ([OURS, VACANT, theirs(4.0), theirs(5.0)], 1, 5.0),
        ([VACANT], 0, 0.0),
    ],
)
def test_the_order_of_precedence(views: Sequence[LeaseView], rank: int, seconds: float) -> None:
    assert obstructed_for(views, rank) == seconds


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 60)), min_size=1, max_size=4))
def test_only_the_first_lease_that_is_not_held_may_ever_be_taken(
    leases: list[tuple[bool, float]],
) -> None:
    views = [LeaseView(held, 0.0 if held else free_in) for held, free_in in leases]
    free = [n for n, v in enumerate(views) if not v.held and obstructed_for(views, n) == 0]
    assert free == [] or free == [min(n for n, v in enumerate(views) if not v.held)]


@final
class Replica:
    """One of ours: contends for both leases as the lifecycle does, for ever."""

    def __init__(self, server: LeaseServer, identity: str, seed: int = 1) -> None:
        self.identity = identity
        self.network = Network(latency=lambda: 0.01)
        chance = random.Random(f"{seed}/{identity}")
        self.leases = AllLeases(
            [
                LeaderElector(
                    LeaseLink(server, self.network),
                    name=name,
                    namespace="ns",
                    identity=identity,
                    clock=CLOCK,
                    randomness=random.Random(chance.random()),
                )
                for name in NAMES
            ]
        )
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._contend(name)) for name in NAMES]

    @property
    def leads(self) -> bool:
        with suppress(LeadershipLost):
            self.leases.check()
            return True
        return False

    async def _contend(self, name: str) -> None:
        while True:
            with suppress(LeadershipLost):
                await self.leases.hold(name, lambda: None)

    async def kill(self) -> None:
        """End without a word to the server."""
        self.network.hung = True
        await self._cancel()

    async def stop(self) -> None:
        await self._cancel()
        for name in NAMES:
            await self.leases.release(name)

    async def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)


@final
class GoProcess:
    """One of the Go original's: contends for one lease, and lets it run out when it ends."""

    def __init__(self, server: LeaseServer, name: str, identity: str) -> None:
        self._network = Network(latency=lambda: 0.01)
        self._elector = LeaderElector(
            LeaseLink(server, self._network),
            name=name,
            namespace="ns",
            identity=identity,
            clock=CLOCK,
        )
        self._task: asyncio.Task[None] | None = None

    @property
    def leads(self) -> bool:
        return self._elector.is_leading

    def start(self) -> None:
        self._task = asyncio.create_task(self._elector.run(asyncio.Event().wait))  # type: ignore[arg-type]

    async def kill(self) -> None:
        assert self._task is not None
        self._network.refused = True
        self._task.cancel()
        await asyncio.wait({self._task})


def now() -> float:
    return asyncio.get_running_loop().time()


async def until(condition: Callable[[], bool], within: float = 60.0) -> float:
    started = now()
    while not condition():
        assert now() - started < within, f"not within {within} s"
        await CLOCK.sleep(0.05)
    return now() - started


def holders(server: LeaseServer) -> list[str | None]:
    return [server.leases[n].spec.holder_identity if n in server.leases else None for n in NAMES]


@virtual
async def test_a_lone_candidate_takes_both_at_once_in_order() -> None:
    server = LeaseServer()
    replica = Replica(server, "a")
    replica.start()
    assert await until(lambda: replica.leads) < 0.5
    assert [lease.metadata.name for _, lease in server.writes] == ["first", "second"]
    await replica.stop()
    assert holders(server) == ["", ""]


@pytest.mark.parametrize("seed", range(20))
def test_a_crashed_leader_is_followed_within_one_lease_duration_and_a_retry_period(
    seed: int,
) -> None:
    @virtual
    async def scenario() -> None:
        server = LeaseServer()
        dead, heir = Replica(server, "dead", seed), Replica(server, "heir", seed)
        dead.start()
        await until(lambda: dead.leads)
        await CLOCK.sleep(seed / 7)
        heir.start()
        await CLOCK.sleep(20 + seed / 3)
        await dead.kill()
        last_renewal = server.writes[-1][0]
        await until(lambda: heir.leads)
        took = server.writes[-1][0] - last_renewal
        assert DURATION <= took <= DURATION + RETRY + 0.2  # the latency of a few requests
        assert holders(server) == ["heir", "heir"]
        await heir.stop()

    scenario()


@virtual
async def test_who_stops_in_order_is_followed_within_a_retry_period() -> None:
    server = LeaseServer()
    old, new = Replica(server, "old"), Replica(server, "new")
    old.start()
    await until(lambda: old.leads)
    new.start()
    await CLOCK.sleep(20)
    await old.stop()
    assert await until(lambda: new.leads) <= RETRY + 0.2
    await new.stop()


@virtual
async def test_a_change_of_leaders_is_no_break_and_an_outage_is_one_for_all_who_follow() -> None:
    server = LeaseServer()
    first, heir = Replica(server, "first"), Replica(server, "heir")
    first.start()
    await until(lambda: first.leads)
    assert first.leases.led_since() is not None  # there was no lease: nothing is known
    heir.start()
    await CLOCK.sleep(20)
    await first.kill()
    await until(lambda: heir.leads)
    assert heir.leases.led_since() is None
    await heir.kill()
    await CLOCK.sleep(20 * 60)
    after, last = Replica(server, "after"), Replica(server, "last")
    after.start()
    await until(lambda: after.leads)
    resumed = after.leases.led_since()
    assert resumed is not None
    assert timedelta() <= CLOCK.now() - resumed < timedelta(seconds=1)
    await after.stop()
    last.start()
    await until(lambda: last.leads)
    assert last.leases.led_since() == resumed
    await last.stop()


@virtual
async def test_nobody_led_as_long_as_one_of_the_leases_was_not_held() -> None:
    """A Go process renews the first for ten minutes; that of the second, which would be the one to
    look after machines, has gone."""
    server = LeaseServer()
    go, fellow = GoProcess(server, "first", "go-1"), GoProcess(server, "second", "go-2")
    go.start()
    fellow.start()
    await until(lambda: go.leads and fellow.leads)
    await fellow.kill()
    await CLOCK.sleep(10 * 60)
    await go.kill()
    replica = Replica(server, "ours")
    replica.start()
    await until(lambda: replica.leads)
    since = replica.leases.led_since()
    assert since is not None
    assert CLOCK.now() - since < timedelta(seconds=1)
    await replica.stop()


@pytest.mark.parametrize("name", NAMES)
def test_as_long_as_a_go_process_holds_one_lease_the_other_is_left_to_its_fellow(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    @virtual
    async def scenario() -> None:
        server = LeaseServer()
        (other,) = set(NAMES) - {name}
        holder, fellow = GoProcess(server, name, "go-1"), GoProcess(server, other, "go-2")
        holder.start()
        await until(lambda: holder.leads)
        replica = Replica(server, "ours")
        replica.start()
        await CLOCK.sleep(120)
        assert "ours" not in holders(server)
        free = f"lease ns/{other} is held by nobody; it is taken together with the others"
        assert any(message.startswith(free) for message in caplog.messages)
        fellow.start()
        await until(lambda: fellow.leads, within=1.0)
        await CLOCK.sleep(60)
        await holder.kill()
        await CLOCK.sleep(60)
        assert not replica.leads and fellow.leads, "one of two is not enough"
        await fellow.kill()
        assert await until(lambda: replica.leads) <= DURATION + RETRY + 0.2
        await replica.stop()

    scenario()


@virtual
async def test_a_lease_won_in_vain_is_given_up_soon() -> None:
    """A Go process takes the second lease in the moment in which we take the first."""
    server = LeaseServer()
    fellow, standby = GoProcess(server, "second", "go-1"), GoProcess(server, "first", "go-2")
    replica = Replica(server, "ours")
    server.on_write = lambda before, after: (
        fellow.start() if after.metadata.name == "first" and before is None else None
    )
    network, replica.network.latency = replica.network.latency, lambda: 0.1
    replica.start()
    await until(lambda: fellow.leads)
    assert holders(server) == ["ours", "go-1"]
    standby.start()
    await until(lambda: standby.leads, within=3 * RETRY + 1)
    assert holders(server) == ["go-2", "go-1"]
    replica.network.latency = network
    await standby.kill()
    await fellow.kill()
    await until(lambda: replica.leads)
    await replica.stop()


@virtual
async def test_no_lease_is_given_up_while_work_may_go_on_under_them() -> None:
    """Once both were held, the loss of one ends the work; until it has ended, the other stays."""
    server = LeaseServer()
    replica = Replica(server, "ours")
    held = asyncio.create_task(replica.leases.hold("first", lambda: None))
    lost = asyncio.create_task(replica.leases.hold("second", lambda: None))
    await until(lambda: replica.leads)
    usurp(server, "second")
    await asyncio.wait({lost})
    with pytest.raises(LeadershipLost, match="held by usurper"):
        lost.result()
    await CLOCK.sleep(60)
    assert holders(server) == ["ours", "usurper"] and not held.done()
    held.cancel()
    await asyncio.wait({held})
    for name in NAMES:
        await replica.leases.release(name)
    assert holders(server) == ["", "usurper"]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 4))
def test_replicas_that_come_and_go_never_lead_together_and_never_block_each_other(
    seed: int, count: int
) -> None:
    async def scenario() -> None:
        chance, server = random.Random(seed), LeaseServer()
        replicas = [Replica(server, f"r{n}", seed) for n in range(count)]
        check = partial(_at_most_one_leads, replicas)
        server.on_write = lambda before, after: check()
        for replica in replicas:
            replica.start()
        for life in range(12):
            await until(lambda: any(r.leads for r in replicas), within=2 * (DURATION + RETRY))
            await CLOCK.sleep(chance.uniform(0, 40))
            victim = chance.randrange(count)
            await chance.choice([replicas[victim].kill, replicas[victim].stop])()
            check()
            replicas[victim] = Replica(server, f"r{victim}-{life}", seed)
            replicas[victim].start()
        for replica in replicas:
            await replica.stop()

    run_virtual(scenario)


def _at_most_one_leads(replicas: Sequence[Replica]) -> None:
    assert sum(replica.leads for replica in replicas) <= 1
