"""How long a drain takes, and in which order: as the longest chain of handovers, and no longer."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from mcm.api.core import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_DRAIN_RECORD
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench
from tests.unit.machine.draining.cluster_of_volumes import ClusterOfVolumes

ONE_PASS = 0.3


async def filled(b: Bench) -> None:
    """Ten pods without volumes, and two with one each, on one node."""
    await b.make_class()
    await b.running()
    for name in ("v1", "v2"):
        await b.attach(f"data-{name}")
        await b.run_pod(name, claims=(f"data-{name}",))
    for index in range(10):
        await b.run_pod(f"p{index}")


def evictions(b: Bench) -> Counter[str]:
    """Count evictions by pod."""
    asked = (w.path.split("/")[-2] for w in b.writes if w.path.endswith("/eviction"))
    return Counter(asked)


def records(b: Bench) -> int:
    written = (w.body.get("metadata") for w in b.written("machines", "m"))
    return sum(
        ANNOTATION_DRAIN_RECORD in meta.get("annotations", {})
        for meta in written
        if isinstance(meta, dict)
    )


@on_bench
async def test_a_drain_takes_as_long_as_its_longest_chain_and_one_pass() -> None:
    async with bench() as b:
        await filled(b)
        async with ClusterOfVolumes(b).running() as cluster:
            began = b.clock.monotonic()
            await b.delete_machine()
            await b.until_gone(within=60)
            took = b.clock.monotonic() - began
        assert len(cluster.asked) == 12
        assert max(cluster.asked[f"p{n}"] for n in range(10)) - began < ONE_PASS
        first, second = sorted(("v1", "v2"), key=lambda name: cluster.asked[name])
        assert cluster.asked[second] >= cluster.attached[f"data-{first}"]
        chain = 2 * (cluster.grace + cluster.detach + cluster.attach)
        assert chain <= took <= chain + 2 * ONE_PASS
        assert set(evictions(b).values()) == {1}
        assert records(b) <= 4, "one for each pod with volumes that was asked, one once it left"


@on_bench
async def test_the_second_is_asked_when_the_limit_of_the_first_is_over() -> None:
    async with bench() as b:
        await filled(b)
        async with ClusterOfVolumes(b, attach=1000.0).running() as cluster:
            await b.delete_machine()
            await b.settle(160)
        first, second = sorted(("v1", "v2"), key=lambda name: cluster.asked[name])
        # Nobody replaces the pods here: that is seen after a quarter of a minute.
        waited = cluster.asked[second] - cluster.gone[first]
        assert 15.0 <= waited <= 15.0 + cluster.detach + ONE_PASS


@on_bench
async def test_a_process_that_ends_in_the_middle_is_carried_on_and_nobody_asked_twice() -> None:
    async with bench() as b:
        await filled(b)
        async with ClusterOfVolumes(b).running() as cluster:
            began = b.clock.monotonic()
            await b.delete_machine()
            for _ in range(8):
                await b.settle(2)
                await b.crash()
                await b.settle(0.3)
                await b.start()
            await b.until_gone(within=60)
            took = b.clock.monotonic() - began
        assert set(evictions(b).values()) == {1}
        assert len(evictions(b)) == 12
        first, second = sorted(("v1", "v2"), key=lambda name: cluster.asked[name])
        assert cluster.asked[second] >= cluster.attached[f"data-{first}"]
        assert took <= 2 * (cluster.grace + cluster.detach + cluster.attach) + 2.0


@on_bench
async def test_pods_on_one_shared_volume_leave_side_by_side() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.attach("shared", modes=("ReadWriteMany",))
        for index in range(20):
            await b.run_pod(f"p{index}", claims=("shared",))
        async with ClusterOfVolumes(b, grace=29.0, keeps_volumes=True).running():
            began = b.clock.monotonic()
            await b.delete_machine()
            await b.until_gone(within=60)
            assert b.clock.monotonic() - began == pytest.approx(29.0, abs=2 * ONE_PASS)
        assert records(b) == 0


@on_bench
async def test_patience_outlives_the_process() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running(spec={"maxEvictRetries": 3})
        await b.run_pod("p", labels={"app": "a"})
        await b.make_budget("strict", labels={"app": "a"}, allowed=0)
        await b.settle()
        async with ClusterOfVolumes(b).running() as cluster:
            began = b.clock.monotonic()
            await b.delete_machine()
            await b.settle(50)
            await b.crash()
            await b.settle(5)
            await b.start()
            await b.until_gone(within=30)
        assert cluster.asked["p"] - began == pytest.approx(60.0, abs=1.0 + ONE_PASS)
        assert evictions(b) == {}
        assert records(b) == 1


async def write_record(b: Bench, text: str) -> None:
    patch: JSONObject = {"metadata": {"annotations": {ANNOTATION_DRAIN_RECORD: text}}}
    await b.client.patch(MACHINES, "m", patch, namespace=NAMESPACE)
    await b.settle()


@on_bench
async def test_a_record_of_another_drain_counts_for_nothing() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running(spec={"maxEvictRetries": 3})
        await b.run_pod("p", labels={"app": "a"})
        await b.make_budget("strict", labels={"app": "a"}, allowed=0)
        uid = next(p["metadata"]["uid"] for p in b.objects(PODS))  # type: ignore[index]
        long_ago = "2020-01-01T00:00:00Z"
        await write_record(b, json.dumps({"start": long_ago, "heldSince": {uid: long_ago}}))
        await b.delete_machine()
        await b.settle(10)
        assert not [w for w in b.writes if w.method == "DELETE" and w.on("pods", "p")]


@on_bench
async def test_a_record_that_cannot_be_read_is_told_and_the_drain_goes_on() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.run_pod("p")
        await write_record(b, '{"start": "soon"}')
        await b.delete_machine()
        await b.settle(10)
        assert "DrainRecordUnreadable" in b.events()
        assert evictions(b) == {"p": 1}


@on_bench
async def test_a_volume_that_only_the_provider_can_name_is_waited_for() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        b.driver.volume_ids["disk"] = "vol-7"
        volume: JSONObject = {
            "metadata": {"name": "pv"},
            "spec": {"accessModes": ["ReadWriteOnce"], "oldDisk": {"name": "disk"}},
        }
        claim: JSONObject = {"metadata": {"name": "data"}, "spec": {"volumeName": "pv"}}
        await b.client.create(PERSISTENT_VOLUMES, volume)
        await b.client.create(PERSISTENT_VOLUME_CLAIMS, claim, namespace=NAMESPACE)
        await set_volumes(b, "kubernetes.io/old-disk/vol-7")
        await b.run_pod("p", claims=("data",))
        await b.delete_machine()
        await b.settle()
        await b.finish_leaving_pods()
        await b.settle(30)
        assert b.driver.vms, "the volume is attached to the node still"
        await set_volumes(b)
        await b.until_gone(within=16)


async def set_volumes(b: Bench, *names: str) -> None:
    attached = [{"name": name, "devicePath": ""} for name in names]
    await b.client.patch(
        NODES, "node-m", {"status": {"volumesAttached": attached}}, subresource="status"
    )
