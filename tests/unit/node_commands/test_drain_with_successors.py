"""``mcm drain`` of a Node whose single pod asks for a successor first, in a running cluster."""

from __future__ import annotations

import asyncio
import random

from mcm.api.crds import crd_manifests
from mcm.node_commands.clusters import Clusters
from mcm.node_commands.drain import DrainByHand
from mcm.node_commands.order import Order
from mcm.node_commands.progress import Progress
from tests.unit.world.manifests import template, workload
from tests.unit.world.rig import Rig, at, on_rig

MARK = "machine.sapcloud.io/drain-surge"
NODES = ("a", "b", "c")


class Said:
    """A display that keeps what it was told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.shown: list[Progress] = []

    def say(self, line: str) -> None:
        self.lines.append(line)

    def show(self, progress: Progress) -> None:
        self.shown.append(progress)


async def with_a_singleton(rig: Rig) -> str:
    """Return the Node of the pod that asks for a successor."""
    made = template(terminationGracePeriodSeconds=5)
    metadata = made["metadata"]
    assert isinstance(metadata, dict)
    metadata["annotations"] = {MARK: "scale"}
    await rig.create(*crd_manifests())
    await rig.boot(*NODES)
    await rig.until(lambda: rig.ready(*NODES) and not any(map(rig.taints, NODES)))
    await rig.create(workload("Deployment", replicas=1, template=made))
    await rig.until(lambda: len(rig.running()) == 1)
    return next(iter(rig.placed().values()))


def by_hand(rig: Rig, node: str, said: Said) -> DrainByHand:
    return DrainByHand(
        Clusters(rig.client, rig.client, "", "default"),
        node,
        Order(),
        by="alice@a",
        take_over=False,
        display=said,
        clock=rig.clock,
        random=random.Random(1),
    )


def deployment(rig: Rig) -> tuple[object, bool]:
    """Return its replicas, and whether it is marked."""
    found = rig.get("deployments", "web", "apps")
    notes = at(found, "metadata", "annotations")
    return at(found, "spec", "replicas"), isinstance(notes, dict) and MARK in notes


def test_the_single_pod_always_serves_and_its_deployment_is_as_before() -> None:
    async def scenario(rig: Rig) -> None:
        node, said = await with_a_singleton(rig), Said()
        task = asyncio.create_task(by_hand(rig, node, said).run())
        while not task.done():
            await rig.pass_time(0.01)
            assert rig.running(), "nobody serves"
        await task
        assert f"node/{node} drained" in said.lines
        assert any("successor" in str(look) for look in said.shown)
        await rig.until(lambda: len(rig.names("pods")) == 1)
        assert deployment(rig) == (1, False)
        assert node not in rig.placed().values()

    on_rig(scenario)


def test_an_interrupted_command_leaves_the_deployment_as_before() -> None:
    async def scenario(rig: Rig) -> None:
        node, said = await with_a_singleton(rig), Said()
        for other in NODES:
            await rig.cordon(other)  # so that no successor is ever Ready
        task = asyncio.create_task(by_hand(rig, node, said).run())
        await rig.until(lambda: deployment(rig) == (2, True))
        await rig.stop(task)
        assert deployment(rig) == (1, False)
        await rig.until(lambda: len(rig.names("pods")) == 1)
        assert rig.running() and rig.placed()

    on_rig(scenario)
