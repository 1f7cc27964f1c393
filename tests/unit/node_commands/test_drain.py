"""``mcm drain`` in virtual time, against an API server with a kubelet and nobody else."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from mcm.api.core import NODES, POD_DISRUPTION_BUDGETS, PODS, Node
from mcm.api.crds import crd_manifests
from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_DRAIN_RECORD, ANNOTATION_DRAINED_BY
from mcm.client.client import Client
from mcm.client.transport import Transport
from mcm.clock import LoopClock
from mcm.cluster_commands.running import Failed
from mcm.node_commands.clusters import Clusters
from mcm.node_commands.drain import DrainByHand
from mcm.node_commands.drain_mark import DrainMark, mark_of
from mcm.node_commands.forecast import Forecast, forecast
from mcm.node_commands.node_name import Named
from mcm.node_commands.order import Order
from mcm.node_commands.progress import Progress
from mcm.node_commands.reading import read_stores
from mcm.node_commands.uncordon import uncordon
from mcm.sandbox.apiserver.server import ApiServer
from mcm.simulation.faults import FaultPlan
from mcm.simulation.transport import FaultyTransport
from mcm.simulation.virtualtime import run_virtual
from tests.unit.node_commands.shell import Recorded, create_with_status, machine, namespace, node
from tests.unit.node_commands.workload import HERE, Cluster, budget, pod, volume

EPOCH = datetime(2026, 1, 1, 12, tzinfo=UTC)
TIGHT = budget("tight", app="db", allowed=0, healthy=3, desired=3)


@dataclass
class Shown:
    """A display that keeps what it was told."""

    lines: list[str] = field(default_factory=list)
    looks: list[Progress] = field(default_factory=list)

    def say(self, line: str) -> None:
        self.lines.append(line)

    def show(self, progress: Progress) -> None:
        self.looks.append(progress)


class Bench:
    """One server with a Node, and people who drain it. ``asked`` are the requests of theirs."""

    def __init__(self) -> None:
        self.clock = LoopClock(EPOCH)
        self.server = ApiServer(clock=self.clock, random=random.Random(1))
        self.recorded = Recorded(self.server)
        self.transport: Transport = self.recorded
        self.client = Client(Recorded(self.server), clock=self.clock)
        self.world = Cluster(self.client, self.clock)

    async def apply(self, *manifests: JSONObject) -> None:
        await create_with_status(self.server, manifests)

    def clusters(self) -> Clusters:
        client = Client(self.transport, clock=self.clock)
        return Clusters(client, client, "", "default")

    def drain(
        self, order: Order | None = None, *, by: str = "alice@a", take_over: bool = False
    ) -> tuple[DrainByHand, Shown]:
        shown = Shown()
        drain = DrainByHand(
            self.clusters(),
            HERE,
            order or Order(),
            by=by,
            take_over=take_over,
            display=shown,
            clock=self.clock,
            random=random.Random(by),
        )
        return drain, shown

    async def drained(self, order: Order | None = None, **options: object) -> Shown:
        drain, shown = self.drain(order, **options)  # type: ignore[arg-type]
        await drain.run()
        return shown

    async def fails(self, order: Order | None = None, **options: object) -> str:
        drain, _ = self.drain(order, **options)  # type: ignore[arg-type]
        return await failure_of(drain)

    async def plan(self, order: Order | None = None) -> Forecast:
        clusters = self.clusters()
        found = await clusters.node(HERE)
        stores = await read_stores(clusters.target, found)
        return await forecast(found, None, stores, order or Order(), self.clock.now())

    async def node(self) -> Node:
        return await self.client.get(NODES, HERE)

    async def mark(self) -> DrainMark | None:
        return mark_of(await self.node())

    async def pods(self) -> set[str]:
        return {p.metadata.name for p in (await self.client.list_page(PODS)).items}

    def evicted(self) -> list[str]:
        return [
            path.split("/")[-2]
            for method, path in self.recorded.asked
            if method == "POST" and path.endswith("/eviction")
        ]


async def failure_of(drain: DrainByHand) -> str:
    with pytest.raises(Failed) as failure:
        await drain.run()
    return str(failure.value)


def on_bench(scenario: Callable[[Bench], Coroutine[None, None, None]]) -> None:
    async def main() -> None:
        bench = Bench()
        await bench.apply(*crd_manifests(), namespace("ns"), node())
        living = asyncio.create_task(bench.world.run())
        try:
            await scenario(bench)
        finally:
            living.cancel()

    run_virtual(main)


def elapsed(bench: Bench) -> float:
    return (bench.clock.now() - EPOCH).total_seconds()


# ---- to the end ----------------------------------------------------------------------------------


def test_a_node_is_cordoned_and_emptied_and_says_so() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(pod("a", grace=10), pod("b", grace=20), pod("ds", of="DaemonSet"))
        shown = await bench.drained()
        assert await bench.pods() == {"ds"}
        assert shown.lines[0] == "node/node-1 cordoned"
        assert sorted(shown.lines[1:3]) == ["evicting pod ns/a", "evicting pod ns/b"]
        assert shown.lines[-1] == "node/node-1 drained"
        assert [look.gone for look in shown.looks][-1] >= 1
        found = await bench.node()
        assert found.spec.unschedulable
        assert ANNOTATION_DRAIN_RECORD not in found.metadata.annotations
        mark = mark_of(found)
        assert mark is not None and mark.cordoned and not mark.run
        # And what it did can be undone.
        assert str(await uncordon(bench.clusters(), Named(HERE))) == "node/node-1 uncordoned"

    on_bench(scenario)


def test_a_pod_that_was_on_its_way_when_the_node_was_cordoned_goes_as_well() -> None:
    async def scenario(bench: Bench) -> None:
        drain, shown = bench.drain()
        draining = asyncio.create_task(drain.run())
        await bench.clock.sleep(0.7)
        assert not draining.done()
        await bench.apply(pod("late", grace=5))
        await draining
        assert "evicting pod ns/late" in shown.lines and await bench.pods() == set()

    on_bench(scenario)


def test_an_empty_node_is_drained_at_once_and_again() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.drained()
        assert elapsed(bench) < 5
        shown = await bench.drained()
        assert shown.lines == ["node/node-1 already cordoned", "node/node-1 drained"]
        mark = await bench.mark()
        assert mark is not None and mark.cordoned

    on_bench(scenario)


def test_a_cordon_that_was_there_leaves_no_mark_when_all_is_done() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.client.patch(NODES, HERE, {"spec": {"unschedulable": True}})
        await bench.apply(pod("a", grace=5))
        await bench.drained()
        found = await bench.node()
        assert found.spec.unschedulable and ANNOTATION_DRAINED_BY not in found.metadata.annotations

    on_bench(scenario)


@pytest.mark.parametrize(
    "manifests",
    [
        (pod("a", grace=10), pod("b", grace=40)),
        (budget("b", allowed=1), *(pod(f"web-{n}", grace=10 + n) for n in range(4))),
        (
            pod("early", grace=20),
            pod("late", annotations={"machine.sapcloud.io/drain-wave": "5"}),
            pod("last", annotations={"machine.sapcloud.io/drain-wave": "7"}),
        ),
    ],
)
def test_what_the_plan_says_is_what_is_done(manifests: Sequence[JSONObject]) -> None:
    """The same pods are asked, in the same order, and at the same moments."""

    async def scenario(bench: Bench) -> None:
        await bench.apply(*manifests)
        plan = await bench.plan()
        assert {method for method, _ in bench.recorded.asked} == {"GET"}
        planned = {f.pod.metadata.name: f.asked.at for f in plan.fates if f.asked is not None}
        began = bench.clock.now()
        asked: dict[str, datetime] = {}
        drain, shown = bench.drain()
        say = shown.say

        def noted(line: str) -> None:
            say(line)
            if line.startswith("evicting pod "):
                asked[line.rpartition("/")[2]] = bench.clock.now()

        shown.say = noted  # type: ignore[method-assign]
        await drain.run()
        assert sorted(asked, key=lambda n: (asked[n], n)) == sorted(
            planned, key=lambda n: (planned[n], n)
        )
        for name, moment in planned.items():
            late = (asked[name] - began) - (moment - plan.at)
            # The kubelet looks twice a second, and the mirror is some time behind.
            assert abs(late.total_seconds()) < 4, name
        assert plan.over is not None
        assert abs((bench.clock.now() - began) - (plan.over - plan.at)) < timedelta(seconds=5)

    on_bench(scenario)


def test_volumes_of_one_attacher_go_one_after_the_other_as_planned() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(*volume("one"), *volume("two"))
        for claim in ("one", "two"):
            await bench.apply(pod(f"db-{claim}", app="db", of="StatefulSet", claim=claim, grace=5))
        plan = await bench.plan()
        fates = sorted(plan.fates, key=lambda f: f.asked.at if f.asked else EPOCH)
        order = [fate.pod.metadata.name for fate in fates]
        await bench.drained()
        assert bench.evicted() == order
        assert plan.over is not None and bench.clock.now() <= plan.over

    on_bench(scenario)


# ---- blocked -------------------------------------------------------------------------------------


def test_when_the_time_is_over_it_names_who_is_left_and_leaves_them() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(TIGHT, pod("db-0", app="db"), pod("web-0", grace=5))
        said = await bench.fails(Order(timeout=timedelta(minutes=5)))
        assert 300 <= elapsed(bench) < 310
        assert "ns/db-0" in said and "ns/tight" in said and "--force" in said
        assert await bench.pods() == {"db-0"}
        assert bench.evicted() == ["web-0"]
        mark = await bench.mark()
        assert mark is not None and not mark.run and mark.cordoned
        # Its time is over until another is given.
        again = elapsed(bench)
        assert "is over" in await bench.fails()
        assert elapsed(bench) - again < 5

    on_bench(scenario)


def test_with_force_what_is_left_at_the_deadline_is_deleted() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(TIGHT, pod("db-0", app="db"))
        shown = await bench.drained(Order(timeout=timedelta(minutes=5), force=True))
        assert 300 <= elapsed(bench) < 310
        assert await bench.pods() == set() and bench.evicted() == []
        assert shown.lines[-1] == "node/node-1 drained by force"

    on_bench(scenario)


def test_what_force_cannot_take_away_is_named() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(pod("web-0"))
        bench.world.stuck.add("web-0")
        said = await bench.fails(Order(timeout=timedelta(0), force=True))
        assert "not gone: pod ns/web-0" in said
        mark = await bench.mark()
        assert mark is not None and not mark.run

    on_bench(scenario)


def test_a_pod_that_comes_meanwhile_goes_as_well_by_its_own_budget() -> None:
    """It tolerates the cordon, and is of a namespace that nobody looked at before."""

    async def scenario(bench: Bench) -> None:
        await bench.apply(TIGHT, pod("db-0", app="db"), namespace("late"))
        drain, shown = bench.drain(Order(timeout=timedelta(minutes=3)))
        draining = asyncio.create_task(failure_of(drain))
        await bench.clock.sleep(30)
        came = pod("late-0", app="late", of="StatefulSet")
        held = budget("late", app="late", allowed=0, healthy=3, desired=3)
        for made in (came, held):
            made["metadata"]["namespace"] = "late"  # type: ignore[index]
            await bench.apply(made)
        await bench.clock.sleep(60)
        assert {s.pod for s in shown.looks[-1].standings} == {"ns/db-0", "late/late-0"}
        assert "late/late" in await draining

    on_bench(scenario)


def test_force_at_once_waits_for_no_budget() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(TIGHT, pod("db-0", app="db"))
        await bench.drained(Order(timeout=timedelta(0), force=True))
        assert await bench.pods() == set() and elapsed(bench) < 10

    on_bench(scenario)


def test_a_dead_node_is_left_without_force() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(pod("web-0"))
        ready = {
            "type": "Ready",
            "status": "Unknown",
            "lastTransitionTime": "2026-01-01T11:50:00Z",
        }
        status = {"status": {"conditions": [ready]}}
        await bench.client.patch(NODES, HERE, status, subresource="status")
        assert "is dead" in await bench.fails()
        assert await bench.pods() == {"web-0"}
        await bench.drained(Order(force=True))
        assert await bench.pods() == set()

    on_bench(scenario)


def test_a_held_pod_goes_as_soon_as_its_budget_allows_it() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(TIGHT, pod("db-0", app="db", grace=5))
        drain, shown = bench.drain()
        draining = asyncio.create_task(drain.run())
        await bench.clock.sleep(100)
        assert bench.evicted() == []
        assert "ns/tight" in shown.looks[-1].standings[0].detail
        status = {"status": {"disruptionsAllowed": 1}}
        await bench.client.patch(
            POD_DISRUPTION_BUDGETS, "tight", status, namespace="ns", subresource="status"
        )
        await draining
        assert elapsed(bench) < 115

    on_bench(scenario)


def test_pods_of_nobody_are_refused_before_anything_is_written() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(pod("lonely", of="", grace=5))
        assert "--delete-unmanaged" in await bench.fails()
        assert {method for method, _ in bench.recorded.asked} == {"GET"}
        await bench.drained(Order(delete_unmanaged=True))
        assert await bench.pods() == set()

    on_bench(scenario)


# ---- trouble with the server ---------------------------------------------------------------------


def test_nothing_is_concluded_while_nothing_can_be_observed() -> None:
    async def scenario(bench: Bench) -> None:
        faults = FaultPlan()
        bench.transport = FaultyTransport(bench.server, faults)
        await bench.apply(TIGHT, pod("db-0", app="db", grace=5))
        drain, shown = bench.drain()
        draining = asyncio.create_task(drain.run())
        await bench.clock.sleep(60)
        faults.refuse()
        faults.cut_watches()
        await bench.clock.sleep(5 * 60)
        assert not draining.done()
        assert shown.looks[-1].blind and shown.looks[-1].deadline == EPOCH + timedelta(hours=2)
        faults.clear()
        await bench.clock.sleep(60)
        assert not shown.looks[-1].blind
        assert {s.pod for s in shown.looks[-1].standings} == {"ns/db-0"}
        await bench.client.delete(POD_DISRUPTION_BUDGETS, "tight", namespace="ns")
        await draining
        assert shown.lines[-1] == "node/node-1 drained"

    on_bench(scenario)


def test_a_lost_answer_evicts_nobody_twice() -> None:
    async def scenario(bench: Bench) -> None:
        faults = FaultPlan()
        bench.transport = FaultyTransport(bench.server, faults)
        await bench.apply(budget("b", allowed=1), *(pod(f"web-{n}", grace=10) for n in range(2)))
        faults.lose_answers(path=".*eviction", times=1)
        shown = await bench.drained()
        assert await bench.pods() == set()
        assert shown.lines[-1] == "node/node-1 drained"

    on_bench(scenario)


# ---- stop, go on, take over ----------------------------------------------------------------------


def test_ctrl_c_says_how_to_go_on_and_the_next_run_keeps_deadline_and_patience() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(TIGHT, pod("db-0", app="db"), pod("web-0", grace=5))
        drain, shown = bench.drain(Order(timeout=timedelta(minutes=10)))
        draining = asyncio.create_task(drain.run())
        await bench.clock.sleep(60)
        draining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await draining
        assert "`mcm drain node-1` goes on" in shown.lines[-1]
        found = await bench.node()
        record = json.loads(found.metadata.annotations[ANNOTATION_DRAIN_RECORD])
        assert record["start"] == "2026-01-01T12:00:00Z"
        assert record["deadline"] == "2026-01-01T12:10:00Z"
        (held,) = record["heldSince"].values()
        mark = mark_of(found)
        assert mark is not None and not mark.run

        await bench.clock.sleep(60)
        assert "ns/db-0" in await bench.fails(by="bob@b")
        assert 600 <= elapsed(bench) < 610
        record = json.loads((await bench.node()).metadata.annotations[ANNOTATION_DRAIN_RECORD])
        assert list(record["heldSince"].values()) == [held]
        assert bench.evicted() == ["web-0"]

    on_bench(scenario)


def test_a_second_person_is_told_of_the_first_and_may_take_over() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(TIGHT, pod("db-0", app="db"))
        first, _ = bench.drain()
        draining = asyncio.create_task(failure_of(first))
        await bench.clock.sleep(30)
        assert "alice@a is draining node node-1" in await bench.fails(by="bob@b")
        second, _ = bench.drain(by="bob@b", take_over=True)
        other = asyncio.create_task(failure_of(second))
        assert "bob@b has taken" in await draining
        mark = await bench.mark()
        assert mark is not None and mark.by == "bob@b" and mark.run
        other.cancel()

    on_bench(scenario)


def test_uncordon_ends_a_drain_that_is_under_way() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(TIGHT, pod("db-0", app="db"))
        drain, _ = bench.drain()
        draining = asyncio.create_task(failure_of(drain))
        await bench.clock.sleep(30)
        await uncordon(bench.clusters(), Named(HERE))
        assert "was undone" in await draining
        found = await bench.node()
        assert not found.spec.unschedulable and not found.metadata.annotations

    on_bench(scenario)


def test_somebody_elses_uncordon_ends_it_as_well() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(TIGHT, pod("db-0", app="db"))
        drain, _ = bench.drain()
        draining = asyncio.create_task(failure_of(drain))
        await bench.clock.sleep(30)
        await bench.client.patch(NODES, HERE, {"spec": {"unschedulable": False}})
        assert "uncordoned" in await draining
        mark = await bench.mark()
        assert mark is not None and not mark.run

    on_bench(scenario)


# ---- refused -------------------------------------------------------------------------------------


def test_the_node_of_a_machine_that_is_being_deleted_is_its_controllers() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(pod("a"), machine(finalizers=["x/y"]))
        await bench.client.delete(MACHINES, "m-1", namespace="ns")
        assert "ns/m-1 of node node-1 is being deleted" in await bench.fails()
        assert {method for method, _ in bench.recorded.asked} == {"GET"}

    on_bench(scenario)


def test_a_deletion_that_begins_meanwhile_takes_the_drain_over() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(TIGHT, pod("db-0", app="db"))
        drain, _ = bench.drain()
        draining = asyncio.create_task(failure_of(drain))
        await bench.clock.sleep(30)
        condition = {"type": "Terminating", "status": "True"}
        status = {"status": {"conditions": [condition]}}
        await bench.client.patch(NODES, HERE, status, subresource="status")
        assert "being deleted" in await draining

    on_bench(scenario)


def test_it_follows_the_node_and_its_pods_only() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(pod("a", grace=5))
        await bench.drained()
        paths = {path for method, path in bench.recorded.asked if method == "GET"}
        assert not any("persistentvolume" in path or "attachments" in path for path in paths)
        assert "/apis/policy/v1/namespaces/ns/poddisruptionbudgets" in paths

    on_bench(scenario)
