"""Between the confirmed end of a VM and that of its Node, volumes still attached are let go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mcm.api.core import NODES, VOLUME_ATTACHMENTS
from mcm.api.machine import LastOperation
from mcm.controllers.machine import last_operation
from mcm.controllers.machine.deletion.volumes_after_vm import LONGEST
from mcm.driver import Code
from tests.unit.machine.bench import Bench, bench, on_bench, with_settings
from tests.unit.machine.deletion.test_volumes import (
    LONG,
    NODE,
    TAINT,
    attach,
    deletions,
    detach,
    said,
    tainted,
    tell,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECONDS = LONGEST.total_seconds()


async def deleted(b: Bench, *volumes: str) -> None:
    """Have a machine deleted whose drain has nothing to do, volumes still attached to its Node."""
    await b.make_class()
    await b.running(spec=LONG)
    await attach(b, *volumes)
    await b.settle()
    b.writes.clear()
    await b.delete_machine()


async def let_go(b: Bench, name: str) -> None:
    await tell(b)
    await detach(b, name)


@pytest.mark.parametrize(
    ("done", "confirmed"),
    [
        (last_operation.vm_deleted(), True),
        (last_operation.vm_gone(), True),
        (last_operation.out_of_service_after_vm(NODE, 1, NOW, NOW), True),
        (last_operation.detaching_after_vm(NODE, 1, NOW, NOW), True),
        (last_operation.vm_left_behind("VM deletion was successful."), False),
        (last_operation.vm_never_created("VM not found"), False),
        (last_operation.node_deletion_failed(NODE, "no"), False),
    ],
    ids=lambda value: value.description[:40] if isinstance(value, LastOperation) else "",
)
def test_only_a_provider_confirms_that_a_vm_is_deleted(
    done: LastOperation, *, confirmed: bool
) -> None:
    assert last_operation.says_vm_deleted(done) is confirmed


@pytest.mark.parametrize("missing", [False, True], ids=["deleted", "not found"])
def test_the_node_is_given_up_and_goes_as_soon_as_its_volumes_do(*, missing: bool) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            if missing:
                b.driver.fail("delete", Code.NOT_FOUND)
            await deleted(b, "a")
            await b.settle(10)
            assert b.driver.count("delete") == 1
            assert await tainted(b)
            text = await said(b)
            assert f"Node {NODE} is out of service since 2026-01-01T00:00:0" in text
            assert text.endswith("(1 at first). Initiate node object deletion")
            before = len(b.writes)
            await detach(b, "a")
            await b.settle(5)
            assert await b.exists(NODES, NODE), "its status says attached"
            assert len(b.writes) == before, "a wait writes nothing"
            await tell(b)
            assert await b.until_gone() < 1.0
            assert not await b.exists(NODES, NODE)
            assert deletions(b) == []
            assert b.events().count("OutOfService") == 1
            assert "VolumesLeftAttached" not in b.events()

    main()


@pytest.mark.parametrize(
    ("timeout", "least", "most"), [(120.0, SECONDS, SECONDS + 5), (10.0, 10.0, 15.0), (0, 0, 5)]
)
def test_what_is_never_detached_delays_the_node_for_a_bounded_time(
    timeout: float, least: float, most: float
) -> None:
    @on_bench
    async def main() -> None:
        settings = with_settings(pv_detach_timeout=timedelta(seconds=timeout))
        async with bench(settings=settings) as b:
            await deleted(b, "a")
            assert least - 1 <= await b.until_gone() <= most  # a taint's time is of whole seconds
            assert not await b.exists(NODES, NODE)
            await b.settle()
            assert ("VolumesLeftAttached" in b.events()) is (timeout > 0)

    main()


@pytest.mark.parametrize("trouble", ["version", "taint"])
def test_where_the_taint_is_of_no_use_attachments_are_deleted(trouble: str) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            if trouble == "version":
                b.faults.answer(500, message="no version", path="/version$")
            await b.make_class()
            await b.running(spec=LONG)
            await attach(b, "a")
            b.driver.latency = 5.0
            await b.delete_machine()
            await b.settle(4)
            if trouble == "taint":
                path = f"/nodes/{NODE}$"
                b.faults.answer(403, message="not yours", method="PATCH", path=path)
            await b.settle(10)
            assert not await tainted(b)
            assert len(deletions(b)) == 1
            assert "VolumeAttachments for node node-m are being deleted since" in await said(b)
            assert ("NotOutOfService" in b.events()) is (trouble == "taint")
            b.faults.clear()
            await let_go(b, "a")
            assert await b.until_gone() < 1.0

    main()


@on_bench
async def test_attachments_that_cannot_be_deleted_do_not_keep_the_node() -> None:
    async with bench() as b:
        b.faults.answer(500, message="no version", path="/version$")
        b.faults.answer(403, message="not yours", method="DELETE", path="/volumeattachments/")
        await deleted(b, "a")
        assert await b.until_gone() < SECONDS + 5
        assert not await b.exists(NODES, NODE)


@on_bench
async def test_a_vm_that_is_left_behind_may_have_its_volumes_mounted() -> None:
    async with bench() as b:
        b.driver.fail("delete", Code.INVALID_ARGUMENT, times=3)
        await b.make_class()
        await b.running(spec=LONG)
        await attach(b, "a", finalizer=False)
        await b.label_machine("m", "force-deletion", "true")
        b.writes.clear()
        await b.delete_machine()
        assert await b.until_gone() < 5
        assert b.driver.vms
        assert not [w for w in b.written("nodes") if TAINT in str(w.body)]


@on_bench
async def test_what_is_being_detached_already_needs_no_taint() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running(spec=LONG)
        await attach(b, "a")
        await detach_begun(b, "a")
        b.writes.clear()
        await b.delete_machine()
        assert await b.until_gone() < 5
        assert not [w for w in b.written("nodes") if TAINT in str(w.body)]


async def detach_begun(b: Bench, name: str) -> None:
    """As the attach/detach controller does; the attacher takes its time."""
    await tell(b)
    await b.client.delete(VOLUME_ATTACHMENTS, name)


@on_bench
async def test_a_restart_neither_taints_twice_nor_waits_anew() -> None:
    async with bench() as b:
        await deleted(b, "a")
        await b.settle(10)
        assert await tainted(b)
        await b.crash()
        b.writes.clear()
        await b.settle(10)
        await b.start()
        await b.settle(5)
        assert await b.exists(NODES, NODE)
        assert not [w for w in b.written("nodes") if TAINT in str(w.body)]
        await b.until_gone(within=10)
