"""From the change that woke a key to the lines of its reconcile; and reconciles that never end."""

from __future__ import annotations

import asyncio
import io
import logging
import random
from collections.abc import Iterator

import pytest

from mcm import correlation, logs
from mcm.api.machine import MACHINES, Machine
from mcm.api.meta import ObjectMeta
from mcm.client.client import Client
from mcm.client.errors import ServerError
from mcm.client.transport import Request, Response, Transport
from mcm.clock import SystemClock
from mcm.controllers.enqueue import enqueue_changes
from mcm.controllers.runtime import DONE, STUCK_AFTER, Controller, Outcome
from mcm.controllers.write_guard import progressed
from mcm.informers import Change, Informer
from mcm.workqueue import WorkQueue
from tests.unit.endpoints.test_authorization import Moments

CLOCK = SystemClock()


class Server(Transport):
    async def request(self, request: Request) -> Response:
        return Response(200, {}, b'{"metadata":{"name":"m-1","namespace":"default"}}')

    def stream(self, request: Request) -> None:  # type: ignore[override]
        raise AssertionError("nothing is watched here")

    async def aclose(self) -> None:
        pass


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    written = io.StringIO()
    yield written
    root.handlers, root.level = handlers, level


def a_machine(version: str) -> Machine:
    return Machine(metadata=ObjectMeta(name="m-1", namespace="default", resource_version=version))


class Field:
    def __init__(self, outcomes: list[Outcome | Exception]) -> None:
        self.queue: WorkQueue[str] = WorkQueue("machine", clock=CLOCK)
        self.client = Client(Server(), clock=CLOCK, random=random.Random(1))
        self.informer = Informer(self.client, MACHINES, clock=CLOCK)
        self.outcomes = outcomes
        self.taken: list[str] = []
        enqueue_changes(self.queue, self.informer, lambda change: [change.object.metadata.key])

    async def reconcile(self, key: str) -> Outcome:
        self.taken.append(correlation.current())
        await self.client.get(MACHINES, "m-1", namespace="default")
        outcome = self.outcomes.pop(0)
        if not self.outcomes:
            self.queue.shut_down()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def run(self) -> None:
        async with asyncio.timeout(20):
            await Controller("machine", self.queue, self.reconcile, workers=1, clock=CLOCK).run()


async def test_a_change_names_every_line_of_the_reconcile_that_it_causes(
    stream: io.StringIO,
) -> None:
    logs.configure("text", verbosity=4, clock=CLOCK, stream=stream)
    field = Field([Outcome(0.01, "look again"), ServerError(500), DONE])
    field.informer.deliver((Change(None, a_machine("7")), Change(a_machine("7"), a_machine("8"))))
    await field.run()
    first, timer, retry = field.taken
    assert first == "machines/default/m-1@7"
    assert timer == retry and timer.startswith("machine/default/m-1#")
    lines = stream.getvalue().splitlines()
    of_first = [line for line in lines if line.endswith(f"correlation={first}")]
    said = "\n".join(of_first)
    assert "woken by" in said and "m-1@7 (created)" in said and "m-1@8 (changed)" in said
    assert "GET /apis/machine.sapcloud.io/v1alpha1/namespaces/default/machines/m-1: 200" in said
    assert "reconcile ended" in said
    assert any("woken" in line and line.endswith("@8") for line in lines)
    assert any(f"look again, set by {first}" in line for line in lines)
    assert any("retry after ServerError" in line for line in lines)
    assert correlation.current() == ""


async def test_without_debug_lines_nothing_is_noted(stream: io.StringIO) -> None:
    logs.configure("text", verbosity=0, clock=CLOCK, stream=stream)
    field = Field([DONE])
    field.informer.deliver((Change(None, a_machine("7")),))
    assert field.queue.get_nowait() == "default/m-1"
    assert field.queue.notes("default/m-1") == ()
    field.queue.done("default/m-1")
    field.queue.add("default/m-1")
    await field.run()
    assert field.taken == [""] and stream.getvalue() == ""


def test_only_the_first_few_causes_are_kept_and_go_with_the_key() -> None:
    queue: WorkQueue[str] = WorkQueue("q", clock=CLOCK)
    for number in range(1000):
        queue.note("k", number)
        queue.add("k")
    assert queue.get_nowait() == "k"
    queue.note("k", "later")
    queue.add("k")
    assert queue.notes("k") == tuple(range(8))
    queue.done("k")
    assert queue.notes("k") == ()
    assert queue.get_nowait() == "k" and queue.notes("k") == ("later",)
    queue.shut_down()
    queue.note("k", "too late")
    queue.done("k")


async def test_a_reconcile_that_waits_for_nothing_that_ends_is_stuck_and_a_slow_one_is_not() -> (
    None
):
    clock = Moments()
    queue: WorkQueue[str] = WorkQueue("machine", clock=clock)
    go_on, begun = asyncio.Event(), asyncio.Event()

    async def reconcile(key: str) -> Outcome:
        begun.set()
        await go_on.wait()
        progressed(clock.monotonic())  # as a call does that begins or ends
        go_on.clear()
        begun.set()
        await go_on.wait()
        return DONE

    controller = Controller("machine", queue, reconcile, workers=1, clock=clock)
    running = asyncio.create_task(controller.run())
    queue.add("default/m-1")
    async with asyncio.timeout(20):
        await begun.wait()
        clock.passed = STUCK_AFTER - 1
        assert controller.stuck() == {}
        begun.clear()
        go_on.set()
        await begun.wait()
        clock.passed += STUCK_AFTER - 1
        assert controller.stuck() == {}, "a provider may be slow for as long as it likes"
        clock.passed += 1
        assert controller.stuck() == {
            "machine default/m-1": "its reconcile has got nowhere for 1800 s"
        }
        queue.shut_down()
        go_on.set()
        await running
    assert controller.stuck() == {}
