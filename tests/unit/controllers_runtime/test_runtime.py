"""The worker loop: what becomes of a key after each outcome, and how a controller ends."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from itertools import pairwise
from typing import TypeVar, cast

import pytest
from prometheus_client import CollectorRegistry

from mcm.api.core import NODES
from mcm.client.errors import (
    AlreadyExists,
    Conflict,
    ConnectionRefused,
    ProtocolError,
    TooManyRequests,
)
from mcm.client.requests import Call
from mcm.client.transport import Response
from mcm.client.verbs import ObjectWriter
from mcm.clock import LoopClock
from mcm.controllers.runtime import (
    DONE,
    Controller,
    Failure,
    Outcome,
    TerminalError,
    WorkerEnded,
    classify,
    earliest,
    one_line,
    retry_after,
)
from mcm.controllers.runtime_metrics import ControllerMetrics
from mcm.controllers.write_guard import NotConverging, WriteGuard
from mcm.driver.codes import Code
from mcm.driver.errors import DriverError
from mcm.leaderelection import LeadershipLost
from mcm.simulation.virtualtime import run_virtual
from mcm.workqueue import ExponentialLimiter, WorkQueue

CLOCK = LoopClock(datetime(2026, 1, 1, tzinfo=UTC))

R = TypeVar("R")
Reconcile = Callable[[str], Awaitable[Outcome]]


def virtual(test: Callable[..., Coroutine[object, object, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(**fixtures: object) -> None:
        run_virtual(lambda: test(**fixtures))

    return run


def new_queue() -> WorkQueue[str]:
    return WorkQueue("q", clock=CLOCK, limiter=ExponentialLimiter(1.0, 60.0))


class Script:
    """A reconcile that answers each call by the next entry (the last one stays), and notes when
    it was called."""

    def __init__(self, *answers: Outcome | Exception) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[str, float]] = []

    async def __call__(self, key: str) -> Outcome:
        self.calls.append((key, CLOCK.monotonic()))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def times(self) -> list[float]:
        return [when for _, when in self.calls]


async def run_for(
    seconds: float, queue: WorkQueue[str], reconcile: Reconcile, *, workers: int = 1
) -> CollectorRegistry:
    """Run a controller for that long, then shut it down and wait for it."""
    registry = CollectorRegistry()
    controller = Controller(
        "c",
        queue,
        reconcile,
        workers=workers,
        clock=CLOCK,
        metrics=ControllerMetrics(registry),
    )
    running = asyncio.create_task(controller.run())
    await CLOCK.sleep(seconds)
    queue.shut_down()
    await running
    return registry


def results(registry: CollectorRegistry) -> dict[str, float]:
    """The results that occurred, with their counts."""
    found = {}
    for family in registry.collect():
        for sample in family.samples:
            if sample.name == "mcm_controller_reconcile_total" and sample.value:
                found[sample.labels["result"]] = sample.value
    return found


@virtual
async def test_a_key_that_is_done_is_not_looked_at_again() -> None:
    queue, script = new_queue(), Script(DONE)
    queue.add("a")
    registry = await run_for(1000, queue, script)
    assert script.calls == [("a", 0.0)]
    assert results(registry) == {"success": 1}


@virtual
async def test_an_outcome_brings_the_key_back_after_its_time() -> None:
    queue, script = new_queue(), Script(Outcome(after=30), Outcome(after=5), DONE)
    queue.add("a")
    registry = await run_for(1000, queue, script)
    assert script.times == [0, 30, 35]
    assert results(registry) == {"success": 1, "requeue_after": 2}


@virtual
async def test_an_outcome_of_now_cannot_make_a_worker_spin() -> None:
    queue, script = new_queue(), Script(Outcome(after=0.0))
    queue.add("a")
    await run_for(1, queue, script)
    assert 90 <= len(script.calls) <= 101


@virtual
async def test_success_clears_the_failures() -> None:
    queue = new_queue()
    script = Script(ProtocolError("x"), ProtocolError("x"), Outcome(after=10), ProtocolError("x"))
    queue.add("a")
    await run_for(14.5, queue, script)
    assert script.times == [0, 1, 3, 13, 14], "1, 2 | 10 | 1"


@pytest.mark.parametrize("error", [Conflict(409, "Conflict"), AlreadyExists(409, "AlreadyExists")])
def test_a_conflict_is_retried_quietly(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    @virtual
    async def scenario() -> None:
        queue, script = new_queue(), Script(error, DONE)
        queue.add("a")
        with caplog.at_level(logging.INFO):
            registry = await run_for(100, queue, script)
        assert script.times == [0, 1]
        assert results(registry) == {"conflict": 1, "success": 1}
        assert errors_of(registry) == 0

    scenario()
    assert not caplog.records


def test_a_lost_lease_is_no_error_of_a_key(caplog: pytest.LogCaptureFixture) -> None:
    """Every key fails by it, and the process says once why it ends."""

    @virtual
    async def scenario() -> None:
        queue, script = new_queue(), Script(LeadershipLost("held by another"), DONE)
        queue.add("a")
        with caplog.at_level(logging.INFO):
            registry = await run_for(100, queue, script)
        assert script.times == [0, 1]
        assert results(registry) == {"error": 1, "success": 1}
        assert errors_of(registry) == 0

    scenario()
    assert not caplog.records


def errors_of(registry: CollectorRegistry) -> float | None:
    return registry.get_sample_value("mcm_controller_reconcile_errors_total", {"controller": "c"})


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefused("no"),
        DriverError(Code.UNAVAILABLE, "no"),
        TimeoutError(),
        ConnectionResetError("no"),
        ExceptionGroup("several", [ConnectionRefused("no"), Conflict(409)]),
    ],
)
def test_an_expected_error_costs_one_line_and_a_retry(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    @virtual
    async def scenario() -> None:
        queue, script = new_queue(), Script(error, DONE)
        queue.add("ns/a")
        registry = await run_for(100, queue, script)
        assert script.times == [0, 1]
        assert results(registry) == {"error": 1, "success": 1}
        assert errors_of(registry) == 1

    scenario()
    (record,) = caplog.records
    assert record.levelname == "WARNING" and record.exc_info is None
    assert "ns/a" in record.getMessage() and "\n" not in record.getMessage()


@virtual
async def test_the_servers_retry_after_is_a_floor() -> None:
    queue, script = new_queue(), Script(TooManyRequests(429, retry_after=17), DONE)
    queue.add("a")
    await run_for(100, queue, script)
    assert script.times == [0, 17]


@virtual
async def test_an_error_is_retried_for_ever() -> None:
    queue, script = new_queue(), Script(ConnectionRefused("no"))
    queue.add("a")
    await run_for(24 * 3600, queue, script)
    assert len(script.calls) > 1000
    assert script.times[-1] - script.times[-2] == 60.0


@virtual
async def test_a_terminal_error_waits_for_a_change(caplog: pytest.LogCaptureFixture) -> None:
    queue, script = new_queue(), Script(TerminalError("no such class"), DONE)
    queue.add("a")

    async def change() -> None:
        await CLOCK.sleep(500)
        queue.add("a")

    changing = asyncio.create_task(change())
    registry = await run_for(1000, queue, script)
    await changing
    assert script.times == [0, 500]
    assert results(registry) == {"terminal": 1, "success": 1}
    assert errors_of(registry) == 1
    assert [r.levelname for r in caplog.records] == ["WARNING"]


@virtual
async def test_an_unexpected_error_is_told_with_its_traceback_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue = new_queue()
    script = Script(*[KeyError("x")] * 3, IndexError("y"), DONE, IndexError("y"), DONE)
    queue.add("a")
    adding = asyncio.get_running_loop().call_later(500, queue.add, "a")
    registry = await run_for(1000, queue, script)
    adding.cancel()
    assert [(r.levelname, bool(r.exc_info)) for r in caplog.records] == [
        ("ERROR", True),
        ("WARNING", False),
        ("WARNING", False),
        ("ERROR", True),  # another class
        ("ERROR", True),  # after a success
    ]
    assert results(registry) == {"error": 5, "success": 2}


@pytest.mark.parametrize("answer", [None, Outcome(after=float("nan"))])
def test_a_nonsensical_outcome_is_an_error_and_kills_no_worker(answer: Outcome) -> None:
    @virtual
    async def scenario() -> None:
        queue, script = new_queue(), Script(answer, DONE)
        queue.add("a")
        registry = await run_for(100, queue, script)
        assert script.times == [0, 1]
        assert results(registry) == {"error": 1, "success": 1}

    scenario()


def test_what_came_instead_of_an_outcome_is_named(caplog: pytest.LogCaptureFixture) -> None:
    @virtual
    async def scenario() -> None:
        queue, script = new_queue(), Script(*[cast("Outcome", None)] * 3, DONE)
        queue.add("ns/a")
        await run_for(100, queue, script)
        assert script.times == [0, 1, 3, 7], "slowed down like any failure"

    scenario()
    assert "ns/a" in caplog.text
    assert "TypeError: the reconcile returned NoneType, not an Outcome" in caplog.text


@virtual
async def test_a_cancellation_that_escapes_a_reconcile_is_an_error_like_any_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A driver awaits a task of its own that something cancelled: nobody cancelled the worker."""
    queue = new_queue()
    calls: list[tuple[str, float]] = []

    async def reconcile(key: str) -> Outcome:
        calls.append((key, CLOCK.monotonic()))
        if key == "stray":
            its_own = asyncio.ensure_future(asyncio.Event().wait())
            asyncio.get_running_loop().call_soon(its_own.cancel)
            await its_own
        return DONE

    queue.add("stray")
    later = asyncio.get_running_loop().call_later(50, queue.add, "fine")
    registry = await run_for(60, queue, reconcile)
    later.cancel()
    assert calls == [
        *(("stray", when) for when in (0, 1, 3, 7, 15, 31)),
        ("fine", 50),
    ], "one worker: it survived each"
    assert results(registry) == {"error": 6, "success": 1}
    assert [(r.levelname, bool(r.exc_info)) for r in caplog.records] == [
        ("ERROR", True),
        *[("WARNING", False)] * 5,
    ]
    assert "StrayCancellation" in caplog.text


