from __future__ import annotations

import pytest

from tests.unit.world.manifests import budget, pod, workload
from tests.unit.world.rig import Rig, at, name_of, on_rig


def test_pods_of_a_node_that_is_gone_are_removed_after_a_short_while() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a")
        await rig.until(lambda: rig.ready("a") and not rig.taints("a"))
        await rig.create(pod("p"), pod("stray", nodeName="never"))
        await rig.until(lambda: rig.running() == ["p"])
        await rig.until(lambda: rig.names("pods") == ["p"], within=10)
        await rig.delete("/api/v1/nodes/a")
        assert await rig.until(lambda: rig.names("pods") == []) == pytest.approx(5, abs=0.1)

    on_rig(scenario)


def test_pods_stay_if_their_node_comes_back_at_once() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a")
        await rig.until(lambda: rig.ready("a") and not rig.taints("a"))
        await rig.create(pod("p"))
        await rig.until(lambda: rig.running() == ["p"])
        await rig.delete("/api/v1/nodes/a")
        await rig.pass_time(3)
        await rig.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}})
        await rig.pass_time(3)
        await rig.delete("/api/v1/nodes/a")
        await rig.pass_time(4)
        assert rig.names("pods") == ["p"]
        await rig.until(lambda: rig.names("pods") == [], within=2)

    on_rig(scenario)


def test_a_workload_on_a_dead_machine_moves_when_its_node_is_deleted() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a", "b")
        await rig.until(lambda: rig.ready("a", "b") and not rig.taints("a") | rig.taints("b"))
        await rig.create(workload("Deployment", replicas=4))
        await rig.until(lambda: len(rig.running()) == 4)
        await rig.patch_vm("a", powerState="Off")
        await rig.until(lambda: rig.condition("a") == "Unknown", within=60)
        await rig.delete("/api/v1/nodes/a")
        await rig.until(lambda: set(rig.placed().values()) == {"b"} and len(rig.running()) == 4)

    on_rig(scenario)


def test_a_deleted_namespace_takes_everything_in_it_along() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a")
        await rig.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        made = workload("Deployment", replicas=2)
        await rig.create({**made, "metadata": {"name": "web", "namespace": "team"}})
        await rig.until(lambda: len(rig.running()) == 2)
        await rig.delete("/api/v1/namespaces/team")
        await rig.until(lambda: "team" not in rig.names("namespaces"))
        assert rig.names("pods") == rig.names("replicasets", "apps") == []

    on_rig(scenario)


def test_a_steady_cluster_writes_nothing_but_leases() -> None:
    async def scenario(rig: Rig) -> None:
        nodes = [f"n{i}" for i in range(10)]
        await rig.boot(*nodes)
        await rig.create(
            workload("Deployment", replicas=12),
            workload("ReplicaSet", "lone", replicas=3),
            workload("DaemonSet", "daemon"),
            budget(maxUnavailable=1),
            budget("lone", minAvailable="50%"),
            pod("homeless", nodeSelector={"zone": "none"}),
        )
        await rig.until(lambda: len(rig.running()) == 25)
        await rig.cordon("n3")
        await rig.patch_vm("n4", powerState="Off")
        await rig.pass_time(300)
        rig.server.requests.reset()
        await rig.pass_time(3600)
        assert set(rig.steady_writes()) == {"kubelet-simulated patch leases.coordination.k8s.io"}

    on_rig(scenario, heartbeat=30, grace=120)


def test_a_restarted_world_finds_nothing_to_do() -> None:
    async def scenario(rig: Rig) -> None:
        world = rig.start(rig.new_world().run())
        await rig.boot("a", "b")
        await rig.create(workload("Deployment", replicas=4), budget(maxUnavailable=1))
        await rig.until(lambda: len(rig.running()) == 4)
        await rig.pass_time(30)
        before = [(name_of(o), at(o, "metadata", "uid")) for o in rig.all("pods")]
        await rig.stop(world)
        rig.server.requests.reset()
        _ = rig.start(rig.new_world().run())
        await rig.pass_time(120)
        assert set(rig.steady_writes()) == {"kubelet-simulated patch leases.coordination.k8s.io"}
        assert [(name_of(o), at(o, "metadata", "uid")) for o in rig.all("pods")] == before

    on_rig(scenario, with_world=False)


def test_the_same_seed_gives_the_same_history() -> None:
    def history(seed: int) -> list[object]:
        seen: list[object] = []

        async def scenario(rig: Rig) -> None:
            await rig.boot("a", "b", "c", bootLatency="3s")
            await rig.create(workload("Deployment", replicas=5))
            await rig.until(lambda: len(rig.running()) == 5)
            await rig.patch_vm("b", powerState="Off")
            await rig.pass_time(200)
            seen.extend(sorted(rig.placed().items()))
            leases = rig.all("leases", "coordination.k8s.io")
            seen.extend(at(lease, "spec", "renewTime") for lease in leases)
            seen.append(rig.server.store.revision)

        on_rig(scenario, seed=seed)
        return seen

    assert history(1) == history(1)
    assert history(1) != history(2)
