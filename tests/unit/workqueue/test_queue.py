"""The queue's driver on virtual time: waiting, timers, cancellation, the end, metrics."""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime

import pytest
import uvloop
from prometheus_client import CollectorRegistry

from mcm.clock import LoopClock, SystemClock
from mcm.simulation.virtualtime import run_virtual
from mcm.workqueue import ExponentialLimiter, QueueMetrics, QueueShutDown, WorkQueue

CLOCK = LoopClock(datetime(2026, 1, 1, tzinfo=UTC))

Test = Callable[[], Coroutine[object, object, None]]


def virtual(test: Test) -> Callable[[], None]:
    @functools.wraps(test)
    def run() -> None:
        run_virtual(test)

    return run


def new_queue(metrics: QueueMetrics | None = None) -> WorkQueue[str]:
    return WorkQueue("q", clock=CLOCK, limiter=ExponentialLimiter(1.0, 60.0), metrics=metrics)


def now() -> float:
    return asyncio.get_running_loop().time()


async def settle() -> None:
    """Let everything run that can without time passing."""
    for _ in range(5):
        await CLOCK.sleep(0)


@virtual
async def test_get_waits_for_an_add() -> None:
    queue = new_queue()
    getter = asyncio.create_task(queue.get())
    await CLOCK.sleep(3)
    assert not getter.done()
    queue.add("a")
    assert await getter == "a"
    assert now() == 3


@virtual
async def test_a_delayed_key_comes_at_its_deadline_to_the_digit() -> None:
    queue = new_queue()
    queue.add_after("a", 96 * 3600.0)
    assert await queue.get() == "a"
    assert now() == 96 * 3600.0


@virtual
async def test_the_earliest_of_several_delays_counts_and_only_once() -> None:
    queue = new_queue()
    for delay in (50.0, 7.5, 60.0):
        queue.add_after("a", delay)
    assert await queue.get() == "a"
    assert now() == 7.5
    queue.done("a")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1000):
            await queue.get()


@virtual
async def test_keys_come_in_the_order_of_their_deadlines() -> None:
    queue = new_queue()
    delays = {f"k{n}": random.Random(7).uniform(0, 1) + n * 0.37 % 5 for n in range(50)}
    for key, delay in delays.items():
        queue.add_after(key, delay)
    for key in sorted(delays, key=delays.__getitem__):
        assert await queue.get() == key
        assert now() == pytest.approx(delays[key], abs=1e-9)


@virtual
async def test_an_add_does_not_cancel_a_delay() -> None:
    queue = new_queue()
    queue.add_after("a", 10)
    queue.add("a")
    assert await queue.get() == "a"
    queue.done("a")
    assert await queue.get() == "a"
    assert now() == 10


@virtual
async def test_a_delay_of_nothing_is_an_add() -> None:
    queue = new_queue()
    queue.add_after("a", 0)
    queue.add_after("b", -1)
    assert len(queue) == 2 and queue.delayed == 0


@pytest.mark.parametrize("delay", [float("nan"), float("inf"), float("-inf")])
def test_a_delay_that_is_no_time_is_refused(delay: float) -> None:
    queue = new_queue()
    with pytest.raises(ValueError, match="cannot be added"):
        queue.add_after("a", delay)
    assert queue.delayed == 0


@virtual
async def test_done_of_a_key_that_was_not_handed_out_is_ignored() -> None:
    queue = new_queue()
    queue.add("a")
    queue.done("a")
    queue.done("b")
    assert len(queue) == 1
    assert await queue.get() == "a"


def test_a_queue_may_be_filled_before_the_loop_runs() -> None:
    queue = WorkQueue[str]("q", clock=SystemClock())
    queue.add("now")
    queue.add_after("later", 0.01)

    async def drain_it() -> list[str]:
        return [await queue.get(), await queue.get()]

    assert asyncio.run(drain_it()) == ["now", "later"]


