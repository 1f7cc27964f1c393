from __future__ import annotations

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_CLASSES, MACHINES
from mcm.api.meta import JSONObject
from mcm.driver import Code
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench

FINALIZER = "machine.sapcloud.io/machine-controller-manager"


async def description(b: Bench) -> str:
    return (await b.machine()).status.last_operation.description


async def lose_class(b: Bench) -> None:
    """Somebody takes the class away although it is in use."""
    await b.crash()
    patch: JSONObject = {"metadata": {"finalizers": []}}
    await b.client.patch(MACHINE_CLASSES, "c", patch, namespace=NAMESPACE)
    await b.client.delete(MACHINE_CLASSES, "c", namespace=NAMESPACE)
    await b.start()


@on_bench
async def test_a_transient_error_of_the_provider_is_shown_and_tried_again_soon() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        b.driver.fail("delete", Code.UNAVAILABLE, "busy")
        await b.delete_machine()
        await b.settle()
        assert await description(b) == (
            "VM deletion failed due to - machine codes error: code = [Unavailable] "
            "message = [busy]. However, will re-try in the next resync. Initiate VM deletion"
        )
        await b.until_gone(within=6)
        assert "ProviderError" in b.events()


@on_bench
async def test_a_lasting_error_of_the_provider_keeps_the_machine_and_costs_one_write() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        b.driver.fail("delete", Code.PERMISSION_DENIED, "no", times=100)
        await b.delete_machine()
        await b.settle(5)
        assert "Terminating" in [c.type for c in (await b.node()).status.conditions]
        await b.settle(1500)
        assert (await description(b)).endswith("Aborting operation. Initiate VM deletion")
        assert 3 <= b.driver.count("delete") <= 8
        assert len(b.written("machines", "m")) == 1
        b.driver.failures.clear()
        await b.until_gone(within=600)


@on_bench
async def test_a_vm_that_is_gone_already_is_no_error() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        b.driver.fail("delete", Code.NOT_FOUND)
        await b.delete_machine()
        await b.until_gone(within=1)
        assert "VM not found. Continuing deletion flow. Initiate node object deletion" in str(
            [w.body for w in b.writes]
        )


@on_bench
async def test_without_class_a_machine_that_never_had_a_vm_goes() -> None:
    async with bench() as b:
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        await b.delete_machine()
        await b.until_gone(within=2)


@on_bench
async def test_without_class_a_machine_with_a_vm_waits_and_says_for_what() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await lose_class(b)
        await b.delete_machine()
        await b.settle(100)
        text = await description(b)
        assert "machine class default/c not found" in text
        assert "cloud:///m-1" in text
        assert text.endswith("Initiate VM deletion")
        await b.make_class(with_secret=False)
        await b.until_gone(within=2)
        assert not b.driver.vms


@on_bench
async def test_a_deletion_needs_no_valid_class_and_no_secret() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.crash()
        broken: JSONObject = {
            "secretRef": {"name": "missing", "namespace": NAMESPACE},
            "nodeTemplate": {
                "capacity": {},
                "instanceType": "i",
                "region": "r",
                "zone": "z",
            },
        }
        await b.client.patch(MACHINE_CLASSES, "c", broken, namespace=NAMESPACE)
        await b.start()
        await b.delete_machine()
        await b.until_gone(within=2)
        assert not b.driver.vms


@on_bench
async def test_a_machine_deleted_before_its_node_was_named_finds_it_by_the_vm() -> None:
    async with bench(started=False) as b:
        await b.make_class()
        b.driver.vms["m"] = "cloud:///m-1"
        await b.client.create(
            MACHINES,
            {
                "metadata": {"name": "m", "finalizers": [FINALIZER]},
                "spec": {"class": {"kind": "MachineClass", "name": "c"}},
            },
            namespace=NAMESPACE,
        )
        await b.client.create(NODES, {"metadata": {"name": "node-m"}})
        await b.delete_machine()
        await b.start()
        await b.until_gone(within=2)
        assert not b.driver.vms
        assert not await b.exists(NODES, "node-m")
        assert len(b.written("machines", "m")) == 2


@on_bench
async def test_a_machine_deleted_while_its_vm_is_being_made_leaves_no_vm() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.latency = 5.0
        await b.make_machine()
        await b.settle(7)
        await b.delete_machine()
        await b.until_gone(within=40)
        assert b.driver.made == 1
        assert not b.driver.vms


@on_bench
async def test_a_status_error_of_the_provider_keeps_the_first_marker() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.fail("create", Code.INTERNAL, times=99)
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        b.driver.fail("status", Code.UNAVAILABLE)
        await b.delete_machine()
        await b.settle()
        assert (await description(b)).endswith(
            "Set machine status to termination. Now, getting VM Status"
        )
        await b.until_gone(within=10)


@on_bench
async def test_a_machine_with_somebody_elses_finalizer_is_finished_once() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        patch: JSONObject = {"metadata": {"finalizers": [FINALIZER, "x/y"]}}
        await b.client.patch(MACHINES, "m", patch, namespace=NAMESPACE)
        await b.delete_machine()
        await b.settle(600)
        assert (await b.machine()).metadata.finalizers == ("x/y",)
        assert len(b.written("machines", "m")) == 2
        assert b.driver.count("delete") == 1


@on_bench
async def test_a_successor_of_the_same_name_is_a_machine_of_its_own() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.delete_machine()
        await b.until_gone()
        await b.running()
        await b.settle(100)
        assert (await b.machine()).phase == "Running"
        assert b.driver.vms == {"m": "cloud:///m-2"}
