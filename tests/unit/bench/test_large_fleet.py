"""The large fleet of the benches, in small: whole, at rest, and served as any other."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import orjson
import pytest
from prometheus_client import CollectorRegistry

from bench.large_fleet.copies import Size, settled, stored
from bench.large_fleet.heartbeats import Heartbeats
from bench.large_fleet.pool import Pool
from mcm.api.core import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from mcm.api.core import VOLUME_ATTACHMENTS as ATTACHMENTS
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject, KubeObject, Resource
from mcm.clock import LoopClock, SystemClock
from mcm.manager import Manager
from mcm.options import Options
from mcm.providers import simulated
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.loopback import LoopbackTransport
from mcm.simulation.virtualtime import run_virtual
from tests.unit.bench.test_benchmarks import _run

SIZE = Size(machines=4, pods=44, in_a_pool=2)

_PATIENCE = 300.0
_PERIODIC = {"machinesafetyapiserver", "machinesafetyovershooting"}
"""Controllers that look once a minute, whatever happens."""


@pytest.fixture(scope="module")
def pool() -> Pool:
    return settled(SIZE)


async def _server(pool: Pool) -> ApiServer:
    server = ApiServer(clock=LoopClock(SystemClock().now()), random=random.Random(1))
    await stored(server, SIZE, pool)
    return server


def _meta(obj: JSONObject) -> dict[str, Any]:
    found: dict[str, Any] = _at(obj, "metadata")
    return found


def _at(obj: object, *path: str) -> Any:
    for step in path:
        assert isinstance(obj, dict)
        obj = obj[step]
    return obj


def _told(server: ApiServer, resource: Resource[KubeObject], *path: str) -> dict[object, Any]:
    return {_meta(obj)["name"]: _at(obj, *path) for obj in _objects(server, resource)}


def _objects(server: ApiServer, resource: Resource[KubeObject]) -> list[JSONObject]:
    return server.objects(resource.group, resource.plural)


def test_each_object_of_a_copy_refers_to_those_of_the_same_copy(pool: Pool) -> None:
    server = asyncio.run(_server(pool))
    counts = {r.plural: len(_objects(server, r)) for r in (MACHINE_DEPLOYMENTS, MACHINES, NODES)}
    assert counts == {"machinedeployments": 2, "machines": 4, "nodes": 4}
    for child, parent in ((MACHINE_SETS, MACHINE_DEPLOYMENTS), (MACHINES, MACHINE_SETS)):
        owners = {_meta(o)["uid"]: _meta(o)["name"] for o in _objects(server, parent)}
        assert len(owners) == 2
        for obj in _objects(server, child):
            (reference,) = _at(obj, "metadata", "ownerReferences")
            assert owners[reference["uid"]] == reference["name"]
    nodes = {_meta(o)["name"] for o in _objects(server, NODES)}
    on = Counter(_at(pod, "spec", "nodeName") for pod in _objects(server, PODS))
    assert on == dict.fromkeys(nodes, 11)


def test_every_object_has_a_key_a_uid_and_a_version_of_its_own(pool: Pool) -> None:
    server = asyncio.run(_server(pool))
    uids: Counter[str] = Counter()
    versions: Counter[int] = Counter()
    for collection in server.store.collections():
        for kept in collection:
            uids[kept.uid] += 1
            versions[kept.revision] += 1
            assert orjson.loads(kept.encoded)["metadata"]["resourceVersion"] == str(kept.revision)
            assert b"@" not in kept.encoded.replace(b"@sha256", b"")
    assert max(uids.values()) == max(versions.values()) == 1
    assert max(versions) == server.store.revision


def test_a_volume_is_bound_attached_and_in_use_on_the_node_of_its_pod(pool: Pool) -> None:
    server = asyncio.run(_server(pool))
    claims = _told(server, PERSISTENT_VOLUME_CLAIMS, "spec", "volumeName")
    handles = _told(server, PERSISTENT_VOLUMES, "spec", "csi", "volumeHandle")
    in_use = _told(server, NODES, "status", "volumesInUse")
    attached = {
        _at(a, "spec", "source", "persistentVolumeName"): _at(a, "spec", "nodeName")
        for a in _objects(server, ATTACHMENTS)
    }
    assert len(claims) == len(handles) == len(attached) == 4
    for pod in _objects(server, PODS):
        for volume in _at(pod, "spec", "volumes"):
            if "persistentVolumeClaim" in volume:
                name = claims.pop(volume["persistentVolumeClaim"]["claimName"])
                node = _at(pod, "spec", "nodeName")
                assert attached[name] == node
                assert in_use[node] == [f"kubernetes.io/csi/disk.csi.example.com^{handles[name]}"]
    assert not claims


def test_a_manager_finds_nothing_to_do_and_heartbeats_wake_nobody(pool: Pool) -> None:
    """What a fleet of copies needs would be measured instead of its rest."""

    async def main() -> None:
        clock = LoopClock(SystemClock().now())
        server = ApiServer(clock=clock, random=random.Random(1))
        await stored(server, SIZE, pool)
        transport = LoopbackTransport(server)
        manager = Manager(
            Options(),
            control=transport,
            target=transport,
            provider=simulated.provider,
            clock=clock,
            randomness=random.Random(2),
            registry=(registry := CollectorRegistry()),
            identity="one",
        )
        stop = asyncio.Event()
        running = asyncio.create_task(manager.run(stop))
        await clock.sleep(90)
        assert not _writes(server)
        done = _reconciles(registry)
        kubelets = Heartbeats(server)
        kubelets.set_period(10)
        await clock.sleep(60)
        kubelets.set_period(0)
        assert kubelets.sent >= 20
        assert _reconciles(registry) == done
        assert not _writes(server)
        stop.set()
        await running

    run_virtual(main)


def _writes(server: ApiServer) -> list[str]:
    told = {"leases.coordination.k8s.io", "events.events.k8s.io"}
    return [
        f"{kind.verb} {kind.resource}"
        for kind in server.requests.snapshot()
        if kind.agent == "mcm"
        and kind.verb not in ("get", "list", "watch")
        and kind.resource not in told
    ]


def _reconciles(registry: CollectorRegistry) -> dict[str, float]:
    return {
        sample.labels["controller"]: sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "mcm_controller_reconcile_total"
        and sample.value
        and sample.labels["controller"] not in _PERIODIC
    }


@pytest.mark.timeout(_PATIENCE)
def test_a_steady_fleet_is_looked_at_from_without() -> None:
    sizes = ("--machines", "4", "--pods", "40", "--seconds", "1", "--slices", "2", "--period", "1")
    found = _run("bench.steady", *sizes, within=_PATIENCE)
    assert found["bench"] == "steady"
    assert found["parameters"] == {
        "machines": 4,
        "pods": 40,
        "in_a_pool": 4,
        "seconds": 1.0,
        "slices": 2,
        "period": 1.0,
    }
    results = found["results"]
    for look in (results["quiet"], results["heartbeats"]):
        assert look["writes"] == 0
        assert look["wake_ups_per_second"]["least"] > 0
    assert results["quiet"]["events"] == 0
    assert results["heartbeats"]["events"] >= 4
    assert results["resident_mib"] <= results["peak_mib"]
    assert results["scrape"]["bytes"] > 0


@pytest.mark.timeout(_PATIENCE)
def test_a_start_and_a_failover_are_measured() -> None:
    found = _run(
        "bench.startup", "--machines", "4", "--pods", "40", "--repeat", "1", "--lease", "3"
    )
    assert found["bench"] == "startup"
    (cold,), (failover,) = found["results"]["cold"], found["results"]["failover"]
    assert 0 < cold["leading"] <= cold["first_act"]
    assert failover["won"] > 0
    assert failover["first_act"] >= 0
