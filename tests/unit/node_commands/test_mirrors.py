"""What a drain by hand mirrors: no more than it needs, and it knows when that is of the past."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime

import pytest

from mcm.api.core import NODES, PODS
from mcm.api.meta import JSONObject
from mcm.client.client import Client
from mcm.client.errors import Forbidden
from mcm.client.transport import Response
from mcm.clock import LoopClock
from mcm.node_commands.mirrors import Mirrors
from mcm.sandbox.apiserver.server import ApiServer
from mcm.simulation.virtualtime import run_virtual
from tests.unit.node_commands.shell import Recorded, create_with_status, namespace, node
from tests.unit.node_commands.workload import HERE, budget, pod, volume


class Bench:
    def __init__(self, group: asyncio.TaskGroup) -> None:
        self.clock = LoopClock(datetime(2026, 1, 1, tzinfo=UTC))
        self.server = ApiServer(clock=self.clock, random=random.Random(1))
        self.transport = Recorded(self.server)
        self.changes = 0
        self.client = Client(self.transport, clock=self.clock, budget=1)
        self.mirrors = Mirrors(
            self.client, HERE, clock=self.clock, changed=self._changed, group=group
        )

    def _changed(self) -> None:
        self.changes += 1

    async def apply(self, *manifests: JSONObject) -> None:
        await create_with_status(self.server, manifests)

    def pods(self) -> set[str]:
        return {found.metadata.name for found in self.mirrors.stores.pods.list()}

    def watched(self) -> set[str]:
        return {path.rpartition("/")[2] for _, path in self.transport.asked}


def on_bench(scenario: Callable[[Bench], Coroutine[None, None, None]]) -> None:
    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            bench = Bench(group)
            await bench.apply(namespace("ns"), namespace("other"), node(), node("node-2"))
            await scenario(bench)
            bench.mirrors.stop()

    run_virtual(main)


def elsewhere(name: str, **options: object) -> JSONObject:
    made = pod(name, **options)  # type: ignore[arg-type]
    made["spec"]["nodeName"] = "node-2"  # type: ignore[index]
    return made


def test_pods_of_other_nodes_are_not_mirrored_unless_claims_are_in_use() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(pod("here"), elsewhere("there"), budget("b", allowed=1))
        await bench.mirrors.start()
        assert bench.pods() == {"here"}
        assert [n.metadata.name for n in bench.mirrors.stores.nodes.list()] == [HERE]
        assert len(bench.mirrors.stores.budgets.list()) == 1
        assert "volumeattachments" not in bench.watched()
        await bench.apply(*volume("one"), pod("db", claim="one"))
        await bench.clock.sleep(1)
        bench.mirrors.widen()
        await bench.clock.sleep(1)
        assert bench.pods() == {"here", "db", "there"}
        assert len(bench.mirrors.stores.attachments.list()) == 1
        assert len(bench.mirrors.stores.claims.list()) == 1

    on_bench(scenario)


def test_a_pod_that_two_mirrors_hold_goes_once_and_its_successor_comes() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(*volume("one"), pod("db", claim="one"))
        await bench.mirrors.start()
        await bench.client.delete(PODS, "db", namespace="ns", grace_period_seconds=0)
        await bench.apply(elsewhere("db", claim="one"))
        await bench.clock.sleep(1)
        (found,) = bench.mirrors.stores.pods.list()
        assert found.spec.node_name == "node-2"
        await bench.client.delete(PODS, "db", namespace="ns", grace_period_seconds=0)
        await bench.clock.sleep(1)
        assert bench.pods() == set()

    on_bench(scenario)


def test_what_is_heard_wakes_the_drain() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(pod("here"))
        await bench.mirrors.start()
        before = bench.changes
        await bench.client.patch(NODES, HERE, {"spec": {"unschedulable": True}})
        await bench.clock.sleep(1)
        assert bench.changes > before

    on_bench(scenario)


def test_a_mirror_that_hears_nothing_is_of_the_past() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(*volume("one"), pod("db", claim="one"))
        await bench.mirrors.start()
        await bench.clock.sleep(300)
        staleness = bench.mirrors.staleness
        assert [staleness.pods(), staleness.budgets(), staleness.volumes()] == ["", "", ""]
        bench.mirrors.stop()
        await bench.clock.sleep(200)
        assert staleness.pods() and staleness.budgets() and staleness.volumes()

    on_bench(scenario)


def test_who_may_not_look_is_told_at_once() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(pod("here"))
        bench.transport.refusals["poddisruptionbudgets"] = Response(
            403, {}, b'{"kind":"Status","reason":"Forbidden","message":"no list","code":403}'
        )
        with pytest.raises(Forbidden, match="no list"):
            await bench.mirrors.start()

    on_bench(scenario)