def test_timers_are_never_early_on_uvloop() -> None:
    """Its timers count in milliseconds; the queue must not."""
    clock = SystemClock()
    delays = [0.0004, 0.0016, 0.0023, 0.0051]

    async def scenario() -> None:
        queue = WorkQueue[int]("q", clock=clock)
        started = clock.monotonic()
        for number, delay in enumerate(delays):
            queue.add_after(number, delay)
        for number, delay in enumerate(delays):
            assert await queue.get() == number
            assert clock.monotonic() - started >= delay - 1e-6

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())


@virtual
async def test_rate_limited_adds_wait_longer_each_time_until_forgotten() -> None:
    queue = new_queue()
    delays = []
    for _ in range(3):
        delays.append(queue.add_rate_limited("a"))
        await queue.get()
        queue.done("a")
    assert delays == [1.0, 2.0, 4.0] and now() == 7
    assert queue.failures("a") == 3
    queue.forget("a")
    assert queue.failures("a") == 0
    assert queue.add_rate_limited("a") == 1.0


@virtual
async def test_a_server_may_ask_for_a_longer_wait_than_the_limiter() -> None:
    queue = new_queue()
    assert queue.add_rate_limited("a", at_least=30.0) == 30.0
    await queue.get()
    assert now() == 30


@virtual
async def test_no_two_getters_hold_the_same_key() -> None:
    queue = new_queue()
    queue.add("a")
    assert await queue.get() == "a"
    second = asyncio.create_task(queue.get())
    queue.add("a")
    await settle()
    assert not second.done()
    queue.done("a")
    assert await second == "a"


@virtual
async def test_a_getter_cancelled_between_wake_up_and_turn_passes_the_key_on() -> None:
    """W11: the key was never its own."""
    queue = new_queue()
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await settle()
    queue.add("a")  # wakes the first, which has not run yet
    first.cancel()
    assert await second == "a"
    with pytest.raises(asyncio.CancelledError):
        await first


@virtual
async def test_a_cancelled_getter_is_not_woken() -> None:
    queue = new_queue()
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await settle()
    first.cancel()
    queue.add("a")  # before the cancelled one could leave
    assert await second == "a"
    await asyncio.wait([first])


@virtual
async def test_a_key_woken_for_but_taken_by_a_passer_by_keeps_the_getter_waiting() -> None:
    queue = new_queue()
    getter = asyncio.create_task(queue.get())
    await settle()
    queue.add("a")
    assert queue.get_nowait() == "a"
    await settle()
    assert not getter.done()
    queue.add("b")
    assert await getter == "b"


@pytest.mark.parametrize("seed", range(30))
def test_keys_survive_a_storm_of_cancellations(seed: int) -> None:
    """W11 at large: whatever is cancelled when, each key is handed out exactly as often as due."""
    chance = random.Random(seed)

    async def storm() -> None:
        queue = new_queue()
        got: list[str] = []
        getters: list[asyncio.Task[None]] = []

        async def get_one() -> None:
            got.append(await queue.get())

        keys = [f"k{n}" for n in range(100)]
        for key in keys:
            getters += [asyncio.create_task(get_one()) for _ in range(chance.randrange(3))]
            if chance.random() < 0.5:
                await CLOCK.sleep(0)
            queue.add(key) if chance.random() < 0.7 else queue.add_after(key, chance.random())
            if getters and chance.random() < 0.6:
                chance.choice(getters).cancel()
            if chance.random() < 0.3:
                await CLOCK.sleep(chance.random() / 10)
        queue_end = asyncio.create_task(_get_rest(queue, got))
        await CLOCK.sleep(10)
        for getter in [*getters, queue_end]:
            getter.cancel()
        await asyncio.wait([*getters, queue_end])
        assert sorted(got) == sorted(keys)

    run_virtual(storm)


async def _get_rest(queue: WorkQueue[str], got: list[str]) -> None:
    while True:
        got.append(await queue.get())


@virtual
async def test_shutdown_hands_out_what_is_ready_and_then_tells_everybody() -> None:
    queue = new_queue()
    waiting = [asyncio.create_task(queue.get()) for _ in range(3)]
    await settle()
    queue.add("a")
    queue.add_after("later", 5)
    queue.shut_down()
    queue.shut_down()
    queue.add("refused")
    assert queue.add_rate_limited("refused") == 0.0
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert results[0] == "a"
    assert all(isinstance(r, QueueShutDown) for r in results[1:])
    with pytest.raises(QueueShutDown):
        await queue.get()
    assert queue.delayed == 0 and queue.is_shut_down


