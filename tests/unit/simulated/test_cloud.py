from __future__ import annotations

from typing import Any

import pytest

from mcm.api.core import PODS as _PODS
from mcm.providers.simulated.node_objects import KUBELET_VERSION
from tests.unit.world.rig import GRACE, HEARTBEAT, Rig, at, conditions, objects, on_rig

LEASE = "leases"
COORDINATION = "coordination.k8s.io"


def test_a_vm_boots_and_its_node_joins_after_exactly_the_latencies_asked_for() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a", bootLatency="20s", joinLatency="7s")
        await rig.until(lambda: rig.vm_phase("a") == "Booting", within=1)
        assert await rig.until(lambda: rig.vm_phase("a") == "Running") == pytest.approx(20, abs=0.1)
        assert rig.names("nodes") == []
        assert await rig.until(lambda: rig.condition("a") == "False") == pytest.approx(7, abs=0.1)
        assert await rig.until(lambda: rig.ready("a")) == pytest.approx(1, abs=0.1)

    on_rig(scenario)


def test_latencies_are_kept_wherever_in_a_second_the_vm_was_made() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.pass_time(0.9)
        await rig.boot("a", bootLatency="2s")
        assert await rig.until(lambda: rig.names("nodes") == ["a"]) == pytest.approx(2, abs=0.1)

    on_rig(scenario)


def test_a_node_tells_what_kubectl_and_schedulers_look_at() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot(
            "a",
            instanceType="m5.large",
            region="eu-1",
            zone="eu-1b",
            capacity={"cpu": "4", "memory": "16Gi"},
            nodeLabels={"pool": "blue"},
        )
        await rig.until(lambda: rig.ready("a"))
        node = rig.get("nodes", "a")
        assert at(node, "metadata", "labels") == {
            "kubernetes.io/hostname": "a",
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "node.kubernetes.io/instance-type": "m5.large",
            "topology.kubernetes.io/region": "eu-1",
            "topology.kubernetes.io/zone": "eu-1b",
            "pool": "blue",
        }
        assert at(node, "spec", "providerID") == "simulated:///default/a"
        assert at(node, "status", "nodeInfo", "kubeletVersion") == KUBELET_VERSION
        capacity = {"cpu": "4", "memory": "16Gi", "pods": "110", "ephemeral-storage": "50Gi"}
        assert at(node, "status", "capacity") == at(node, "status", "allocatable") == capacity
        kinds = [a["type"] for a in objects(node, "status", "addresses")]
        assert kinds == ["Hostname", "InternalIP"]
        assert str(objects(node, "status", "addresses")[1]["address"]).startswith("10.")
        shown = {kind: c["status"] for kind, c in conditions(node).items()}
        healthy = dict.fromkeys(("MemoryPressure", "DiskPressure", "PIDPressure"), "False")
        assert shown == {"Ready": "True", **healthy}

    on_rig(scenario)


def test_a_vm_that_does_not_join_runs_without_a_node() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a", joins=False)
        await rig.until(lambda: rig.vm_phase("a") == "Running")
        await rig.pass_time(60)
        assert rig.names("nodes") == []

    on_rig(scenario)


def test_conditions_asked_of_the_vm_show_on_its_node_and_heal_again() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a")
        await rig.until(lambda: rig.ready("a"))
        before = conditions(rig.get("nodes", "a"))["Ready"]["lastTransitionTime"]
        await rig.pass_time(5)
        await rig.patch_vm("a", nodeConditions={"DiskPressure": "True", "KernelDeadlock": "True"})
        await rig.until(lambda: rig.condition("a", "DiskPressure") == "True", within=1)
        assert rig.condition("a", "KernelDeadlock") == "True"
        assert conditions(rig.get("nodes", "a"))["Ready"]["lastTransitionTime"] == before
        await rig.patch_vm("a", nodeConditions={"DiskPressure": None, "KernelDeadlock": None})
        await rig.until(lambda: rig.condition("a", "DiskPressure") == "False", within=1)
        assert rig.condition("a", "KernelDeadlock") == "False"

    on_rig(scenario)


def test_a_vm_switched_off_goes_silent_and_comes_back_when_switched_on() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a", bootLatency="5s", joinLatency="2s")
        await rig.until(lambda: rig.ready("a"))
        uid = at(rig.get("nodes", "a"), "metadata", "uid")
        await rig.patch_vm("a", powerState="Off")
        await rig.until(lambda: rig.vm_phase("a") == "Stopped", within=1)
        silent = await rig.until(lambda: rig.condition("a") == "Unknown", within=60)
        assert GRACE - HEARTBEAT <= silent <= GRACE
        await rig.patch_vm("a", powerState="On")
        assert await rig.until(lambda: rig.ready("a")) == pytest.approx(8, abs=0.2)
        assert at(rig.get("nodes", "a"), "metadata", "uid") == uid
        await rig.pass_time(3 * GRACE)
        assert rig.ready("a")

    on_rig(scenario)


