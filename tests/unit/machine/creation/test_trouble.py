from __future__ import annotations

from datetime import timedelta

import pytest

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_CLASSES, MACHINES
from mcm.api.meta import JSONObject
from mcm.driver import Code
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench, with_settings

OWNER: JSONObject = {
    "apiVersion": "machine.sapcloud.io/v1alpha1",
    "kind": "MachineSet",
    "name": "s",
    "uid": "set-uid",
    "controller": True,
}


async def own(b: Bench, name: str = "m") -> None:
    patch: JSONObject = {"metadata": {"ownerReferences": [OWNER]}}
    await b.client.patch(MACHINES, name, patch, namespace=NAMESPACE)


@on_bench
async def test_a_provider_error_shows_on_the_machine_and_is_tried_again() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.fail("create", Code.UNAVAILABLE, "try later", times=2)
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        last = (await b.machine()).status.last_operation
        assert last.description == (
            "Cloud provider message - machine codes error: code = [Unavailable] "
            "message = [try later]"
        )
        assert (last.error_code, last.state, last.type) == ("Unavailable", "Failed", "Create")
        await b.until_phase("Pending", within=20)
        assert b.driver.count("create") == 3
        assert (await b.machine()).status.last_operation.error_code == ""
        assert "ProviderError" in b.events()


@on_bench
async def test_a_failing_provider_is_left_alone_longer_and_longer_and_costs_one_write() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.fail("create", Code.INTERNAL, times=1000)
        await b.make_machine()
        await b.settle(19 * 60)
        assert 4 <= b.driver.count("create") <= 8
        assert len([w for w in b.written("machines") if w.path.endswith("/status")]) == 1


@on_bench
async def test_exhausted_capacity_is_asked_for_no_less_often_than_configured() -> None:
    settings = with_settings(resource_exhausted_retry=timedelta(minutes=1))
    async with bench(settings=settings) as b:
        await b.make_class()
        b.driver.fail("create", Code.RESOURCE_EXHAUSTED, times=1000)
        await b.make_machine()
        await b.settle(600)
        calls = b.driver.count("create")
        await b.settle(600)
        assert 10 <= b.driver.count("create") - calls <= 14


@on_bench
async def test_a_machine_that_cannot_be_made_in_time_fails_at_that_very_moment() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.fail("create", Code.INTERNAL, times=1000)
        await b.make_machine()
        await own(b)
        await b.settle(1199.5)
        assert (await b.machine()).phase == "CrashLoopBackOff"
        await b.settle(1)
        assert (await b.machine()).phase == "Failed"
        calls = len(b.driver.calls)
        await b.settle(3600)
        assert {verb for verb, _ in b.driver.calls[calls:]} <= {"list"}


@on_bench
async def test_a_mended_class_is_tried_at_once() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.fail("create", Code.INVALID_ARGUMENT, times=1)
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        await b.client.patch(
            MACHINE_CLASSES, "c", {"providerSpec": {"size": "m"}}, namespace=NAMESPACE
        )
        assert await b.until_phase("Pending") < 1.0


@on_bench
async def test_a_driver_that_raises_nonsense_is_an_unknown_error() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.failures["create"].append(KeyError("oops"))
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        last = (await b.machine()).status.last_operation
        assert last.error_code == "Unknown"
        assert "KeyError" in last.description
        await b.until_phase("Pending", within=40)


@on_bench
async def test_a_missing_class_is_named_with_the_remedy_and_its_coming_is_noticed() -> None:
    async with bench() as b:
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        last = (await b.machine()).status.last_operation
        assert last.description == (
            "machine class default/c not found: create it, or correct spec.class.name"
        )
        assert last.state == "Failed"
        await b.settle(300)
        assert len(b.written("machines")) == 1
        await b.make_class()
        assert await b.until_phase("Pending") < 1.0
        assert "CreationBlocked" in b.events()


@on_bench
async def test_a_machine_whose_class_never_comes_fails_in_time() -> None:
    async with bench() as b:
        await b.make_machine()
        await b.settle(1201)
        assert (await b.machine()).phase == "Failed"


