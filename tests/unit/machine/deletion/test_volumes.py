"""The step after a forced drain: volumes leave a dead node by its taint, a live one by deletion."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mcm.api.core import NODES, VOLUME_ATTACHMENTS
from mcm.api.meta import JSONObject
from mcm.client.requests import PatchType
from mcm.controllers.settings import ControllerSettings
from tests.unit.machine.bench import Bench, Write, bench, on_bench, with_settings

NODE = "node-m"
ATTACHER = "external-attacher/csi.example.com"
TAINT = "node.kubernetes.io/out-of-service"
LONG: JSONObject = {"healthTimeout": "10h"}
SHORTER = with_settings(pv_detach_timeout=timedelta(seconds=30))


async def attach(b: Bench, *names: str, finalizer: bool = True) -> None:
    """Attach volumes to the node: the cloud's part of their end is played by :func:`detach`."""
    for name in names:
        attachment: JSONObject = {
            "metadata": {"name": name, "finalizers": [ATTACHER] if finalizer else []},
            "spec": {
                "attacher": "csi.example.com",
                "nodeName": NODE,
                "source": {"persistentVolumeName": f"pv-{name}"},
            },
        }
        await b.client.create(VOLUME_ATTACHMENTS, attachment)
    await tell(b, *(f"kubernetes.io/csi/csi.example.com^{name}" for name in names))


async def detach(b: Bench, name: str) -> None:
    """As attach/detach controller and attacher do in the end."""
    if await b.exists(VOLUME_ATTACHMENTS, name):
        await b.client.delete(VOLUME_ATTACHMENTS, name)
        await b.client.patch(VOLUME_ATTACHMENTS, name, {"metadata": {"finalizers": None}})


async def tell(b: Bench, *volumes: str) -> None:
    """Say in the Node's status what is attached."""
    attached = [{"name": name, "devicePath": ""} for name in volumes]
    await b.client.patch(
        NODES,
        NODE,
        {"status": {"volumesAttached": attached or None}},
        subresource="status",
        patch_type=PatchType.MERGE,
    )


async def with_a_dead_kubelet(b: Bench, *volumes: str) -> None:
    """Bring a machine to the step, its kubelet silent for more than five minutes."""
    await b.make_class()
    await b.running(spec=LONG)
    await attach(b, *volumes)
    await b.set_ready("m", "Unknown")
    await b.settle(301)
    b.writes.clear()
    await b.delete_machine()


async def by_force(b: Bench, *volumes: str, finalizer: bool = True) -> None:
    """Bring a machine to the step whose kubelet is well."""
    await b.make_class()
    await b.running(spec=LONG)
    await attach(b, *volumes, finalizer=finalizer)
    await b.label_machine("m", "force-deletion", "true")
    await b.delete_machine()


async def tainted(b: Bench) -> bool:
    return any(taint.key == TAINT for taint in (await b.node()).spec.taints)


async def said(b: Bench) -> str:
    return (await b.machine()).status.last_operation.description


def deletions(b: Bench) -> list[Write]:
    return [w for w in b.writes if w.method == "DELETE" and w.on("volumeattachments")]


@on_bench
async def test_a_dead_node_is_given_up_and_its_volumes_are_waited_for() -> None:
    async with bench() as b:
        await with_a_dead_kubelet(b, "a", "b")
        await b.settle(5)
        taint = next(t for t in (await b.node()).spec.taints if t.key == TAINT)
        assert (taint.value, taint.effect) == ("nodeshutdown", "NoExecute")
        assert taint.time_added is not None
        assert b.driver.vms, "the VM waits for its volumes"
        text = await said(b)
        assert f"Node {NODE} is out of service since 2026-01-01T00:05:0" in text
        assert "Waiting until 2026-01-01T00:07:0" in text
        assert "(2 at first)" in text
        assert text.endswith("Delete Volume Attachments")
        assert "OutOfService" in b.events()
        before = len(b.writes)
        await detach(b, "a")
        await b.settle(20)
        assert b.driver.vms
        await detach(b, "b")
        await b.settle(20)
        assert b.driver.vms, "the Node's status says attached"
        assert len(b.writes) == before, "a wait writes nothing"
        await tell(b)
        assert await b.until_gone() < 1.0
        assert deletions(b) == []


@on_bench
async def test_what_is_not_detached_in_time_is_deleted_and_the_vm_goes() -> None:
    async with bench() as b:
        await with_a_dead_kubelet(b, "a", "b")
        await b.settle(10)
        await detach(b, "a")
        await b.settle(105)
        assert b.driver.vms
        assert deletions(b) == []
        await b.until_gone(within=10)
        assert len(deletions(b)) == 1
        assert "VolumesLeftAttached" in b.events()
        texts = str([w.body for w in b.written("machines", "m")])
        assert f"No Live VolumeAttachments for node: {NODE}. Moving to VM Deletion." in texts


@on_bench
async def test_a_server_that_does_not_say_its_version_counts_as_old() -> None:
    async with bench() as b:
        fault = b.faults.answer(500, message="no version", path="/version$")
        await with_a_dead_kubelet(b, "a")
        await b.settle(3)
        assert not await tainted(b)
        assert len(deletions(b)) == 1
        assert "VolumeAttachments for node node-m are being deleted since" in await said(b)
        fault.lift()
        await tell(b)
        await detach(b, "a")
        await b.until_gone(within=1)