def test_a_deleted_vm_leaves_its_node_behind_without_heartbeats() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a", "b")
        await rig.until(lambda: rig.ready("a", "b"))
        await rig.delete(
            "/apis/simulation.machine.sapcloud.io/v1alpha1/namespaces/default/virtualmachines/a"
        )
        silent = await rig.until(lambda: rig.condition("a") == "Unknown", within=60)
        assert GRACE - HEARTBEAT <= silent <= GRACE
        await rig.pass_time(100)
        assert rig.condition("a") == "Unknown"
        assert rig.ready("b")

    on_rig(scenario)


def test_a_kubelet_corrects_who_calls_its_node_dead_while_it_lives() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a")
        await rig.until(lambda: rig.ready("a"))
        lie = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
        await rig.patch("/api/v1/nodes/a/status", {"status": {"conditions": lie}})
        await rig.until(lambda: rig.ready("a"), within=HEARTBEAT)
        assert rig.condition("a", "DiskPressure") == "False"

    on_rig(scenario)


def test_a_node_deleted_under_a_running_vm_stays_deleted_until_the_next_boot() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a")
        await rig.until(lambda: rig.ready("a"))
        await rig.delete("/api/v1/nodes/a")
        await rig.pass_time(100)
        assert rig.names("nodes") == []
        assert rig.names(LEASE, COORDINATION) == []  # collected with its Node
        await rig.patch_vm("a", powerState="Off")
        await rig.until(lambda: rig.vm_phase("a") == "Stopped")
        await rig.patch_vm("a", powerState="On")
        await rig.until(lambda: rig.ready("a"))
        await rig.pass_time(3 * GRACE)
        assert rig.ready("a")

    on_rig(scenario)


def test_a_vm_without_a_node_name_boots_and_joins_nothing() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a", nodeName="")
        await rig.until(lambda: rig.vm_phase("a") == "Running")
        rig.server.requests.reset()
        await rig.pass_time(60)
        assert rig.steady_writes() == {}

    on_rig(scenario)


def test_a_latency_nobody_can_read_counts_as_none() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a", bootLatency="soon")
        await rig.until(lambda: rig.ready("a"), within=5)

    on_rig(scenario)


def test_two_hundred_kubelets_cost_an_hour_of_leases_and_nothing_else() -> None:
    async def scenario(rig: Rig) -> None:
        names = [f"n{i}" for i in range(200)]
        await rig.boot(*names)
        await rig.until(lambda: rig.ready(*names))
        await rig.pass_time(10)
        rig.server.requests.reset()
        await rig.pass_time(3600)
        writes = rig.steady_writes()
        assert set(writes) == {"kubelet-simulated patch leases.coordination.k8s.io"}
        (count,) = writes.values()
        # Every interval is between 48 and 60 s.
        assert 200 * 3600 / 60 <= count <= 200 * 3600 / 48

    on_rig(scenario, heartbeat=60, grace=240)


def test_heartbeats_of_many_kubelets_that_join_at_once_spread_out() -> None:
    async def scenario(rig: Rig) -> None:
        names = [f"n{i}" for i in range(50)]
        await rig.boot(*names)
        await rig.until(lambda: rig.ready(*names))
        await rig.pass_time(600)
        times = {at(o, "spec", "renewTime") for o in rig.all(LEASE, COORDINATION)}
        assert len(times) > 40

    on_rig(scenario)


# Restart of the cloud ---------------------------------------------------------------------------


def test_a_cloud_that_restarts_goes_on_where_it_was() -> None:
    async def scenario(rig: Rig) -> None:
        first = rig.start(rig.new_cloud().run())
        await rig.boot("old")
        await rig.until(lambda: rig.ready("old"))
        await rig.boot("booting", bootLatency="20s")
        await rig.pass_time(5)
        before = at(rig.get("nodes", "old"), "metadata", "resourceVersion")
        await rig.stop(first)
        await rig.pass_time(5)
        rig.server.requests.reset()
        _ = rig.start(rig.new_cloud().run())
        assert await rig.until(lambda: bool(rig.find("nodes", "booting"))) == pytest.approx(
            10, abs=0.1
        )
        assert at(rig.get("nodes", "old"), "metadata", "resourceVersion") == before
        created = rig.server.requests.total(verb="create", resource="nodes")
        assert created == 1
        await rig.until(lambda: rig.ready("booting"))
        renewed = at(rig.get(LEASE, "old", COORDINATION), "spec", "renewTime")
        await rig.pass_time(HEARTBEAT)
        assert at(rig.get(LEASE, "old", COORDINATION), "spec", "renewTime") != renewed

    on_rig(scenario, with_world=False)


