"""Many electors, bad networks, clocks that run apart, crashes: L1 to L5 for any seed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcm.api.core import Lease
from mcm.clock import LoopClock
from mcm.leaderelection import LeaderElector, LeadershipLost
from mcm.simulation.virtualtime import run_virtual
from tests.unit.leaderelection.lease_server import (
    EPOCH,
    LeaseLink,
    LeaseServer,
    Network,
    SkewedClock,
)

REAL = LoopClock(EPOCH)

# A leader stops 10 of its seconds after a renewal, others wait 15 of theirs: the ratio may be 1.5.
RATES = (0.83, 0.9, 1.0, 1.1, 1.2)


class Contest:
    """A server, some processes that contend, and what must hold at every instant."""

    def __init__(self, seed: int, processes: int) -> None:
        self.chance = random.Random(seed)
        self.server = LeaseServer(on_write=self._check_write)
        self.processes = [Process(self, f"p{n}") for n in range(processes)]
        self.terms = 0
        self.working: set[str] = set()  # identities, of lives that have ended as well
        self._broken: list[AssertionError] = []

    def leaders(self) -> list[str]:
        return [p.name for p in self.processes if p.elector.is_leading]

    def check(self) -> None:
        if self._broken:
            raise self._broken[0]
        assert len(self.leaders()) <= 1, f"L1: {self.leaders()} lead at once"

    def _check_write(self, before: Lease | None, after: Lease) -> None:
        """Requests arrive in callbacks, where nobody would hear of a failure: it is kept."""
        try:
            self.check()
            self._check_change(before, after)
        except AssertionError as error:
            self._broken.append(error)

    def _check_change(self, before: Lease | None, after: Lease) -> None:
        old = before.spec.holder_identity if before else None
        new = after.spec.holder_identity
        if before is None:
            assert after.spec.lease_transitions == 0
        else:
            changed = int(bool(new) and new != old)
            assert before.spec.lease_transitions is not None
            assert after.spec.lease_transitions == before.spec.lease_transitions + changed, "L5"
        if before is not None and not new:
            # It may be long in coming: from a life that ended meanwhile.
            assert old not in self.working, "L4: released under its work"

    async def watch(self) -> None:
        while True:
            self.check()
            await REAL.sleep(0.049)


class Process:
    """Runs an elector again and again, as a supervisor would, each life with a new identity."""

    def __init__(self, contest: Contest, name: str) -> None:
        self.contest = contest
        self.name = name
        self.clock = SkewedClock(
            contest.chance.choice(RATES),
            offset=contest.chance.uniform(0, 1e6),
            wall_offset=contest.chance.uniform(-1e6, 1e6),
        )
        self.lives = 0
        self.elector = self._reborn()

    def _reborn(self) -> LeaderElector:
        chance = self.contest.chance
        self.lives += 1
        self.network = Network(self._latency, lambda: chance.random() < self.loss)
        self.loss = 0.0
        self.slowness = 0.02
        return LeaderElector(
            LeaseLink(self.contest.server, self.network),
            name="lease",
            namespace="ns",
            identity=f"{self.name}_{self.lives}",
            clock=self.clock,
            randomness=random.Random(chance.random()),
        )

    def _latency(self) -> float:
        return self.contest.chance.expovariate(1 / self.slowness)

    async def live(self) -> None:
        while True:
            try:
                await self.elector.run(self._work)
            except LeadershipLost:
                await REAL.sleep(self.contest.chance.uniform(0, 3))
            self.elector = self._reborn()

    async def _work(self) -> None:
        """Guarded steps; sometimes the work ends by itself, sometimes it is slow to end."""
        assert self.contest.leaders() == [self.name]
        self.contest.terms += 1
        identity = self.elector.identity
        self.contest.working.add(identity)
        try:
            for _ in range(self.contest.chance.randrange(1, 400)):
                self._step()
                await REAL.sleep(self.contest.chance.uniform(0, 0.5))
        finally:
            try:
                await REAL.sleep(self.contest.chance.choice([0, 0, 0.1, 5]))
            finally:  # a second cancellation ends it all the same
                self.contest.working.discard(identity)

    def _step(self) -> None:
        """L3: past the fence, nobody else may be past it."""
        try:
            self.elector.fence()
        except LeadershipLost:
            return
        self.contest.check()
        assert self.contest.leaders() == [self.name]

    def disturb(self) -> None:
        """Let one thing go wrong, or right again."""
        chance = self.contest.chance
        trouble: list[Callable[[], None]] = [
            lambda: setattr(self.network, "hung", True),
            lambda: setattr(self.network, "refused", True),
            lambda: setattr(self, "loss", chance.uniform(0, 0.6)),
            lambda: setattr(self, "slowness", chance.choice([0.05, 1.0, 4.0])),
            self.heal,
            self.heal,
            self.heal,
        ]
        chance.choice(trouble)()

    def heal(self) -> None:
        self.network.hung = self.network.refused = False
        self.loss, self.slowness = 0.0, 0.02


async def simulate(seed: int, processes: int, minutes: int) -> Contest:
    contest = Contest(seed, processes)
    lives = [asyncio.create_task(p.live()) for p in contest.processes]
    watching = asyncio.create_task(contest.watch())
    running = [*lives, watching]
    end = REAL.monotonic() + minutes * 60
    while REAL.monotonic() < end:
        await REAL.sleep(contest.chance.expovariate(1 / 6))
        victim = contest.chance.randrange(processes)
        if contest.chance.random() < 0.1:
            lives[victim] = running[victim] = await restart(
                contest.processes[victim], lives[victim]
            )
        else:
            contest.processes[victim].disturb()
        for task in running:
            if task.done():
                await task
    for process in contest.processes:
        process.heal()
    await somebody_leads(contest)
    for task in running:
        task.cancel()
    await asyncio.wait(running)
    contest.check()
    return contest


async def restart(process: Process, life: asyncio.Task[None]) -> asyncio.Task[None]:
    """End a life, in half of the cases so abruptly that nothing could be released."""
    if process.contest.chance.random() < 0.5:
        process.network.refused = True
    life.cancel()
    await asyncio.wait([life])
    process.elector = process._reborn()
    return asyncio.create_task(process.live())


async def somebody_leads(contest: Contest) -> None:
    """L2: on a healthy API, within a lease (of the slowest clock) and the longest waits."""
    slowest = min(RATES)
    async with asyncio.timeout((15 + 2 * 4.4 + 5) / slowest + 10):
        while not contest.leaders():
            await REAL.sleep(0.1)


@pytest.mark.timeout(600)  # some seconds each, on a busy machine
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 4))
def test_there_are_never_two_leaders_and_soon_one(seed: int, processes: int) -> None:
    run_virtual(lambda: simulate(seed, processes, minutes=10))


def test_the_simulation_sees_leaders_come_and_go() -> None:
    """Else it would prove nothing."""
    contest = run_virtual(lambda: simulate(3, 3, minutes=60))
    assert contest.terms > 20
    assert len(contest.server.writes) > 200


def test_the_simulation_would_notice_a_release_under_work() -> None:
    """Though the release arrives at the server when nobody waits for it any more."""

    async def scenario() -> None:
        contest = Contest(1, 1)
        (process,) = contest.processes
        life = asyncio.create_task(process.live())
        await somebody_leads(contest)
        await REAL.sleep(0.5)
        assert contest.working == {process.elector.identity}
        await process.elector.release()
        life.cancel()
        await asyncio.wait([life])
        contest.check()

    with pytest.raises(AssertionError, match="L4"):
        run_virtual(scenario)


def test_the_simulation_would_notice_clocks_that_run_too_far_apart() -> None:
    """The bound is real: beyond it two electors can lead at once, and the check says so."""

    async def scenario() -> None:
        server, network = LeaseServer(), Network()
        slow, fast = SkewedClock(0.5), SkewedClock(1.0)

        def elector(link: LeaseLink, name: str, clock: SkewedClock) -> LeaderElector:
            return LeaderElector(link, name="lease", namespace="ns", identity=name, clock=clock)

        old = elector(LeaseLink(server, network), "old", slow)
        new = elector(LeaseLink(server), "new", fast)
        tasks = [asyncio.create_task(e.run(asyncio.Event().wait)) for e in (old,)]  # type: ignore[arg-type]
        await REAL.sleep(1)
        network.hung = True
        tasks.append(asyncio.create_task(new.run(asyncio.Event().wait)))  # type: ignore[arg-type]
        both = False
        for _ in range(400):
            await REAL.sleep(0.05)
            both = both or (old.is_leading and new.is_leading)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert both

    run_virtual(scenario)


@pytest.mark.parametrize("seed", range(5))
def test_a_healthy_leader_is_never_disturbed(seed: int) -> None:
    async def scenario() -> None:
        contest = Contest(seed, 3)
        processes = contest.processes
        lives = [asyncio.create_task(p.elector.run(asyncio.Event().wait)) for p in processes]  # type: ignore[arg-type]
        await REAL.sleep(10)
        (leader,) = contest.leaders()
        for _ in range(3600):
            await REAL.sleep(1)
            assert contest.leaders() == [leader]
        for life in lives:
            life.cancel()
        await asyncio.wait(lives)

    run_virtual(scenario)