@virtual
async def test_a_controller_that_is_told_to_end_does_so_amid_stray_cancellations() -> None:
    queue = new_queue()

    async def reconcile(key: str) -> Outcome:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.gather(asyncio.create_task(_cancelled_from_within()))
        return DONE

    queue.add("a")
    running = asyncio.create_task(Controller("c", queue, reconcile, workers=2, clock=CLOCK).run())
    await CLOCK.sleep(1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert queue.processing == ()


async def _cancelled_from_within() -> None:
    raise asyncio.CancelledError


class Catastrophe(BaseException):
    """No Exception: no retry is meant for it."""


@virtual
async def test_what_no_retry_is_meant_for_ends_the_controller() -> None:
    queue = new_queue()

    async def reconcile(key: str) -> Outcome:
        if key == "bad":
            raise Catastrophe("no memory")
        return DONE

    queue.add("bad")
    running = asyncio.create_task(Controller("c", queue, reconcile, workers=3, clock=CLOCK).run())
    done, _ = await asyncio.wait({running}, timeout=10)
    assert done, "the controller went on without one of its workers"
    error = running.exception()
    assert isinstance(error, BaseExceptionGroup)
    assert error.subgroup(Catastrophe) is not None
    assert queue.processing == ()


@virtual
async def test_a_worker_that_somebody_else_cancels_ends_the_controller() -> None:
    """asyncio's task group ignores a cancelled child: the controller must not."""
    queue = new_queue()

    async def reconcile(key: str) -> Outcome:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await CLOCK.sleep(1)
        return DONE

    queue.add("a")
    running = asyncio.create_task(Controller("c", queue, reconcile, workers=3, clock=CLOCK).run())
    done, _ = await asyncio.wait({running}, timeout=10)
    assert done, "the controller went on without one of its workers"
    error = running.exception()
    assert isinstance(error, ExceptionGroup)
    ended = error.subgroup(WorkerEnded)
    assert ended is not None and "c-worker-0" in str(ended.exceptions[0])


@virtual
async def test_an_error_of_one_key_disturbs_no_other() -> None:
    queue = new_queue()
    done: list[str] = []

    async def reconcile(key: str) -> Outcome:
        if key == "bad":
            raise ZeroDivisionError
        done.append(key)
        return DONE

    for key in ("bad", "a", "b"):
        queue.add(key)
    await run_for(10, queue, reconcile)
    assert done == ["a", "b"]


@virtual
async def test_a_retry_keeps_the_priority_of_its_key() -> None:
    queue, script = new_queue(), Script(ConnectionRefused("no"), DONE)
    queue.add("a", priority=-100)
    seen: list[int] = []

    async def reconcile(key: str) -> Outcome:
        seen.append(queue.priority(key))
        return await script(key)

    await run_for(10, queue, reconcile)
    assert seen == [-100, -100]


@virtual
async def test_workers_run_side_by_side_but_never_on_one_key() -> None:
    queue = new_queue()
    running: set[str] = set()
    most = 0

    async def reconcile(key: str) -> Outcome:
        nonlocal most
        assert key not in running
        running.add(key)
        most = max(most, len(running))
        queue.add(key) if CLOCK.monotonic() < 50 else None
        await CLOCK.sleep(1)
        running.discard(key)
        return DONE

    for n in range(10):
        queue.add(f"k{n}")
    await run_for(100, queue, reconcile, workers=4)
    assert most == 4


@virtual
async def test_shutdown_finishes_what_is_in_flight_and_ready() -> None:
    queue = new_queue()
    done: list[str] = []

    async def reconcile(key: str) -> Outcome:
        await CLOCK.sleep(2)
        done.append(key)
        return Outcome(after=1)

    for key in "abc":
        queue.add(key)
    await run_for(1, queue, reconcile)
    assert done == ["a", "b", "c"]
    assert CLOCK.monotonic() == 6


@virtual
async def test_shutdown_does_not_wait_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    queue = new_queue()
    ended = []

    async def reconcile(key: str) -> Outcome:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(key)
        return DONE

    queue.add("stuck")
    controller = Controller(
        "c", queue, reconcile, workers=2, clock=CLOCK, slow_after=1e6, stop_grace=20
    )
    running = asyncio.create_task(controller.run())
    await CLOCK.sleep(1)
    queue.shut_down()
    await running
    assert CLOCK.monotonic() == 21
    assert ended == ["stuck"]
    assert "stuck" in caplog.text
    assert queue.processing == ()


@virtual
async def test_cancelling_a_controller_cancels_its_reconciles() -> None:
    queue = new_queue()
    ended = []

    async def reconcile(key: str) -> Outcome:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(key)
        return DONE

    queue.add("a")
    queue.add("b")
    running = asyncio.create_task(Controller("c", queue, reconcile, workers=3, clock=CLOCK).run())
    await CLOCK.sleep(1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended == ["a", "b"]
    assert queue.processing == ()


@virtual
async def test_a_slow_reconcile_is_reported_by_name(caplog: pytest.LogCaptureFixture) -> None:
    queue = new_queue()

    async def reconcile(key: str) -> Outcome:
        await CLOCK.sleep(100 if key == "slow" else 29)
        return DONE

    queue.add("slow")
    queue.add("fine")
    registry = await run_for(200, queue, reconcile, workers=2)
    messages = [r.getMessage() for r in caplog.records if "still runs" in r.getMessage()]
    assert messages == [
        "c slow: reconcile still runs after 30 s",
        "c slow: reconcile still runs after 60 s",
    ], "then not before 120 s"
    assert (
        registry.get_sample_value("mcm_controller_slow_reconciles_total", {"controller": "c"}) == 1
    )


@virtual
async def test_metrics_know_the_workers_and_the_time() -> None:
    registry = CollectorRegistry()
    queue = new_queue()

    def value(name: str) -> float | None:
        return registry.get_sample_value(f"mcm_controller_{name}", {"controller": "c"})

    async def reconcile(key: str) -> Outcome:
        await CLOCK.sleep(3)
        return DONE

    controller = Controller(
        "c", queue, reconcile, workers=5, clock=CLOCK, metrics=ControllerMetrics(registry)
    )
    assert value("max_workers") == 5 and value("active_workers") == 0
    running = asyncio.create_task(controller.run())
    queue.add("a")
    queue.add("b")
    await CLOCK.sleep(1)
    assert value("active_workers") == 2
    queue.shut_down()
    await running
    assert value("active_workers") == 0
    assert value("reconcile_duration_seconds_sum") == 6


def test_a_controller_without_workers_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one worker"):
        Controller("c", new_queue(), Script(DONE), workers=0, clock=CLOCK)


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (Conflict(409), Failure.CONFLICT),
        (TerminalError("x"), Failure.TERMINAL),
        (ProtocolError("x"), Failure.EXPECTED),
        (TimeoutError(), Failure.EXPECTED),
        (FileNotFoundError("x"), Failure.UNEXPECTED),
        (ValueError("x"), Failure.UNEXPECTED),
        (LeadershipLost("x"), Failure.NOT_LEADING),
        (ExceptionGroup("g", [LeadershipLost("x"), Conflict(409)]), Failure.NOT_LEADING),
        (ExceptionGroup("g", [LeadershipLost("x"), ValueError("x")]), Failure.UNEXPECTED),
        (ExceptionGroup("g", [Conflict(409), TerminalError("x")]), Failure.CONFLICT),
        (ExceptionGroup("g", [Conflict(409), TimeoutError()]), Failure.EXPECTED),
        (
            ExceptionGroup("g", [TimeoutError(), ExceptionGroup("h", [ValueError("x")])]),
            Failure.UNEXPECTED,
        ),
    ],
)
def test_errors_are_told_apart(error: Exception, failure: Failure) -> None:
    assert classify(error) is failure


