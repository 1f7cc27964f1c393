from __future__ import annotations

import pytest

from mcm.api.meta import JSONObject
from tests.unit.world.manifests import bare_node, claim, pod, storage_class, using, workload
from tests.unit.world.rig import Rig, at, name_of, on_rig
from tests.unit.world.storage.scene import (
    ATTACHMENTS,
    POD_PATH,
    attached,
    boot,
    on_node,
    told,
    volume_of,
)

IN_USE_NOBODY_UNMOUNTS = 360
ATTACHMENT_PATH = "/apis/storage.k8s.io/v1/volumeattachments"


async def run_with_volume(rig: Rig, node: str = "a", of_class: str = "simulated-disk") -> str:
    """Run the pod ``p`` with a volume on ``node``; return the volume."""
    await rig.create(claim("data", storageClassName=of_class))
    await rig.create(pod("p", volumes=using("data"), nodeSelector=on(node)))
    await rig.until(lambda: rig.running() == ["p"])
    return volume_of(rig, "data")


def on(node: str) -> dict[str, str]:
    return {"kubernetes.io/hostname": node}


async def out_of_service(rig: Rig, node: str) -> None:
    taints = at(rig.get("nodes", node), "spec", "taints")
    key = "node.kubernetes.io/out-of-service"
    ours: JSONObject = {"key": key, "value": "nodeshutdown", "effect": "NoExecute"}
    kept = taints if isinstance(taints, list) else []
    await rig.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": [*kept, ours]}})


def test_a_volume_is_detached_here_before_it_is_attached_there_for_the_pod_that_waits() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a", "b")
        disk = await run_with_volume(rig)
        await rig.create(pod("next", volumes=using("data"), nodeSelector=on("b")))
        await rig.pass_time(20)
        assert attached(rig) == {disk: "a"}
        text = f'Multi-Attach error for volume "{disk}" Volume is already used by pod(s) p'
        assert told(rig, "next") == [("FailedAttachVolume", text)]
        seen: list[dict[str, str]] = []
        rig.server.store.subscribe(
            lambda _: seen.append(attached(rig)), "volumeattachments.storage.k8s.io"
        )
        await rig.delete(f"{POD_PATH}/p")
        waited = await rig.until(lambda: rig.running() == ["next"])
        # The pod's end, detaching, attaching, the pod's start.
        assert waited == pytest.approx(1 + 1 + 2 + 1, abs=0.2)
        assert [dict(t) for t in dict.fromkeys(tuple(s.items()) for s in seen)] == [
            {disk: "a"},
            {},
            {disk: "b?"},
            {disk: "b"},
        ]
        assert (on_node(rig, "a"), on_node(rig, "b")) == (([], []), ([disk], [disk]))

    on_rig(scenario)


def test_a_volume_leaves_the_nodes_list_before_it_is_detached() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        disk = await run_with_volume(rig)
        await rig.delete(f"{POD_PATH}/p")
        await rig.until(lambda: on_node(rig, "a") == ([], []), within=5)
        assert attached(rig) == {disk: "a"}
        await rig.until(lambda: attached(rig) == {}, within=2)

    on_rig(scenario)


def test_the_times_are_the_classes_and_those_of_a_volumes_annotations_win() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        await rig.create(storage_class("slow", attachSeconds="5", detachSeconds="7.5"))
        started = rig.now
        disk = await run_with_volume(rig, of_class="slow")
        assert rig.now - started == pytest.approx(5 + 1, abs=0.1)
        await rig.delete(f"{POD_PATH}/p")
        await rig.until(lambda: "p" not in rig.names("pods"))
        await rig.pass_time(1)
        note = {"simulation.machine.sapcloud.io/detach-seconds": "20"}
        await rig.patch(f"/api/v1/persistentvolumes/{disk}", {"metadata": {"annotations": note}})
        left = await rig.until(lambda: attached(rig) == {}, within=40)
        assert left == pytest.approx(19, abs=0.1)

    on_rig(scenario)


