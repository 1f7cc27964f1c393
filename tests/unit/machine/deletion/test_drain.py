from __future__ import annotations

from datetime import timedelta

from mcm.api.core import PODS, VOLUME_ATTACHMENTS
from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench, with_settings


async def leaving(b: Bench) -> list[str]:
    return sorted(
        str(p["metadata"]["name"])  # type: ignore[index]
        for p in b.objects(PODS)
        if "deletionTimestamp" in p["metadata"]  # type: ignore[operator]
    )


def evictions(b: Bench) -> int:
    return sum(w.path.endswith("/eviction") for w in b.writes)


@on_bench
async def test_pods_are_evicted_and_waited_for_and_then_the_vm_goes_at_once() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.run_pod("a")
        await b.run_pod("b")
        await b.run_pod("agent", owner="DaemonSet")
        await b.delete_machine()
        await b.settle()
        assert await leaving(b) == ["a", "b"]
        node = await b.node()
        assert node.spec.unschedulable
        said = [c for c in node.status.conditions if c.type == "Terminating"]
        assert [(c.status, c.reason) for c in said] == [("True", "ScaleDown")]
        await b.settle(20)
        assert b.driver.vms
        await b.finish_leaving_pods()
        assert await b.until_gone() < 1.0
        # That it began, that it takes more than ten seconds, and the end of the finalizer.
        assert len(b.written("machines", "m")) == 3
        assert evictions(b) == 2


@on_bench
async def test_pods_with_volumes_leave_one_after_the_other_by_priority() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.attach("x")
        await b.attach("y")
        await b.run_pod("low", claims=("x",))
        await b.run_pod("high", claims=("y",), priority=5)
        await b.run_pod("plain")
        await b.delete_machine()
        await b.settle()
        assert await leaving(b) == ["high", "plain"]
        await b.finish_leaving_pods()
        await b.settle(30)
        assert await leaving(b) == [], "its volume has not left the node"
        await b.detach("y")
        await b.settle(10)
        assert await leaving(b) == [], "its volume is not attached elsewhere"
        await b.attached_to("y", "elsewhere")
        await b.settle(0.2)
        assert await leaving(b) == ["low"]
        await b.finish_leaving_pods()
        await b.detach("x")
        await b.attached_to("x", "elsewhere")
        await b.until_gone(within=1)


@on_bench
async def test_a_misconfigured_budget_is_named_on_the_machine_and_not_hammered() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.run_pod("p", labels={"app": "a"})
        await b.make_budget("strict", labels={"app": "a"}, allowed=0)
        await b.settle()
        await b.delete_machine()
        await b.settle()
        last = (await b.machine()).status.last_operation
        assert "default/strict is misconfigured and requires zero voluntary evictions" in (
            last.description
        )
        assert last.description.startswith("Drain failed due to - pod default/p: ")
        assert last.description.endswith("Will retry in next sync. Initiate node drain")
        assert last.state == "Failed"
        await b.settle(1200)
        assert evictions(b) == 0
        assert len(b.written("machines", "m")) == 3, "its phase, since when it is held, and why"
        assert "DrainBlocked" in b.events()


@on_bench
async def test_a_budget_that_comes_to_allow_it_lets_the_pod_go_at_once() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.run_pod("p", labels={"app": "a"})
        await b.make_budget("strict", labels={"app": "a"}, allowed=0)
        await b.settle()
        await b.delete_machine()
        await b.settle(5)
        assert await leaving(b) == []
        await b.allow("strict", 1)
        await b.settle(0.2)
        assert await leaving(b) == ["p"]


@on_bench
async def test_a_force_label_is_obeyed_within_a_second_however_the_drain_hangs() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.run_pod("p", labels={"app": "a"})
        await b.run_pod("v", claims=("x",))
        await b.make_budget("strict", labels={"app": "a"}, allowed=0)
        await b.settle()
        await b.delete_machine()
        await b.settle(30)
        assert b.driver.vms
        await b.label_machine("m", "force-deletion", "true")
        assert await b.until_gone() < 1.0
        assert not b.driver.vms
        assert "ForceDrained" in b.events()


@on_bench
async def test_when_the_drain_timeout_is_over_pods_are_deleted_by_force() -> None:
    async with bench(settings=with_settings(drain_timeout=timedelta(minutes=10))) as b:
        await b.make_class()
        await b.running(spec={"maxEvictRetries": 1000})
        await b.run_pod("p", claims=("x",))
        await b.delete_machine()
        await b.settle(595)
        assert b.driver.vms, "a pod that does not end is waited for"
        await b.until_gone(within=10)


@on_bench
async def test_a_drain_survives_its_process_and_keeps_its_deadline() -> None:
    async with bench(settings=with_settings(drain_timeout=timedelta(minutes=10))) as b:
        await b.make_class()
        await b.running()
        await b.run_pod("p")
        await b.delete_machine()
        await b.settle(300)
        await b.crash()
        await b.settle(200)
        await b.start()
        await b.settle(95)
        assert b.driver.vms
        await b.until_gone(within=10)