def test_the_longest_retry_after_of_a_group_counts() -> None:
    group = ExceptionGroup(
        "g",
        [TooManyRequests(429, retry_after=3), TooManyRequests(429, retry_after=8), Conflict(409)],
    )
    assert retry_after(group) == 8
    assert retry_after(ValueError()) == 0


def test_of_several_outcomes_the_soonest_counts() -> None:
    soon, late = Outcome(5, "soon"), Outcome(60, "late")
    assert earliest() == DONE
    assert earliest(DONE, late, soon, DONE) == soon
    assert late.sooner(DONE) == late
    assert soon.sooner(Outcome(5, "other")) == soon


def test_an_error_text_fits_on_one_line() -> None:
    assert one_line(ValueError("a\n  b")) == "ValueError: a b"
    assert one_line(ExceptionGroup("g", [ValueError("a"), KeyError("b")])) == (
        "ValueError: a; KeyError: 'b'"
    )
    assert len(one_line(ValueError("x" * 1000))) == 300


class Obliging(ObjectWriter):
    """A server that patches whatever it is told to."""

    def __init__(self) -> None:
        self.made: list[float] = []

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        self.made.append(CLOCK.monotonic())
        return read(Response(200, {}, b'{"metadata": {"name": "n", "uid": "u"}}'))