def test_failed_attempts_are_told_and_made_again() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        await rig.create(storage_class("flaky", attachFailures="2", detachFailures="1"))
        await rig.create(claim("data", storageClassName="flaky"), pod("p", volumes=using("data")))
        await rig.until(lambda: any("failed" in str(t) for _, t in told(rig, "p")), within=5)
        (attachment,) = rig.all(*ATTACHMENTS)
        assert "fails 2 times" in str(at(attachment, "status", "attachError", "message"))
        # Three attempts of 2 s, pauses of 1 and 2 s between.
        await rig.until(lambda: rig.running() == ["p"], within=10)
        assert rig.now == pytest.approx(2 + 1 + 2 + 2 + 2 + 1 + 1, abs=1.5)
        (attachment,) = rig.all(*ATTACHMENTS)
        assert at(attachment, "status", "attachError") is None

        disk = volume_of(rig, "data")
        await rig.delete(f"{POD_PATH}/p")
        await rig.until(lambda: bool(_detach_error(rig)), within=5)
        # What could not be detached is on the Node's list again.
        await rig.until(lambda: on_node(rig, "a") == ([disk], []), within=1)
        await rig.until(lambda: attached(rig) == {}, within=5)
        await rig.until(lambda: on_node(rig, "a") == ([], []), within=1)

    on_rig(scenario)


def _detach_error(rig: Rig) -> str:
    return "".join(
        str(at(a, "status", "detachError", "message") or "") for a in rig.all(*ATTACHMENTS)
    )


def test_a_stuck_volume_stays_where_it_is_until_somebody_helps() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        await rig.create(storage_class("stuck", detachSeconds="never"))
        disk = await run_with_volume(rig, of_class="stuck")
        await rig.delete(f"{POD_PATH}/p")
        await rig.pass_time(3600)
        (attachment,) = rig.all(*ATTACHMENTS)
        assert at(attachment, "metadata", "deletionTimestamp")
        note = {"simulation.machine.sapcloud.io/detach-seconds": "0"}
        await rig.patch(f"/api/v1/persistentvolumes/{disk}", {"metadata": {"annotations": note}})
        await rig.until(lambda: attached(rig) == {}, within=1)

    on_rig(scenario)


def test_a_volume_with_illegible_settings_is_not_attached_but_says_why_until_mended() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        await rig.create(storage_class("now"), claim("data", storageClassName="now"))
        await rig.until(lambda: bool(volume_of(rig, "data")))
        path = f"/api/v1/persistentvolumes/{volume_of(rig, 'data')}"
        key = "simulation.machine.sapcloud.io/attach-seconds"
        await rig.patch(path, {"metadata": {"annotations": {key: "-1"}}})
        await rig.create(pod("p", volumes=using("data")))
        await rig.pass_time(30)
        (attachment,) = rig.all(*ATTACHMENTS)
        assert "attachSeconds is '-1'" in str(at(attachment, "status", "attachError", "message"))
        await rig.patch(path, {"metadata": {"annotations": {key: None}}})
        await rig.until(lambda: rig.running() == ["p"], within=4)

    on_rig(scenario)


def test_a_volume_that_many_may_have_is_attached_to_many_nodes() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a", "b")
        await rig.create(
            storage_class("net"), claim("data", modes=("ReadWriteMany",), storageClassName="net")
        )
        await rig.create(*(pod(f"p{n}", volumes=using("data"), nodeSelector=on(n)) for n in "ab"))
        await rig.until(lambda: len(rig.running()) == 2, within=4)
        assert len(rig.all(*ATTACHMENTS)) == 2
        await rig.delete(f"{POD_PATH}/pa")
        await rig.until(lambda: len(rig.all(*ATTACHMENTS)) == 1, within=4)
        assert list(attached(rig).values()) == ["b"]

    on_rig(scenario)


def test_a_volume_stays_while_any_pod_of_the_node_uses_it() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        disk = await run_with_volume(rig)
        await rig.create(pod("q", volumes=using("data")))
        await rig.until(lambda: len(rig.running()) == 2, within=2)
        await rig.delete(f"{POD_PATH}/p")
        await rig.pass_time(20)
        assert (attached(rig), on_node(rig, "a")) == ({disk: "a"}, ([disk], [disk]))

    on_rig(scenario)


def test_an_attachment_deleted_by_hand_is_detached_and_made_anew_for_the_pod_that_uses_it() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        disk = await run_with_volume(rig)
        (before,) = rig.all(*ATTACHMENTS)
        await rig.delete(f"{ATTACHMENT_PATH}/{name_of(before)}")
        await rig.pass_time(0.5)
        assert attached(rig) == {disk: "a"}
        await rig.until(lambda: attached(rig) == {disk: "a?"}, within=1)
        assert on_node(rig, "a")[0] == []
        await rig.until(lambda: on_node(rig, "a") == ([disk], [disk]), within=3)
        (after,) = rig.all(*ATTACHMENTS)
        assert name_of(after) == name_of(before)
        assert at(after, "metadata", "uid") != at(before, "metadata", "uid")

    on_rig(scenario)


