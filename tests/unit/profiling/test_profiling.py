"""What is sampled from within: stacks, profiles as other programs read them, a loop that stands."""

from __future__ import annotations

import asyncio
import gzip
import logging
import threading
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry

from mcm.clock import SystemClock
from mcm.profiling import collapsed, cpu, heap, pprof, threads
from mcm.profiling.profile import Measure, Profile
from mcm.profiling.stacks import Frame
from mcm.profiling.stalls import Stalls
from mcm.profiling.tasks import Tasks

CLOCK = SystemClock()


def burn(seconds: float) -> None:
    until = CLOCK.monotonic() + seconds
    while CLOCK.monotonic() < until:
        sum(range(1000))


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Read protobuf: field numbers with varints and with what has a length."""
    at = 0

    def varint() -> int:
        nonlocal at
        number = shift = 0
        while True:
            byte = message[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            length = varint()
            yield key >> 3, message[at : at + length]
            at += length


def test_a_profile_is_written_as_pprof_reads_it() -> None:
    outer = Frame("mcm.outer", "mcm/a.py", 3, 1)
    inner = Frame("mcm.inner", "mcm/a.py", 300, 200)
    profile = Profile(
        measures=(Measure("samples", "count"), Measure("cpu", "nanoseconds")),
        samples={(inner, outer): (2, 20_000_000), (outer,): (1, 0)},
        seconds=1.5,
        started_at=100.0,
    )
    read = list(fields(gzip.decompress(pprof.encode(profile))))
    texts = [text.decode() for number, text in read if number == 6 and isinstance(text, bytes)]
    assert texts[0] == "" and {"samples", "cpu", "mcm.inner", "mcm/a.py"} <= set(texts)
    places = [dict(fields(m)) for number, m in read if number == 4 and isinstance(m, bytes)]
    functions = [dict(fields(m)) for number, m in read if number == 5 and isinstance(m, bytes)]
    assert [place[1] for place in places] == [1, 2]
    line = places[0][4]
    assert isinstance(line, bytes) and dict(fields(line)) == {1: 1, 2: 300}
    name = functions[0][2]
    assert isinstance(name, int) and texts[name] == "mcm.inner" and functions[0][5] == 200
    samples = [dict(fields(m)) for number, m in read if number == 2 and isinstance(m, bytes)]
    assert samples[0][1] == bytes([1, 2]), "innermost first"
    assert (9, 100_000_000_000) in read and (10, 1_500_000_000) in read
    assert collapsed.encode(profile) == b"mcm.outer 0\nmcm.outer;mcm.inner 20000000\n"


async def test_what_is_on_the_cpu_is_found_and_what_waits_is_not() -> None:
    async def idles() -> None:
        await asyncio.Event().wait()

    waiting = asyncio.create_task(idles())
    sampled = asyncio.create_task(
        asyncio.to_thread(cpu.sample, 1.0, clock=CLOCK, cancelled=threading.Event())
    )
    await asyncio.sleep(0)  # noqa: TID251 - lets the thread begin
    burn(0.6)
    profile = await sampled
    waiting.cancel()
    spent = sum(v[1] for stack, v in profile.samples.items() if "burn" in stack[0].function)
    assert spent > sum(v[1] for v in profile.samples.values()) / 2
    assert "idles" not in collapsed.encode(profile).decode()


async def test_what_is_allocated_meanwhile_and_kept_is_found() -> None:
    cancelled = threading.Event()
    traced = asyncio.create_task(
        asyncio.to_thread(heap.trace, 60.0, clock=CLOCK, cancelled=cancelled)
    )
    import tracemalloc

    while not tracemalloc.is_tracing():
        await CLOCK.sleep(0.01)
    kept = [bytes(10_000) for _ in range(100)]
    cancelled.set()
    profile = await traced
    most = max(profile.samples.items(), key=lambda item: item[1][1])
    assert most[1][1] >= 1_000_000 and "test_profiling" in most[0][0].file
    assert kept and not tracemalloc.is_tracing()


async def test_tasks_are_shown_by_what_they_await_and_since_when() -> None:
    async def inner() -> None:
        await asyncio.Event().wait()

    async def outer() -> None:
        await inner()

    waiting = [asyncio.create_task(outer(), name=f"worker-{n}") for n in range(30)]
    await CLOCK.sleep(0)
    tasks = Tasks(CLOCK)
    shown = tasks.describe()
    assert "30 at the same place: worker-0" in shown and "…" in shown
    assert shown.index("inner") < shown.index("outer"), "innermost first"
    assert "here for at least" not in shown
    await CLOCK.sleep(0.15)
    assert "worker-0 (here for at least 0." in tasks.describe()
    assert (30,) in tasks.profile().samples.values()
    for task in waiting:
        task.cancel()
    assert "describe" in threads.describe()


@pytest.mark.parametrize("closely", [False, True])
async def test_a_loop_that_stands_still_is_measured_and_told_in_what(
    closely: bool, caplog: pytest.LogCaptureFixture
) -> None:
    registry = CollectorRegistry()
    stalls = Stalls(clock=CLOCK, registry=registry, closely=closely)
    with caplog.at_level(logging.WARNING), stalls.watched():
        await CLOCK.sleep(0.2)
        burn(0.8)
        await CLOCK.sleep(0.2)
    line = next(m for m in caplog.messages if "burn" in m)
    assert "the event loop stood still for" in line and "on the CPU" in line
    assert any("burn" in stack[0].function for stack in stalls.profile().samples if stack)
    late = registry.get_sample_value("mcm_event_loop_lag_seconds_sum")
    assert late is not None and late >= 0.6
    assert "event loop watch" not in {t.name for t in threading.enumerate() if not t.daemon}