def test_a_cloud_that_restarts_notices_what_happened_meanwhile() -> None:
    async def scenario(rig: Rig) -> None:
        first = rig.start(rig.new_cloud().run())
        await rig.boot("off", "pressed")
        await rig.until(lambda: rig.ready("off", "pressed"))
        await rig.stop(first)
        await rig.patch_vm("off", powerState="Off")
        await rig.patch_vm("pressed", nodeConditions={"MemoryPressure": "True"})
        await rig.boot("new", bootLatency="1s")
        await rig.pass_time(100)
        _ = rig.start(rig.new_cloud().run())
        await rig.until(lambda: rig.condition("pressed", "MemoryPressure") == "True", within=1)
        await rig.until(lambda: rig.vm_phase("off") == "Stopped", within=1)
        await rig.until(lambda: rig.ready("new"), within=5)

    on_rig(scenario, with_world=False)


# Pods -------------------------------------------------------------------------------------------


def pod(name: str, node: str, **annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "app:1"}]},
    }


def test_a_pod_on_a_running_node_starts_within_about_a_second() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a")
        await rig.until(lambda: rig.ready("a"))
        await rig.create(pod("p", "a"))
        assert await rig.until(lambda: rig.running() == ["p"]) == pytest.approx(1, abs=0.1)
        status = rig.get("pods", "p")
        assert at(status, "status", "phase") == "Running"
        assert at(status, "status", "startTime")
        assert str(at(status, "status", "podIP")).startswith("10.")
        (container,) = objects(status, "status", "containerStatuses")
        assert (container["name"], container["image"], container["ready"]) == (
            "main",
            "app:1",
            True,
        )
        assert set(conditions(status)) == {
            "PodScheduled",
            "Initialized",
            "ContainersReady",
            "Ready",
        }

    on_rig(scenario)


@pytest.mark.parametrize(
    ("annotations", "grace", "seconds"),
    [
        ({}, None, 1.0),
        ({"simulation.machine.sapcloud.io/termination-seconds": "12"}, None, 12.0),
        ({"simulation.machine.sapcloud.io/termination-seconds": "12"}, 5, 5.0),
        ({"simulation.machine.sapcloud.io/termination-seconds": "90"}, None, 30.0),
        ({"simulation.machine.sapcloud.io/termination-seconds": "never"}, None, 1.0),
    ],
)
def test_a_deleted_pod_goes_after_what_it_asks_for_but_within_its_grace(
    annotations: dict[str, str], grace: int | None, seconds: float
) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a")
        await rig.until(lambda: rig.ready("a"))
        await rig.create(pod("p", "a", **annotations))
        await rig.until(lambda: rig.running() == ["p"])
        await rig.client.delete(_PODS, "p", namespace="default", grace_period_seconds=grace)
        took = await rig.until(lambda: rig.names("pods") == [], within=60)
        # Deadlines are in whole seconds, cut off.
        assert seconds - 1 < took <= seconds + 0.1

    on_rig(scenario)


def test_a_dead_vm_neither_starts_nor_ends_pods_until_it_is_back() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a")
        await rig.until(lambda: rig.ready("a"))
        await rig.create(pod("old", "a"))
        await rig.until(lambda: rig.running() == ["old"])
        await rig.patch_vm("a", powerState="Off")
        await rig.until(lambda: rig.vm_phase("a") == "Stopped")
        await rig.delete("/api/v1/namespaces/default/pods/old")
        await rig.create(pod("new", "a"))
        await rig.pass_time(20)
        assert rig.names("pods") == ["new", "old"]
        assert rig.running() == ["old"]
        await rig.patch_vm("a", powerState="On")
        await rig.until(lambda: rig.names("pods") == ["new"] == rig.running())

    on_rig(scenario)


def test_a_pod_made_anew_under_its_name_starts_as_one_of_its_own() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a")
        await rig.until(lambda: rig.ready("a"))
        await rig.create(pod("p", "a"))
        await rig.pass_time(0.8)
        await rig.client.delete(_PODS, "p", namespace="default", grace_period_seconds=0)
        await rig.create(pod("p", "a"))
        assert await rig.until(lambda: rig.running() == ["p"]) == pytest.approx(1, abs=0.1)

    on_rig(scenario)