def test_a_pod_that_comes_while_its_volume_is_detached_here_waits_until_it_is_attached_anew() -> (
    None
):
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        await rig.create(storage_class("slow", detachSeconds="10"))
        disk = await run_with_volume(rig, of_class="slow")
        (before,) = rig.all(*ATTACHMENTS)
        await rig.delete(f"{POD_PATH}/p")
        await rig.until(lambda: on_node(rig, "a") == ([], []), within=3)
        await rig.pass_time(1)
        await rig.create(pod("next", volumes=using("data")))
        waited = await rig.until(lambda: rig.running() == ["next"])
        assert waited == pytest.approx(9 + 2 + 1, abs=0.2)
        (after,) = rig.all(*ATTACHMENTS)
        assert at(after, "metadata", "uid") != at(before, "metadata", "uid")
        assert on_node(rig, "a") == ([disk], [disk])

    on_rig(scenario)


def test_a_volume_deleted_while_it_is_attached_is_detached() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        disk = await run_with_volume(rig)
        await rig.delete(f"/api/v1/persistentvolumes/{disk}")
        await rig.until(lambda: attached(rig) == {}, within=5)
        assert on_node(rig, "a") == ([], [])

    on_rig(scenario)


def test_a_claim_deleted_with_its_pod_takes_the_volume_along_once_that_is_detached() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        await rig.create(storage_class("slow", detachSeconds="10"))
        disk = await run_with_volume(rig, of_class="slow")
        await rig.delete(f"{POD_PATH}/p")
        await rig.delete("/api/v1/namespaces/default/persistentvolumeclaims/data")
        await rig.pass_time(5)
        assert at(rig.get("persistentvolumes", disk), "status", "phase") == "Released"
        await rig.until(lambda: attached(rig) == {}, within=10)
        await rig.until(lambda: rig.names("persistentvolumes") == [], within=1)

    on_rig(scenario)


# Nodes in trouble --------------------------------------------------------------------------------


def test_a_crashed_nodes_volume_is_given_away_six_minutes_after_its_pod_was_deleted() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a", "b")
        disk = await run_with_volume(rig)
        await rig.patch_vm("a", powerState="Off")
        await rig.until(lambda: rig.condition("a") == "Unknown", within=60)
        await rig.pass_time(600)
        assert attached(rig) == {disk: "a"}
        assert await rig.send("DELETE", f"{POD_PATH}/p", {"gracePeriodSeconds": 0}) == 200
        await rig.create(pod("next", volumes=using("data"), nodeSelector=on("b")))
        waited = await rig.until(lambda: attached(rig) == {disk: "b"}, within=400)
        assert waited == pytest.approx(IN_USE_NOBODY_UNMOUNTS + 1 + 2, abs=0.2)
        assert on_node(rig, "a") == ([], [disk])  # its kubelet has never said otherwise
        await rig.until(lambda: rig.running() == ["next"], within=2)

    on_rig(scenario)


def test_a_node_out_of_service_loses_its_pods_and_volumes_at_once() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a", "b")
        disk = await run_with_volume(rig)
        everywhere = [{"operator": "Exists"}]
        await rig.create(pod("stays", nodeName="a", tolerations=everywhere))
        await rig.until(lambda: len(rig.running()) == 2)
        await rig.patch_vm("a", powerState="Off")
        await rig.until(lambda: rig.condition("a") == "Unknown", within=60)
        await rig.create(pod("next", volumes=using("data"), nodeSelector=on("b")))
        await rig.pass_time(60)
        assert "p" in rig.names("pods")
        await out_of_service(rig, "a")
        waited = await rig.until(lambda: attached(rig) == {disk: "b"}, within=10)
        assert waited == pytest.approx(1 + 2, abs=0.2)
        assert sorted(rig.names("pods")) == ["next", "stays"]

    on_rig(scenario)


def test_nobody_is_believed_that_a_ready_node_is_out_of_service() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        disk = await run_with_volume(rig)
        await out_of_service(rig, "a")
        await rig.pass_time(60)
        assert (rig.running(), attached(rig)) == (["p"], {disk: "a"})

    on_rig(scenario)


def test_a_pod_that_is_terminating_on_a_node_out_of_service_is_gone_though_it_tolerates_it() -> (
    None
):
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        await rig.create(pod("p", tolerations=[{"operator": "Exists"}]))
        await rig.until(lambda: rig.running() == ["p"])
        await rig.patch_vm("a", powerState="Off")
        await rig.until(lambda: rig.condition("a") == "Unknown", within=60)
        await out_of_service(rig, "a")
        await rig.pass_time(5)
        assert rig.names("pods") == ["p"]
        await rig.delete(f"{POD_PATH}/p")
        await rig.until(lambda: rig.names("pods") == [], within=1)

    on_rig(scenario)


