from __future__ import annotations

import pytest

from mcm.api.machine import MACHINE_CLASSES, MACHINES
from mcm.api.meta import JSONObject
from mcm.controllers.settings import ControllerSettings
from mcm.driver import Code, DeleteMachineResponse, DriverError
from mcm.sandbox.cluster import create_all
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


@on_bench
async def test_a_nameless_vm_is_collected_after_a_longer_grace() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        b.driver.vms[""] = "cloud:///nameless"
        await b.settle(1150)
        assert "" in b.driver.vms
        await b.settle(2000)
        assert set(b.driver.vms) == {"m"}
        assert "OrphanVMDeleted" in b.events()


@on_bench
async def test_a_vm_that_a_machine_records_is_its_own_whatever_it_is_called() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        for alias in ("", "alias"):
            b.driver.vms = {alias: next(iter(b.driver.vms.values()))}
            await b.settle(4000)
            assert len(b.driver.vms) == 1


@on_bench
async def test_a_nameless_vm_that_a_machine_came_to_record_is_seen_by_asking_the_server() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.vms[""] = "cloud:///nameless"
        await b.settle(1000)
        with b.unreachable("/machines"):
            await b.make_machine(spec={"providerID": "cloud:///nameless"})
            await b.settle(3000)
        assert "" in b.driver.vms


@on_bench
async def test_a_vm_that_two_classes_list_is_deleted_once() -> None:
    async with bench() as b:
        await b.make_class("one")
        await b.make_class("two", with_secret=False)
        b.driver.vms["lost"] = "cloud:///lost"
        asked = []

        async def delete_machine(request):  # type: ignore[no-untyped-def]
            asked.append(request.machine.metadata.name)
            await b.clock.sleep(100)  # and the cloud lists it all the while
            b.driver.vms.pop("lost", None)
            return DeleteMachineResponse()

        b.driver.delete_machine = delete_machine  # type: ignore[method-assign]
        await b.settle(3000)
        assert asked == ["lost"]
        assert not b.driver.vms


@on_bench
async def test_a_vm_of_another_classs_machine_is_left_alone() -> None:
    async with bench() as b:
        await b.make_class("other", with_secret=False)
        await b.make_class()
        await b.running()
        await b.settle(4000)
        assert set(b.driver.vms) == {"m"}
        assert b.driver.count("delete") == 0


@on_bench
async def test_what_keeps_one_vm_keeps_no_other() -> None:
    async with bench() as b:
        await b.make_class()
        await b.settle()
        for name in ("a", "b", "c"):
            b.driver.vms[name] = f"cloud:///{name}"
        b.faults.answer(500, method="GET", path="/machines/b$")
        original = b.driver.delete_machine

        async def delete_machine(request):  # type: ignore[no-untyped-def]
            if request.machine.metadata.name == "a":
                raise DriverError(Code.INTERNAL, "stuck")
            return await original(request)

        b.driver.delete_machine = delete_machine  # type: ignore[method-assign]
        await b.settle(1400)
        assert set(b.driver.vms) == {"a", "b"}
        assert "OrphanVMStays" in b.events()


@on_bench
async def test_many_orphans_go_a_few_at_a_time() -> None:
    async with bench() as b:
        await b.make_class()
        await b.settle()
        for n in range(35):
            b.driver.vms[f"lost-{n}"] = f"cloud:///lost-{n}"
        before = len(b.driver.vms)
        while len(b.driver.vms) == before:
            await b.settle(1)
        gone = []
        for _ in range(4):
            await b.settle(30)
            gone.append(before - len(b.driver.vms))
            await b.settle(30)
        assert gone == [10, 20, 30, 35]
        counted = {"namespace": NAMESPACE, "machine_class": "c", "result": "deleted"}
        assert b.registry.get_sample_value("mcm_orphan_vms_collected_total", counted) == 35


@on_bench
async def test_a_class_that_goes_before_its_orphans_do_says_which_were_left() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.vms["lost"] = "cloud:///lost"
        await b.settle(60)
        await b.client.delete(MACHINE_CLASSES, "c", namespace=NAMESPACE)
        await b.settle(2000)
        assert "OrphanVMsOutOfReach" in b.events()
        await b.make_class("other", with_secret=False)
        await b.settle(2000)
        assert not b.driver.vms


@on_bench
async def test_several_vms_of_one_machine_are_looked_for_at_once() -> None:
    """Whoever has the machine's recorded ID stays."""
    async with bench() as b:
        await b.make_class()
        await b.running()
        before = b.driver.count("list")
        b.driver.fail("status", Code.OUT_OF_RANGE, "two of that name", times=3)
        await b.make_machine("n")
        await b.settle(40)
        assert b.driver.count("list") > before


@on_bench
async def test_what_machines_of_sibling_namespaces_own_is_no_orphan() -> None:
    siblings = ControllerSettings(sibling_namespaces=("next",))
    async with bench(settings=siblings) as b:
        await b.make_class()
        namespace: JSONObject = {"metadata": {"name": "next"}}
        await create_all(b.server, [{"apiVersion": "v1", "kind": "Namespace", **namespace}])
        b.driver.vms.update({"theirs": "cloud:///theirs", "lost": "cloud:///lost"})
        for name, spec in (("theirs", {}), ("renamed", {"providerID": "cloud:///alias"})):
            body: JSONObject = {"metadata": {"name": name}, "spec": spec}
            await b.client.create(MACHINES, body, namespace="next")
        b.driver.vms["alias"] = "cloud:///alias"
        await b.settle(1400)
        assert set(b.driver.vms) == {"theirs", "alias"}
        await b.client.delete(MACHINES, "theirs", namespace="next")
        await b.settle(4000)
        assert set(b.driver.vms) == {"alias"}
