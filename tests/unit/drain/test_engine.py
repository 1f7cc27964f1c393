"""Passes of the engine over mirrors that a test fills, with a server that a test plays."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec
import pytest

from mcm.api.core import Node, NodeCondition, NodeSpec, NodeStatus, Pod
from mcm.api.meta import ObjectMeta
from mcm.client.errors import Cause as StatusCause
from mcm.client.errors import KubeError, NotSent, TooManyRequests
from mcm.client.requests import Call
from mcm.client.transport import Response, StreamResponse
from mcm.client.verbs import ObjectClient
from mcm.drain.budgets import Disruptions
from mcm.drain.engine import DrainEngine
from mcm.drain.execution import PodRequests
from mcm.drain.memory import DrainMemory
from mcm.drain.mode import Force
from mcm.drain.observation import DrainStores, Observation, Staleness
from mcm.drain.pass_turns import PassTurns
from mcm.drain.record import Record
from mcm.drain.request import DrainRequest, Limits, Purpose
from mcm.drain.result import Cause, Done, DrainResult, Quiet, TimedOut, Working
from mcm.informers import Store
from tests.unit.drain.pods import NOW, budget, condition, pod

R = TypeVar("R")


class Clock:
    """Moves when a test says so."""

    def __init__(self) -> None:
        self.passed = 0.0

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.passed)

    def monotonic(self) -> float:
        return self.passed

    async def sleep(self, seconds: float) -> None:
        self.passed += seconds


class Server(ObjectClient):
    """Answers requests for pods as it was told, and takes those away that it accepts."""

    def __init__(self, pods: Store[Pod], clock: Clock) -> None:
        self.pods = pods
        self.clock = clock
        self.answers: dict[str, KubeError] = {}
        self.asked: list[tuple[str, str, int | None]] = []
        self.silent = False
        self._version = 1000

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        options = json.loads(call.body)
        grace = options.get("deleteOptions", options).get("gracePeriodSeconds")
        verb = "evict" if "eviction" in (call.subresource or "") else "delete"
        self.asked.append((verb, call.name, grace))
        if call.name in self.answers:
            raise self.answers[call.name]
        known = self.pods.get(f"default/{call.name}")
        if known is not None and not self.silent:
            self._version += 1
            ends = self.clock.now() + timedelta(seconds=30 if grace is None else grace)
            meta = msgspec.structs.replace(
                known.metadata, deletion_timestamp=ends, resource_version=str(self._version)
            )
            self.pods.put(msgspec.structs.replace(known, metadata=meta))
        return read(Response(200, {}, b'{"kind":"Status"}'))

    def follow(
        self, call: Call, *, read_timeout: float | None
    ) -> AbstractAsyncContextManager[StreamResponse]:
        raise AssertionError("nobody watches here")


class World:
    """One Node with pods, and an engine."""

    def __init__(self, *pods: Pod, conditions: tuple[NodeCondition, ...] = ()) -> None:
        self.clock = Clock()
        self.stores = DrainStores(
            nodes=Store(),
            pods=Store(),
            budgets=Store(),
            claims=Store(),
            volumes=Store(),
            attachments=Store(),
        )
        self.stores.nodes.put(
            Node(
                metadata=ObjectMeta(name="node", uid="n", resource_version="1"),
                spec=NodeSpec(unschedulable=True),
                status=NodeStatus(conditions=conditions),
            )
        )
        for index, subject in enumerate(pods):
            self.put(subject, index + 1)
        self.stale = ""
        self.server = Server(self.stores.pods, self.clock)
        disruptions = Disruptions(
            pods=self.stores.pods.get, budgets=self.stores.budgets.get, random=random.Random(1)
        )
        self.woken: list[str] = []
        self.engine = DrainEngine(
            Observation(self.stores, Staleness(pods=lambda: self.stale)),
            PodRequests(
                self.server,
                disruptions,
                monotonic=self.clock.monotonic,
                random=random.Random(1),
            ),
            clock=self.clock,
            disruptions=disruptions,
            turns=PassTurns(1, wake=self.woken.append),
        )
        self.memory = DrainMemory(random.Random(1))
        self.record = Record()
        self.request = DrainRequest(
            node="node",
            start=NOW,
            deadline=NOW + timedelta(hours=2),
            purpose=Purpose.DELETION,
            limits=Limits(),
        )

    def put(self, subject: Pod, version: int = 500) -> None:
        meta = msgspec.structs.replace(subject.metadata, resource_version=str(version))
        self.stores.pods.put(msgspec.structs.replace(subject, metadata=meta))

    def end(self, name: str) -> None:
        known = self.stores.pods.get(f"default/{name}")
        assert known is not None
        self.stores.pods.remove(known.metadata.key, uid=known.metadata.uid, version="9999")

    async def look(self, *, after: float = 0.0) -> DrainResult:
        self.clock.passed += after
        result, self.record = await self.engine.pass_over(self.request, self.record, self.memory)
        return result

    def names(self) -> list[str]:
        return [name for _, name, _ in self.server.asked]


async def test_pods_are_asked_once_and_waited_for_until_they_are_gone() -> None:
    world = World(pod("a"), pod("b"))
    first = await world.look()
    assert isinstance(first, Working)
    assert {s.cause for s in first.pods} == {Cause.LEAVING}
    await world.look(after=1)
    assert sorted(world.names()) == ["a", "b"]
    world.end("a")
    world.end("b")
    assert await world.look(after=1) == Done()


async def test_an_empty_node_is_done_at_once_unless_a_pod_awaits_the_scheduler() -> None:
    assert await World().look() == Done()
    world = World()
    unplaced = pod("coming", phase="Pending")
    world.put(msgspec.structs.replace(unplaced, spec=type(unplaced.spec)()))
    assert await world.look() == Quiet(1.0)
    world.put(pod("coming"), 600)
    assert isinstance(await world.look(after=0.5), Working)
    assert world.names() == ["coming"]


async def test_a_second_after_the_mark_nothing_is_on_its_way_any_more() -> None:
    world = World()
    unplaced = pod("pending", phase="Pending")
    world.put(msgspec.structs.replace(unplaced, spec=type(unplaced.spec)()))
    assert await world.look() == Quiet(1.0)
    assert await world.look(after=1.0) == Done()


async def test_what_cannot_be_observed_is_not_empty() -> None:
    world = World()
    world.stale = "pods cannot be watched"
    blind = await world.look()
    assert blind == Working(look_again=10.0, blind="pods cannot be watched")
    world.stale = ""
    assert await world.look(after=1200) == Done()


async def test_the_deadline_comes_though_nothing_can_be_observed() -> None:
    world = World(pod("a"))
    world.stale = "pods cannot be watched"
    blind = await world.look(after=7195)
    assert isinstance(blind, Working) and blind.look_again == pytest.approx(5.0, abs=0.01)
    forced = await world.look(after=5.001)
    assert forced == Done(Force.TIMEOUT)
    assert world.server.asked == [("delete", "a", 1)]


async def test_force_waits_for_nothing_and_names_whom_it_could_not_take() -> None:
    world = World(pod("a"), pod("b"))
    world.request = changed(world.request, force_asked=True)
    world.server.answers["b"] = NotSent("no route")
    result = await world.look()
    assert isinstance(result, Done)
    assert result.force is Force.LABEL
    assert result.refusals.startswith("pod default/b: ")


async def test_a_silent_kubelet_makes_grace_zero() -> None:
    silent = condition("Ready", "Unknown", NOW - timedelta(minutes=6))
    world = World(pod("a"), conditions=(silent,))
    assert await world.look() == Done(Force.NODE_NOT_READY)
    assert world.server.asked == [("delete", "a", 0)]


async def test_who_may_not_force_is_told_that_force_is_due() -> None:
    world = World(pod("a", deleted=NOW + timedelta(hours=3)))
    world.request = changed(world.request, may_force=False)
    result = await world.look(after=7201)
    assert isinstance(result, TimedOut)
    assert [s.pod for s in result.pods] == ["default/a"]
    assert world.server.asked == []


async def test_a_budget_that_refuses_though_its_mirror_allows_is_left_alone_for_a_while() -> None:
    world = World(pod("a"))
    world.stores.budgets.put(budget("b", allowed=1))
    held = StatusCause("DisruptionBudget", "no", "")
    world.server.answers["a"] = TooManyRequests(429, causes=(held,))
    first = await world.look()
    assert isinstance(first, Working)
    assert first.pods[0].cause is Cause.HELD_BY_BUDGET
    assert world.record.held_since == {"uid-a": NOW}
    assert world.memory.watched.budgets == {"default/b"}
    await world.look(after=10)
    assert world.names() == ["a"]
    del world.server.answers["a"]
    await world.look(after=11)
    assert world.names() == ["a", "a"]


async def test_a_busy_server_costs_nobody_his_patience() -> None:
    world = World(pod("a"))
    world.server.answers["a"] = TooManyRequests(429, retry_after=90.0)
    first = await world.look()
    assert isinstance(first, Working)
    assert first.pods[0].cause is Cause.SERVER_BUSY
    # Beyond what the server asked for, spread, so that many drains do not come back at once.
    assert first.look_again is not None and 90.0 <= first.look_again <= 91.0
    assert world.record.held_since == {}
    world.put(pod("b"))
    waiting = await world.look(after=60)
    assert isinstance(waiting, Working)
    assert {standing.cause for standing in waiting.pods} == {Cause.SERVER_BUSY}
    assert world.names() == ["a"]
    del world.server.answers["a"]
    await world.look(after=31)
    assert sorted(world.names()) == ["a", "a", "b"]


async def test_a_pod_is_deleted_when_its_retries_are_over_also_after_a_restart() -> None:
    world = World(pod("a"))
    world.request = changed(world.request, limits=Limits(retries=2))
    world.stores.budgets.put(budget("strict"))
    await world.look()
    world.memory = DrainMemory(random.Random(2))
    late = await world.look(after=39)
    assert isinstance(late, Working) and late.look_again == pytest.approx(1.0, abs=0.01)
    assert world.server.asked == []
    await world.look(after=1.001)
    assert world.server.asked == [("delete", "a", None)]


async def test_who_finds_no_turn_is_woken_when_there_is_one() -> None:
    world = World(pod("a"))
    with world.engine.turns.turn("another node"):
        result = await world.look()
        assert isinstance(result, Working)
        assert result.look_again is not None and result.look_again <= 1.0
        assert world.server.asked == []
    assert world.woken == ["node"]
    await world.look()
    assert world.names() == ["a"]


async def test_an_eviction_that_no_watch_tells_of_is_not_asked_twice_in_a_row() -> None:
    world = World(pod("a"))
    world.server.silent = True
    for _ in range(5):
        await world.look(after=20)
    assert world.names() == ["a"]


def changed(request: DrainRequest, **changes: object) -> DrainRequest:
    return replace(request, **changes)  # type: ignore[arg-type]