def test_the_volume_of_a_deleted_node_waits_six_minutes_if_it_was_mounted() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a", "b")
        disk = await run_with_volume(rig)
        await rig.patch_vm("a", powerState="Off")
        await rig.delete("/api/v1/nodes/a")
        await rig.until(lambda: rig.names("pods") == [], within=10)
        await rig.create(pod("next", volumes=using("data"), nodeSelector=on("b")))
        waited = await rig.until(lambda: attached(rig) == {disk: "b"}, within=400)
        assert waited == pytest.approx(IN_USE_NOBODY_UNMOUNTS + 3, abs=0.5)

    on_rig(scenario)


def test_the_volume_of_a_deleted_node_goes_at_once_if_it_was_unmounted() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a", "b")
        await rig.create(storage_class("slow", detachSeconds="30"))
        disk = await run_with_volume(rig, of_class="slow")
        await rig.delete(f"{POD_PATH}/p")
        await rig.until(lambda: on_node(rig, "a") == ([], []), within=3)
        await rig.delete("/api/v1/nodes/a")
        assert attached(rig) == {disk: "a"}
        await rig.until(lambda: attached(rig) == {}, within=31)

    on_rig(scenario)


def test_a_kubelet_that_is_silent_for_a_while_finds_its_volumes_again() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        disk = await run_with_volume(rig)
        await rig.patch_vm("a", powerState="Off")
        await rig.until(lambda: rig.condition("a") == "Unknown", within=60)
        await rig.delete(f"{POD_PATH}/p")
        await rig.pass_time(30)
        assert on_node(rig, "a") == ([disk], [disk])
        await rig.patch_vm("a", powerState="On")
        await rig.until(lambda: attached(rig) == {}, within=30)
        assert on_node(rig, "a") == ([], [])

    on_rig(scenario)


# What it costs, and what a restart forgets -------------------------------------------------------


def test_a_settled_cluster_with_volumes_writes_nothing_but_leases_restarted_or_not() -> None:
    async def scenario(rig: Rig) -> None:
        world = rig.start(rig.new_world().run())
        await rig.boot("a", "b")
        await rig.create(*(claim(f"c{i}") for i in range(6)), claim("unused"))
        await rig.create(*(pod(f"p{i}", volumes=using(f"c{i}")) for i in range(6)))
        await rig.until(lambda: len(rig.running()) == 6)
        await rig.create(pod("waits", volumes=using("c0", "missing")))
        await rig.pass_time(60)
        before = attached(rig)
        for _ in range(2):
            rig.server.requests.reset()
            await rig.pass_time(3600)
            leases = {"kubelet-simulated patch leases.coordination.k8s.io"}
            assert set(rig.steady_writes()) == leases
            assert attached(rig) == before
            await rig.stop(world)
            world = rig.start(rig.new_world().run())
            await rig.pass_time(1)

    on_rig(scenario, with_world=False, heartbeat=30, grace=120)


def test_what_is_under_way_when_the_world_stops_is_carried_on_by_the_next() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a", "b")
        await rig.create(claim("data"), pod("p", volumes=using("data"), nodeSelector=on("a")))
        for _ in range(60):  # a world lives for a moment at a time
            world = rig.start(rig.new_world().run())
            await rig.pass_time(0.31)
            await rig.stop(world)
        last = rig.start(rig.new_world().run())
        await rig.until(lambda: rig.running() == ["p"], within=10)
        assert attached(rig) == {volume_of(rig, "data"): "a"}
        assert len(rig.names("persistentvolumes")) == 1
        await rig.stop(last)

    on_rig(scenario, with_world=False)


def test_a_deployments_pod_moves_with_its_volume_when_its_node_is_drained() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a", "b")
        web = workload("Deployment", replicas=1)
        web["spec"]["template"]["spec"]["volumes"] = using("data")  # type: ignore[index]
        await rig.create(claim("data"), web)
        await rig.until(lambda: len(rig.running()) == 1)
        ((name, here),) = rig.placed().items()
        await rig.cordon(here)
        assert await rig.evict(name) == 201
        there = "b" if here == "a" else "a"
        await rig.until(lambda: attached(rig) == {volume_of(rig, "data"): there}, within=10)
        await rig.until(lambda: len(rig.running()) == 1, within=2)

    on_rig(scenario)


def test_nodes_without_a_kubelet_get_attachments_all_the_same() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.create(bare_node("n"), claim("data"), pod("p", volumes=using("data")))
        await rig.until(lambda: attached(rig) == {volume_of(rig, "data"): "n"}, within=5)

    on_rig(scenario)