@on_bench
async def test_few_retries_mean_an_early_deletion_with_the_pods_own_grace() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running(spec={"maxEvictRetries": 2})
        await b.run_pod("p", labels={"app": "a"})
        await b.make_budget("strict", labels={"app": "a"}, allowed=0)
        await b.settle()
        await b.delete_machine()
        await b.settle(10)
        assert await leaving(b) == []
        await b.settle(60)
        assert await leaving(b) == ["p"]
        deletions = [w for w in b.writes if w.method == "DELETE" and w.on("pods", "p")]
        assert "gracePeriodSeconds" not in deletions[-1].body


@on_bench
async def test_a_short_drain_timeout_leaves_its_time_to_eviction() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running(spec={"drainTimeout": "15s"})
        await b.run_pod("held", labels={"app": "a"})
        await b.run_pod("free")
        await b.make_budget("strict", labels={"app": "a"}, allowed=0)
        await b.settle()
        await b.delete_machine()
        await b.settle(10)
        assert await leaving(b) == ["free"]
        assert not [w for w in b.writes if w.method == "DELETE" and w.on("pods", "held")]
        await b.until_gone(within=6)
        assert "ForceDrained" in b.events()


@on_bench
async def test_a_dead_node_is_drained_by_force_after_five_minutes_and_its_volumes_freed() -> None:
    # Nobody detaches anything here, so that the step takes as long as it may.
    async with bench(settings=with_settings(pv_detach_timeout=timedelta(seconds=10))) as b:
        await b.make_class()
        await b.running(spec={"healthTimeout": "1h"})
        await b.run_pod("p")
        attachment: JSONObject = {
            "metadata": {"name": "va"},
            "spec": {
                "attacher": "csi",
                "nodeName": "node-m",
                "source": {"persistentVolumeName": "pv"},
            },
        }
        await b.client.create(VOLUME_ATTACHMENTS, attachment)
        await b.set_ready("m", "Unknown")
        await b.settle(60)
        await b.delete_machine()
        await b.settle(230)
        assert b.driver.vms
        await b.until_gone(within=20)
        texts = [
            w.body["status"]["lastOperation"].get("description", "")  # type: ignore[index]
            for w in b.written("machines", "m")
            if w.path.endswith("/status") and "lastOperation" in w.body["status"]  # type: ignore[operator]
        ]
        assert "Force Drain successful. Delete Volume Attachments" in texts
        assert (
            "No Live VolumeAttachments for node: node-m. Moving to VM Deletion. "
            "Initiate VM deletion"
        ) in texts
        assert not await b.exists(VOLUME_ATTACHMENTS, "va")
        graces = [
            w.body.get("gracePeriodSeconds")
            for w in b.writes
            if w.method == "DELETE" and w.on("pods", "p")
        ]
        assert graces == [0]


@on_bench
async def test_a_pod_that_lands_on_the_node_late_is_taken_away_too() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.run_pod("first")
        await b.delete_machine()
        await b.settle()
        await b.run_pod("late")
        await b.settle()
        assert await leaving(b) == ["first", "late"]


@on_bench
async def test_a_hundred_drains_that_hang_hold_up_nobody() -> None:
    async with bench(settings=with_settings(machine_concurrent_syncs=2)) as b:
        await b.make_class()
        names = [f"m{n}" for n in range(60)]
        for name in names:
            await b.make_machine(name)
        for name in names:
            await b.until_phase("Pending", name)
            await b.join(name)
            await b.run_pod(f"p-{name}", name)
        for name in names:
            await b.until_phase("Running", name)
            await b.delete_machine(name)
        await b.settle(5)
        await b.make_machine("fresh")
        assert await b.until_phase("Pending", "fresh") < 2.0
        await b.join("fresh")
        assert await b.until_phase("Running", "fresh") < 2.0
        assert len(b.objects(MACHINES)) == 61


@on_bench
async def test_a_node_that_cannot_be_marked_is_shown_and_tried_again() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.run_pod("p")
        fault = b.faults.answer(403, message="not yours", method="PATCH", path="/nodes/")
        await b.delete_machine()
        await b.settle(2)
        last = (await b.machine()).status.last_operation
        assert last.description.startswith(
            "Drain failed due to failure in update of node conditions - "
        )
        assert "not yours" in last.description
        assert b.driver.vms
        fault.lift()
        await b.settle(10)
        assert await b.finish_leaving_pods() == ["p"]
        await b.until_gone(within=20)


@on_bench
async def test_a_forced_deletion_goes_on_even_if_the_cluster_refuses_everything() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.run_pod("p")
        await b.label_machine("m", "force-deletion", "True")
        b.faults.answer(403, message="not yours", method="PATCH|DELETE|POST", path="/nodes/|/pods/")
        await b.delete_machine()

        async def vm_gone() -> bool:
            return not b.driver.vms

        assert await b.until(vm_gone) < 2.0
        assert await b.exists(MACHINES, "m")
        b.faults.clear()
        await b.until_gone(within=20)
        texts = str([w.body for w in b.written("machines", "m")])
        assert "However, since it's a force deletion shall continue deletion of VM" in texts
        assert "Removal of finalizers from Node Object" in texts


@on_bench
async def test_the_pods_of_other_nodes_and_namespaces_are_none_of_its_business() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running("m")
        await b.running("other")
        await b.run_pod("theirs", "other")
        await b.delete_machine("m")
        await b.until_gone("m")
        assert (await b.client.get(PODS, "theirs", namespace=NAMESPACE)).metadata.name == "theirs"
