"""Managers of several namespaces whose machines join one cluster."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

from mcm.api.core import NODES
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_NODE_NAMESPACE,
    ANNOTATION_NOT_MANAGED_BY_MCM,
    NODE_FINALIZER,
)
from mcm.client.client import Client
from mcm.controllers.settings import ControllerSettings
from mcm.manager import LEASE_NAMES
from mcm.options import Clusters, Options
from mcm.providers.simulated.cloud import SimulatedCloud
from mcm.sandbox.loopback import LoopbackTransport
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual
from tests.simulation.several.managers import Managers, namespace_of
from tests.simulation.several.shards import fleet, scale

MINUTES = 60.0


def of_namespace(name: str, *siblings: str) -> Options:
    settings = ControllerSettings(
        sibling_namespaces=siblings,
        orphan_vms_period=timedelta(minutes=30),
        creation_timeout=timedelta(minutes=5),
    )
    return Options(clusters=Clusters(namespace=name), settings=settings)


def test_two_namespaces_share_a_cluster_and_leave_each_others_nodes_alone() -> None:
    async def main() -> None:
        async with Managers.open() as managers, cloud_of(managers.sim, "other"):
            sim = managers.sim
            managers.start("default", of_namespace("default", "other"))
            other = managers.start("other", of_namespace("other", "default"))
            await sim.apply([namespace("other"), stray_node()])
            for each in ("default", "other"):
                await sim.apply(moved(fleet({f"in-{each}": ""}), each))
            await sim.until(lambda: sim.running() == 4, within=120)
            before = versions_of_marks(sim)
            await sim.pass_time(7 * MINUTES)
            nodes = {name_of(n): n for n in sim.objects(NODES)}
            assert {n: notes_on(o).get(ANNOTATION_NODE_NAMESPACE) for n, o in nodes.items()} == {
                n: None if n == "stray" else ("other" if "in-other" in n else "default")
                for n in nodes
            }
            # What bears no namespace may be another manager's, and is left alone.
            assert not [o for o in nodes.values() if ANNOTATION_NOT_MANAGED_BY_MCM in notes_on(o)]
            assert versions_of_marks(sim) == before
            leases = {(namespace_of(x), name_of(x)) for x in managers.leases()}
            assert leases >= {(ns, name) for ns in ("default", "other") for name in LEASE_NAMES}
            # One of them ends and its fleet is left; the other one goes on with its own.
            await other.stop()
            await scale(sim, "in-default", 1)
            await sim.until(lambda: len(sim.objects(NODES)) == 4, within=120)
            assert sum("in-other" in name_of(n) for n in sim.objects(NODES)) == 2
            assert all(
                NODE_FINALIZER in meta_of(n)["finalizers"]
                for n in sim.objects(NODES) if "in-other" in name_of(n)
            )  # fmt: skip

    run_virtual(main)


def test_a_manager_that_was_told_of_no_other_leaves_alone_what_names_another_namespace() -> None:
    async def main() -> None:
        async with Managers.open() as managers:
            sim = managers.sim
            theirs = stray_node("theirs")
            meta_of(theirs)["annotations"] = {ANNOTATION_NODE_NAMESPACE: "other"}
            await sim.apply([theirs, stray_node()])
            managers.start("default", of_namespace("default"))
            await sim.pass_time(7 * MINUTES)
            marked = {
                name_of(n) for n in sim.objects(NODES)
                if ANNOTATION_NOT_MANAGED_BY_MCM in notes_on(n)
            }  # fmt: skip
            assert marked == {"stray"}

    run_virtual(main)


@asynccontextmanager
async def cloud_of(sim: Simulation, name: str) -> AsyncIterator[None]:
    """Boot the VMs of one more namespace."""
    client = Client(LoopbackTransport(sim.server), clock=sim.clock, user_agent=f"cloud-{name}")
    cloud = SimulatedCloud(
        client, client, namespace=name, clock=sim.clock, randomness=random.Random(name),
        heartbeat_interval=10.0,
    )  # fmt: skip
    running = asyncio.create_task(cloud.run())
    try:
        yield
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def namespace(name: str) -> JSONObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def stray_node(name: str = "stray") -> JSONObject:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {}}


def moved(manifests: list[JSONObject], where: str) -> list[JSONObject]:
    """Put a fleet into another namespace."""
    found: list[Any] = []
    for each in manifests:
        manifest: Any = each
        moved_to = {**manifest, "metadata": {**manifest["metadata"], "namespace": where}}
        for field in ("secretRef", "credentialsSecretRef"):
            if field in moved_to:
                moved_to[field] = {**moved_to[field], "namespace": where}
        found.append(moved_to)
    return found


def notes_on(obj: JSONObject) -> dict[str, str]:
    return meta_of(obj).get("annotations") or {}


def meta_of(obj: JSONObject) -> dict[str, Any]:
    meta: Any = obj["metadata"]
    return meta  # type: ignore[no-any-return]


def versions_of_marks(sim: Simulation) -> dict[str, object]:
    """What managers write on Nodes: nobody fights over it."""
    return {name_of(n): (notes_on(n), meta_of(n).get("finalizers")) for n in sim.objects(NODES)}
