from __future__ import annotations

import pytest

from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject
from mcm.driver import Code, DriverError
from tests.unit.machine.bench import NAMESPACE, bench, on_bench


@on_bench
async def test_a_class_whose_provider_fails_holds_up_no_other() -> None:
    async with bench() as b:
        await b.make_class("broken")
        await b.make_class("good", with_secret=False)
        await b.settle()
        b.driver.vms["lost"] = "cloud:///lost"
        original = b.driver.list_machines

        async def list_machines(request):  # type: ignore[no-untyped-def]
            if request.machine_class.metadata.name == "broken":
                raise DriverError(Code.UNAUTHENTICATED, "who are you")
            return await original(request)

        b.driver.list_machines = list_machines  # type: ignore[method-assign]
        await b.settle(1300)
        assert "lost" not in b.driver.vms


@on_bench
async def test_a_provider_that_cannot_list_is_no_error() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.fail("list", Code.UNIMPLEMENTED, times=10)
        await b.settle(4000)
        assert 3 <= b.driver.count("list") <= 6


@on_bench
async def test_an_orphan_that_cannot_be_deleted_is_reported_and_tried_again() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.vms["lost"] = "cloud:///lost"
        b.driver.fail("delete", Code.INTERNAL, "stuck")
        await b.settle(1400)
        assert "OrphanVMStays" in b.events()
        await b.settle(1000)
        assert "lost" not in b.driver.vms


@on_bench
async def test_a_vm_left_behind_by_a_machine_is_looked_for_soon_after_its_end() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.crash()
        patch: JSONObject = {"metadata": {"finalizers": []}}
        await b.delete_machine()
        await b.client.patch(MACHINES, "m", patch, namespace=NAMESPACE)
        await b.start()
        assert b.driver.vms
        await b.settle(1400)
        assert not b.driver.vms


@on_bench
async def test_vms_without_a_machines_name_and_those_recorded_elsewhere_are_left_alone() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        b.driver.vms = {"": "cloud:///nameless", "alias": b.driver.vms["m"]}
        await b.settle(4000)
        assert len(b.driver.vms) == 2


@on_bench
@pytest.mark.parametrize("opaque", [f"{NAMESPACE}/opaque", ""])
async def test_nothing_is_collected_while_a_machine_cannot_be_read(opaque: str) -> None:
    async with bench() as b:
        await b.make_class()
        await b.settle()
        b.driver.vms["lost"] = "cloud:///lost"
        b.machines.mark_unreadable(opaque, "spec: Expected `object`, got `str`")
        await b.settle(4000)
        assert "lost" in b.driver.vms
        b.machines.remove(opaque, uid="uid-opaque", version="1")
        await b.settle(4000)
        assert "lost" not in b.driver.vms


@on_bench
async def test_what_cannot_be_read_elsewhere_holds_up_nothing_here() -> None:
    async with bench() as b:
        await b.make_class()
        await b.settle()
        b.driver.vms["lost"] = "cloud:///lost"
        b.machines.mark_unreadable("elsewhere/opaque", "spec: Expected `object`, got `str`")
        await b.settle(1400)
        assert "lost" not in b.driver.vms
