from __future__ import annotations

import asyncio
import random

import pytest

from mcm.api.machine import MACHINES, Machine
from mcm.clock import LoopClock
from mcm.informers import Change, Informer, ReflectorOptions
from mcm.simulation.virtualtime import run_virtual
from tests.unit.informers.apiserver import NAMESPACE, ApiServer, Break, Fault
from tests.unit.informers.mirror import EPOCH, Mirror, Replay, on_mirror

IN_PAGES = ReflectorOptions(streamed_lists=False, page_size=100)


def fleet(count: int) -> ApiServer:
    server = ApiServer()
    for n in range(count):
        server.put(f"m{n}", "Running")
    return server


async def first_told(mirror: Mirror) -> None:
    """Wait for the first part of the first list."""
    told = asyncio.Event()
    mirror.informer.add_handler(lambda change: told.set())
    await told.wait()


def test_synced_means_that_every_handler_has_seen_the_whole_first_list() -> None:
    async def scenario(mirror: Mirror) -> None:
        seen = set()
        await first_told(mirror)
        while not mirror.informer.synced:
            seen.add(len(mirror.replay.told))
            await mirror.sleep(0.0005)
        assert len(seen) > 3
        assert len(mirror.replay.told) == 1000
        assert all(change.initial for change in mirror.replay.changes)

    on_mirror(scenario, server=lambda: fleet(1000), options=IN_PAGES)


def test_a_long_relist_is_told_in_slices_and_own_writes_keep_each_chain_in_order() -> None:
    def server() -> ApiServer:
        made = fleet(1000)
        made.watch_faults.append(Fault(Break.EXPIRED, after=10.0))
        return made

    async def scenario(mirror: Mirror) -> None:
        informer = mirror.informer
        told: list[tuple[str, str, str]] = []

        def interrupt(change: Change[Machine]) -> None:
            if change.initial:
                return
            assert change.old is not None and change.new is not None
            if not told:
                answer = mirror.server.put("m999", "Failed")
                asyncio.get_running_loop().call_soon(informer.store.observe, answer)
            told.append((change.object.metadata.name, change.old.phase, change.new.phase))

        informer.add_handler(interrupt)
        await mirror.sleep(10.01)
        for n in range(1000):
            mirror.server.put(f"m{n}", "Pending")
        await mirror.sleep(60)
        assert informer.stats.relists == 1
        chain = [("m999", "Running", "Pending"), ("m999", "Pending", "Failed")]
        assert [change for change in told if change[0] == "m999"] == chain
        assert len(told) == 1001
        assert mirror.agrees()

    on_mirror(scenario, server=server)


def test_a_late_handler_is_told_what_is_there_then_what_happens() -> None:
    async def scenario(mirror: Mirror) -> None:
        await mirror.informer.wait_synced()
        late = Replay()
        mirror.informer.add_handler(late)
        assert [c.initial for c in late.changes] == [True, True, True]
        mirror.server.drop("m0")
        mirror.server.put("new")
        await mirror.sleep(1)
        assert late.equals(mirror.server.machines())
        assert [c.initial for c in late.changes[3:]] == [False, False]

    on_mirror(scenario, server=lambda: fleet(3))


def test_a_handler_that_comes_during_the_first_list_sees_nothing_twice() -> None:
    async def scenario(mirror: Mirror) -> None:
        await first_told(mirror)
        assert not mirror.informer.synced
        late = Replay()
        mirror.informer.add_handler(late)
        await mirror.informer.wait_synced()
        assert late.equals(mirror.server.machines())
        assert len(late.changes) == len(mirror.replay.changes) == 1000

    on_mirror(scenario, server=lambda: fleet(1000), options=IN_PAGES)


