"""The budget of failed machines under faults: refusals, lost answers, a mirror that lags, races."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_SETS, MACHINES, Machine
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_PRESERVE, PRESERVE_AUTO
from mcm.client.errors import Forbidden, KubeError, RequestTimeout
from mcm.controllers import machineset
from tests.unit.machineset.cluster import Cluster, Running, Write, play
from tests.unit.machineset.test_reconciler import all_running, body, living, the_set


def running(cluster: Cluster) -> Running:
    return Running(cluster, machineset.build(cluster.context))


async def begin(cluster: Cluster, controllers: Running, replicas: int, most: int) -> list[Machine]:
    await cluster.create(MACHINE_SETS, body(replicas, autoPreserveFailedMachineMax=most))
    await controllers.settle()
    await all_running(cluster)
    await controllers.settle()
    cluster.writes.clear()
    return living(cluster)


def fail(cluster: Cluster, machine: Machine, *, seen: bool = True) -> None:
    """The machine controller gives a machine up; ``seen``: the mirror knows at once."""
    now = cluster.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    failed: JSONObject = {
        "lastOperation": {"state": "Failed", "type": "HealthCheck", "lastUpdateTime": now},
        "currentStatus": {"phase": "Failed", "lastUpdateTime": now},
    }
    cluster.api.alter(MACHINES, machine.metadata.name, {"status": failed}, "ns")
    if seen:
        show(cluster, machine)


def show(cluster: Cluster, machine: Machine) -> None:
    """The mirror learns of the machine's present state."""
    cluster.behind(cluster.get(MACHINES, machine.metadata.name), MACHINES)


def kept(cluster: Cluster) -> list[str]:
    return sorted(
        m.metadata.name
        for m in living(cluster)
        if m.metadata.annotations.get(ANNOTATION_PRESERVE) == PRESERVE_AUTO
    )


def annotating(write: Write) -> bool:
    return write.resource == "machines" and ANNOTATION_PRESERVE in str(write.body)


def test_as_many_are_kept_as_may_be_and_the_others_are_replaced() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            machines = await begin(cluster, controllers, 5, 2)
            for machine in machines[:3]:
                fail(cluster, machine)
            await controllers.settle()
            assert len(kept(cluster)) == 2
            assert the_set(cluster).status.auto_preserve_failed_machine_count == 2
            assert len(living(cluster)) == 5, "one was replaced; the kept ones count as replicas"
            assert sum(map(annotating, cluster.writes)) == 2
            before = len(cluster.writes)
            await controllers.settle(3600)
            assert len(cluster.writes) == before

    play(scenario)


def test_a_smaller_budget_releases_the_oldest() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            machines = await begin(cluster, controllers, 3, 3)
            for machine in machines:
                fail(cluster, machine)
            await controllers.settle()
            everyone = kept(cluster)
            assert len(everyone) == 3
            by_age = sorted(
                machines, key=lambda m: (str(m.metadata.creation_timestamp), m.metadata.name)
            )
            smaller: JSONObject = {"spec": {"autoPreserveFailedMachineMax": 1}}
            await cluster.patch(MACHINE_SETS, "set", smaller)
            await controllers.settle()
            assert kept(cluster) == [by_age[-1].metadata.name]
            none: JSONObject = {"spec": {"autoPreserveFailedMachineMax": None}}
            await cluster.patch(MACHINE_SETS, "set", none)
            await controllers.settle()
            assert kept(cluster) == []

    play(scenario)


def test_a_machine_whose_node_says_no_is_replaced_and_takes_no_place() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            machines = await begin(cluster, controllers, 2, 1)
            refusing = machines[0]
            annotations = {ANNOTATION_PRESERVE: "false"}
            node: JSONObject = {"metadata": {"name": "node", "annotations": annotations}}
            await cluster.create(NODES, node)
            labels: JSONObject = {"metadata": {"labels": {"node": "node"}}}
            await cluster.patch(MACHINES, refusing.metadata.name, labels)
            fail(cluster, refusing)
            fail(cluster, machines[1])
            await controllers.settle()
            assert kept(cluster) == [machines[1].metadata.name]
            assert refusing.metadata.name not in {m.metadata.name for m in living(cluster)}

    play(scenario)


def test_who_cannot_be_annotated_is_replaced_and_the_next_one_kept() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            machines = await begin(cluster, controllers, 3, 1)
            newest = max(
                machines, key=lambda m: (str(m.metadata.creation_timestamp), m.metadata.name)
            )
            denied = Forbidden(403, "Forbidden", "denied by a webhook")
            cluster.api.refuse = lambda w: (
                denied if annotating(w) and w.name == newest.metadata.name else None
            )
            for machine in machines:
                fail(cluster, machine)
            await controllers.settle(30)
            assert len(kept(cluster)) == 1
            names = {m.metadata.name for m in living(cluster)}
            assert newest.metadata.name not in names
            assert len(names) == 3

    play(scenario)


LOST = RequestTimeout("the answer got lost")


@pytest.mark.parametrize("arrives", [True, False])
def test_a_lost_answer_never_makes_it_one_too_many(arrives: bool) -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            machines = await begin(cluster, controllers, 4, 1)
            by_age = sorted(
                machines, key=lambda m: (str(m.metadata.creation_timestamp), m.metadata.name)
            )
            newest, older = by_age[-1], by_age[0]
            losses = iter([True])

            def lose(write: Write) -> KubeError | None:
                return LOST if annotating(write) and next(losses, False) else None

            if arrives:
                cluster.api.lose = lose
            else:
                cluster.api.refuse = lose
            fail(cluster, older)  # the first to be asked, and nobody knows what became of it
            fail(cluster, newest, seen=False)
            await controllers.settle(0.001)
            # The mirror learns of a newer failure before it learns of the annotation.
            show(cluster, newest)
            for _ in range(20):
                await controllers.settle(1)
                assert len(kept(cluster)) <= 1
            cluster.catch_up(MACHINES)
            await controllers.settle(30)
            assert kept(cluster) == [older.metadata.name]
            assert len(living(cluster)) == 4

    play(scenario)


@pytest.mark.parametrize("seed", range(12))
def test_never_one_too_many_whatever_gets_lost_and_the_budget_is_used_in_the_end(seed: int) -> None:
    async def scenario() -> None:
        cluster, chance = Cluster(), random.Random(seed)
        async with running(cluster) as controllers:
            most = chance.randint(1, 3)
            machines = await begin(cluster, controllers, 6, most)
            too_many: list[int] = []

            def some(write: Write) -> KubeError | None:
                if len(kept(cluster)) > most:
                    too_many.append(len(kept(cluster)))
                return LOST if chance.random() < 0.4 else None

            cluster.api.lose = some
            cluster.api.refuse = some
            for machine in machines:
                fail(cluster, machine, seen=chance.random() < 0.5)
                await controllers.settle(chance.choice([0.0, 0.01, 3.0]))
            for _ in range(10):
                await controllers.settle(chance.uniform(0, 5))
                known = {m.metadata.name for m in cluster.all(MACHINES)}
                if (machine := chance.choice(machines)).metadata.name in known:
                    show(cluster, machine)
            quiet: Callable[[Write], KubeError | None] = lambda _: None  # noqa: E731
            cluster.api.lose = cluster.api.refuse = quiet
            cluster.catch_up(MACHINES)
            await controllers.settle(120)
            assert not too_many
            assert len(kept(cluster)) <= most
            assert len(living(cluster)) == 6
            failed = [m for m in living(cluster) if m.phase == "Failed"]
            assert sorted(m.metadata.name for m in failed) == kept(cluster)

    play(scenario)