class Reverted:
    """A reconcile whose patch somebody reverts each time."""

    def __init__(self, queue: WorkQueue[str], *, swallow: bool = False) -> None:
        self.server = Obliging()
        self._writer = WriteGuard(self.server, clock=CLOCK)
        self._queue = queue
        self._swallow = swallow

    async def __call__(self, key: str) -> Outcome:
        try:
            await self._writer.patch(NODES, "n", {"metadata": {"labels": {"claim": key}}})
        except NotConverging:
            if not self._swallow:
                raise
            return DONE
        asyncio.get_running_loop().call_later(0.01, self._queue.add, key)
        return DONE


@pytest.mark.parametrize("swallow", [False, True])
def test_a_key_whose_writes_lead_nowhere_is_slowed_down_and_told(*, swallow: bool) -> None:
    @virtual
    async def scenario() -> None:
        queue, registry = new_queue(), CollectorRegistry()
        reverted = Reverted(queue, swallow=swallow)
        told: list[tuple[str, str, str]] = []
        controller = Controller(
            "c",
            queue,
            reverted,
            workers=2,
            clock=CLOCK,
            metrics=ControllerMetrics(registry),
            warn=lambda *warning: told.append(warning),
        )
        running = asyncio.create_task(controller.run())
        queue.add("ns/a")
        await CLOCK.sleep(600)
        queue.shut_down()
        await running
        assert len(reverted.server.made) == 16
        assert [round(b - a) for a, b in pairwise(reverted.server.made)][-4:] == [32, 64, 128, 256]
        assert len(told) == 10, "once for each time that it was made in vain"
        key, reason, note = told[-1]
        assert (key, reason) == ("ns/a", "NotConverging")
        assert "metadata.labels.claim of Node n 16 times since 00:00:00 UTC" in note
        name = "mcm_controller_repeated_writes_total"
        assert registry.get_sample_value(name, {"controller": "c"}) == 10

    scenario()


@virtual
async def test_what_is_written_outside_a_reconcile_is_never_held_back() -> None:
    server = Obliging()
    writer = WriteGuard(server, clock=CLOCK)
    for _ in range(1000):
        await writer.patch(NODES, "n", {"spec": {}})
    assert len(server.made) == 1000