@virtual
async def test_after_a_shutdown_a_dirty_key_still_gets_its_last_run() -> None:
    queue = new_queue()
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.shut_down()
    queue.done("a")
    assert await queue.get() == "a"


@virtual
async def test_drain_waits_for_ready_processing_and_dirty() -> None:
    """W5; client-go's own looks at what is in processing only."""
    queue = new_queue()
    for key in "ab":
        queue.add(key)
    drains = [asyncio.create_task(queue.drain()) for _ in range(2)]
    await settle()
    assert not any(d.done() for d in drains), "nothing in processing, but two are ready"
    await queue.get()
    queue.add("a")
    queue.shut_down()
    queue.done("a")
    for _ in range(2):
        key = await queue.get()
        await settle()
        assert not any(d.done() for d in drains)
        queue.done(key)
    await asyncio.gather(*drains)


@virtual
async def test_drain_of_an_idle_queue_returns_at_once_and_delays_do_not_count() -> None:
    queue = new_queue()
    queue.add_after("a", 100)
    await queue.drain()
    assert now() == 0


@virtual
async def test_a_cancelled_drain_does_not_keep_the_others_waiting() -> None:
    queue = new_queue()
    queue.add("a")
    first, second = (asyncio.create_task(queue.drain()) for _ in range(2))
    await settle()
    first.cancel()
    with suppress(asyncio.CancelledError):
        await first
    queue.done(await queue.get())
    await second


@virtual
async def test_the_wait_for_the_shutdown_ends_with_it() -> None:
    queue = new_queue()
    waiter = asyncio.create_task(queue.wait_shut_down())
    await settle()
    assert not waiter.done()
    queue.shut_down()
    await waiter


@virtual
async def test_the_state_can_be_read_and_printed() -> None:
    queue = new_queue()
    for key in "abc":
        queue.add(key, priority=4)
    await queue.get()
    queue.add_after("d", 3)
    assert queue.processing == ("a",)
    assert queue.priority("a") == 4 and queue.priority("b") == 0
    assert repr(queue) == "<WorkQueue q: 2 ready, 1 processing, 1 delayed>"


@virtual
async def test_metrics_tell_what_happened() -> None:
    registry = CollectorRegistry()
    queue = new_queue(QueueMetrics(registry))

    def value(name: str) -> float | None:
        return registry.get_sample_value(f"mcm_workqueue_{name}", {"name": "q"})

    assert value("depth") == 0 and value("adds_total") == 0
    queue.add("a")
    queue.add("a")
    queue.add("b")
    assert value("depth") == 2 and value("adds_total") == 2
    await CLOCK.sleep(4)
    await queue.get()
    assert value("depth") == 1
    assert value("queue_duration_seconds_sum") == 4
    await CLOCK.sleep(1)
    await queue.get()
    await CLOCK.sleep(2)
    assert value("unfinished_work_seconds") == 5
    assert value("longest_running_processor_seconds") == 3
    queue.add("a")
    assert value("depth") == 1 - 1, "a waits for its own processing to end"
    queue.done("a")
    assert value("depth") == 1
    assert value("work_duration_seconds_sum") == 3
    queue.add_rate_limited("c")
    queue.add_after("d", 9)
    assert value("retries_total") == 1
    await CLOCK.sleep(1)
    assert value("depth") == 2 and value("adds_total") == 4
    queue.shut_down()
    assert value("delayed_dropped_total") == 1
    assert value("unfinished_work_seconds") == 3


@virtual
async def test_several_queues_share_one_set_of_metrics() -> None:
    registry = CollectorRegistry()
    metrics = QueueMetrics(registry)
    queues = [WorkQueue[str](name, clock=CLOCK, metrics=metrics) for name in ("x", "y")]
    queues[1].add("a")
    depths = [
        registry.get_sample_value("mcm_workqueue_depth", {"name": name}) for name in ("x", "y")
    ]
    assert depths == [0, 1]