@pytest.mark.parametrize("status", ["True", "False"])
def test_a_kubelet_that_is_heard_of_is_not_given_up(status: str) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            await b.running(spec=LONG)
            await attach(b, "a")
            await b.set_ready("m", status)
            await b.settle(301)
            await b.label_machine("m", "force-deletion", "true")
            await b.delete_machine()
            await b.settle(5)
            assert not await tainted(b)
            assert len(deletions(b)) == 1
            assert b.driver.vms, "an attachment that is being deleted is no detached volume"
            await tell(b)
            await detach(b, "a")
            assert await b.until_gone() < 1.0

    main()


@on_bench
async def test_a_kubelet_that_is_silent_for_less_than_five_minutes_is_not_given_up() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running(spec=LONG)
        await attach(b, "a")
        await b.set_ready("m", "Unknown")
        await b.settle(60)
        await b.label_machine("m", "force-deletion", "true")
        await b.delete_machine()
        await b.settle(5)
        assert not await tainted(b)
        assert len(deletions(b)) == 1


@on_bench
async def test_an_attachment_that_nobody_ends_delays_the_vm_for_the_detach_timeout() -> None:
    async with bench(settings=SHORTER) as b:
        await by_force(b, "a")
        await b.settle(28)
        assert b.driver.vms
        assert len(deletions(b)) == 1
        await b.until_gone(within=5)
        assert len(deletions(b)) == 1
        assert "VolumesLeftAttached" in b.events()


@on_bench
async def test_without_a_detach_timeout_nothing_is_waited_for() -> None:
    settings = with_settings(pv_detach_timeout=timedelta())
    async with bench(settings=settings) as b:
        await by_force(b, "a")
        assert await b.until_gone() < 3.0
        assert len(deletions(b)) == 1


@on_bench
async def test_attachments_without_a_finalizer_are_gone_at_once() -> None:
    async with bench() as b:
        await by_force(b, "a", "b", finalizer=False)
        await tell(b)
        assert await b.until_gone() < 3.0
        assert len(deletions(b)) == 2


@on_bench
async def test_what_the_cluster_attaches_anew_is_not_fought_over() -> None:
    async with bench(settings=SHORTER) as b:
        await by_force(b, "a", "b", finalizer=False)
        deadline = b.clock.monotonic() + 20

        async def gone() -> bool:
            """A controller makes the attachment again as soon as it is deleted."""
            if b.driver.vms and not await b.exists(VOLUME_ATTACHMENTS, "a"):
                await attach(b, "a")
            return not b.driver.vms

        await b.until(gone, within=deadline - b.clock.monotonic())
        assert len(deletions(b)) <= 2


@on_bench
async def test_a_restart_neither_taints_twice_nor_waits_anew() -> None:
    async with bench() as b:
        await with_a_dead_kubelet(b, "a")
        await b.settle(60)
        assert await tainted(b)
        await b.crash()
        b.writes.clear()
        await b.settle(30)
        await b.start()
        await b.settle(20)
        assert b.driver.vms
        assert not b.written("nodes")
        await b.until_gone(within=15)


@on_bench
async def test_a_taint_that_does_not_say_since_when_says_it_then() -> None:
    async with bench(settings=SHORTER) as b:
        await b.make_class()
        await b.running(spec=LONG)
        await attach(b, "a")
        theirs = {"key": TAINT, "value": "nodeshutdown", "effect": "NoExecute"}
        other = {"key": "x", "effect": "NoSchedule"}
        await b.client.patch(NODES, NODE, {"spec": {"taints": [other, theirs]}})
        await b.set_ready("m", "Unknown")
        await b.settle(301)
        await b.delete_machine()
        await b.settle(3)
        taints = (await b.node()).spec.taints
        assert [t.key for t in taints if t.key in (TAINT, "x")] == ["x", TAINT]
        assert all(t.time_added for t in taints if t.key == TAINT)
        await b.until_gone(within=31)


@on_bench
async def test_a_taint_that_is_refused_leaves_the_deletion_of_attachments() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running(spec=LONG)
        await attach(b, "a")
        await b.set_ready("m", "Unknown")
        await b.settle(301)
        fault = b.faults.answer(403, message="not yours", method="PATCH", path=f"/nodes/{NODE}$")
        b.writes.clear()
        await b.delete_machine()
        await b.settle(5)
        assert len(deletions(b)) == 1
        assert "NotOutOfService" in b.events()
        assert len([w for w in b.written("nodes") if TAINT in str(w.body)]) == 1
        fault.lift()
        await tell(b)
        await detach(b, "a")
        await b.until_gone(within=5)


@on_bench
async def test_a_node_without_attached_volumes_is_not_given_up() -> None:
    async with bench() as b:
        await with_a_dead_kubelet(b)
        await b.until_gone(within=3)
        assert not [w for w in b.written("nodes") if TAINT in str(w.body)]


def test_the_detach_timeout_is_two_minutes_by_default() -> None:
    assert ControllerSettings().pv_detach_timeout == timedelta(minutes=2)