@on_bench
async def test_a_missing_secret_is_named_and_its_coming_is_noticed() -> None:
    async with bench() as b:
        body: JSONObject = {
            "metadata": {"name": "c"},
            "providerSpec": {},
            "secretRef": {"name": "s", "namespace": NAMESPACE},
        }
        await b.client.create(MACHINE_CLASSES, body, namespace=NAMESPACE)
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        assert "secret default/s not found" in (
            (await b.machine()).status.last_operation.description
        )
        assert b.driver.made == 0
        await b.make_secret()
        assert await b.until_phase("Pending") < 1.0


@pytest.mark.parametrize(
    ("class_ref", "words"),
    [
        ({"kind": "MachineClass", "name": ""}, "spec.class.name"),
        ({"kind": "", "name": "c"}, "spec.class.kind"),
        ({"kind": "AWSMachineClass", "name": "c"}, "spec.class.kind must be MachineClass"),
    ],
)
def test_an_invalid_machine_says_which_field_is_wrong(
    class_ref: dict[str, str], words: str
) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            await b.make_machine(spec={"class": class_ref})
            await b.until_phase("CrashLoopBackOff")
            assert words in (await b.machine()).status.last_operation.description
            assert b.driver.made == 0

    main()


@on_bench
async def test_a_running_machine_that_becomes_invalid_says_so_and_is_looked_after() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        patch = {"spec": {"healthTimeout": "soon"}}
        await b.client.patch(MACHINES, "m", patch, namespace=NAMESPACE)
        await b.settle()
        subject = await b.machine()
        assert subject.phase == "Running"
        assert "spec.healthTimeout" in subject.status.last_operation.description
        assert len(b.writes) == 1
        await b.set_ready("m", "False")
        await b.until_phase("Unknown")


@on_bench
async def test_a_vm_that_exists_is_adopted_and_no_second_one_made() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.vms["m"] = "cloud:///m-before"
        await b.make_machine()
        await b.until_phase("Pending")
        assert (await b.machine()).spec.provider_id == "cloud:///m-before"
        assert b.driver.count("create") == 0


@on_bench
async def test_a_vm_that_was_never_initialised_is_initialised_before_it_counts() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.vms["m"] = "cloud:///m-before"
        b.driver.uninitialized.add("m")
        b.driver.fail("initialize", Code.UNINITIALIZED, "not yet")
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        subject = await b.machine()
        assert subject.spec.provider_id == "cloud:///m-before"
        assert subject.status.last_operation.description.startswith("Provider error: ")
        assert subject.status.last_operation.description.endswith(". Initialize VM Instance")
        await b.until_phase("Pending", within=10)
        assert b.driver.count("create") == 0


@on_bench
async def test_a_provider_without_status_and_initialisation_is_no_trouble() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.knows_status = False
        b.driver.fail("initialize", Code.UNIMPLEMENTED)
        await b.make_machine()
        await b.until_phase("Pending")
        calls = [verb for verb, name in b.driver.calls if name == "m"]
        assert calls == ["status", "create", "initialize"]


@on_bench
async def test_a_vm_that_would_use_an_old_node_is_taken_back() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.node_names["m"] = "old"
        await b.client.create(
            NODES, {"metadata": {"name": "old"}, "spec": {"providerID": "cloud:///other"}}
        )
        await b.settle()
        await b.make_machine()
        await own(b)
        await b.until_phase("Failed")
        subject = await b.machine()
        assert subject.status.last_operation.description == "VM using old node obj"
        assert subject.spec.provider_id == "" and subject.node_name == ""
        assert not b.driver.vms
        await b.delete_machine()
        await b.until_gone()
        assert await b.exists(NODES, "old")


@on_bench
async def test_slow_creations_hold_up_neither_each_other_nor_anything_else() -> None:
    async with bench(settings=with_settings(machine_concurrent_syncs=3)) as b:
        await b.make_class()
        await b.running()
        b.driver.latency = 5.0
        for n in range(9):
            await b.make_machine(f"slow-{n}")
        await b.settle(1)
        await b.set_ready("m", "False")
        assert await b.until_phase("Unknown") < 1.0
        await b.until_phase("Pending", "slow-8", within=60)
        assert b.driver.most_at_once == 3
        assert len(b.driver.vms) == 10


@on_bench
async def test_a_hanging_provider_is_given_up_after_a_quarter_of_an_hour() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.latency = 1e6
        await b.make_machine()
        await b.settle(901)
        b.driver.latency = 0.0
        last = (await b.machine()).status.last_operation
        assert last.error_code == "DeadlineExceeded"
        await b.until_phase("Pending", within=10)