def test_a_handler_that_raises_costs_nobody_else_anything(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        informer = Informer(fleet(3), MACHINES, clock=LoopClock(EPOCH), randomness=random.Random(0))

        def broken(change: Change[Machine]) -> None:
            raise LookupError(change.object.metadata.name)

        replay = Replay()
        informer.add_handler(broken)
        informer.add_handler(replay)
        task = asyncio.create_task(informer.run())
        await informer.wait_synced()
        assert len(replay.told) == 3
        assert informer.stats.handler_errors == 3
        assert [r.__dict__["key"] for r in caplog.records] == [
            f"{NAMESPACE}/m{n}" for n in range(3)
        ]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_virtual(main)


def test_own_writes_reach_the_handlers_before_observe_returns() -> None:
    async def scenario(mirror: Mirror) -> None:
        await mirror.informer.wait_synced()
        answer = mirror.server.put("m0", "Failed")
        mirror.informer.store.observe(answer)
        assert [c.new for c in mirror.replay.changes][-1] is answer
        told = len(mirror.replay.changes)
        await mirror.sleep(1)
        assert len(mirror.replay.changes) == told, "the echo is no news"
        gone = mirror.server.drop("m1")
        mirror.informer.store.observe_deleted(gone)
        assert [c.new for c in mirror.replay.changes][-1] is None
        await mirror.sleep(1)
        assert len(mirror.replay.changes) == told + 1
        assert mirror.agrees()
        assert mirror.informer.store.remembered_deletions == 0

    on_mirror(scenario, server=lambda: fleet(3))


def test_a_resync_repeats_every_object_as_a_change_of_nothing() -> None:
    async def main() -> None:
        informer = Informer(
            fleet(2),
            MACHINES,
            clock=LoopClock(EPOCH),
            randomness=random.Random(0),
            resync_period=100.0,
        )
        replay = Replay()
        informer.add_handler(replay)
        task = asyncio.create_task(informer.run())
        await LoopClock(EPOCH).sleep(250)
        repeated = replay.changes[2:]
        assert len(repeated) == 4
        assert all(c.resync and c.old is c.new for c in repeated)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_virtual(main)


def test_health_is_having_heard_of_the_server_lately() -> None:
    async def scenario(mirror: Mirror) -> None:
        informer, clock = mirror.informer, mirror.clock
        assert informer.last_heard is None
        assert informer.healthy(clock.monotonic())
        await mirror.sleep(1000)
        status = informer.status()
        assert status.synced and status.healthy
        assert status.objects == 3 and status.silence is not None and status.silence <= 60
        mirror.server.down = True
        mirror.server.put("x")
        await mirror.sleep(179)
        assert informer.healthy(clock.monotonic())
        await mirror.sleep(2)
        assert not informer.status().healthy

    on_mirror(scenario, server=lambda: fleet(3))


def test_a_server_without_bookmarks_is_healthy_although_it_says_nothing() -> None:
    def server() -> ApiServer:
        made = fleet(3)
        made.bookmarks = False
        return made

    async def scenario(mirror: Mirror) -> None:
        for _ in range(100):
            await mirror.sleep(10)
            assert mirror.informer.healthy(mirror.clock.monotonic())
        assert mirror.informer.stats.lists == 1
        assert mirror.informer.stats.silent_watches > 10

    on_mirror(scenario, server=server)


def test_an_informer_runs_once() -> None:
    async def scenario(mirror: Mirror) -> None:
        await mirror.sleep(1)
        with pytest.raises(RuntimeError, match="was run before"):
            await mirror.informer.run()

    on_mirror(scenario)


def test_its_repr_says_how_it_is() -> None:
    async def scenario(mirror: Mirror) -> None:
        name = f"<Informer machines.machine.sapcloud.io in {NAMESPACE}: "
        assert repr(mirror.informer) == name + "0 objects, not synced>"
        await mirror.informer.wait_synced()
        assert repr(mirror.informer) == name + "3 objects, synced>"

    on_mirror(scenario, server=lambda: fleet(3))


def test_no_handler_is_called_after_a_stop_in_the_middle_of_a_list() -> None:
    async def scenario(mirror: Mirror) -> None:
        await first_told(mirror)
        mirror.task.cancel()
        await asyncio.gather(mirror.task, return_exceptions=True)
        told = len(mirror.replay.told)
        assert told < 1000
        await mirror.sleep(100)
        assert len(mirror.replay.told) == told

    on_mirror(scenario, server=lambda: fleet(1000), options=IN_PAGES)


def test_a_fault_that_says_nothing_is_no_sign_of_life() -> None:
    def server() -> ApiServer:
        made = fleet(1)
        made.watch_faults.append(Fault(Break.SILENCE, at_once=True))
        return made

    async def scenario(mirror: Mirror) -> None:
        await mirror.sleep(69)
        assert mirror.informer.last_heard == pytest.approx(0.002)

    on_mirror(scenario, server=server, options=IN_PAGES)
