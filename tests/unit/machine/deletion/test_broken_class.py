"""A class that is broken or gone keeps no machine whose VM never was, and none deleted by force."""

from __future__ import annotations

import pytest

from mcm.api.machine import MACHINE_CLASSES, MACHINES
from mcm.driver import Code, CreateMachineRequest, CreateMachineResponse
from mcm.events import CORE_EVENTS, EVENTS
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench
from tests.unit.machine.deletion.test_trouble import description, lose_class

FINALIZER = "machine.sapcloud.io/machine-controller-manager"


def refuse_everything(b: Bench, *verbs: str) -> None:
    """The provider cannot make sense of the class's providerSpec."""
    for verb in verbs or ("create", "status", "delete", "list"):
        b.driver.fail(verb, Code.INVALID_ARGUMENT, "providerSpec.size: unknown", times=1000)


def notes(b: Bench, reason: str) -> list[str]:
    found = (*b.objects(EVENTS), *b.objects(CORE_EVENTS))
    return [str(e.get("note") or e["message"]) for e in found if e["reason"] == reason]


async def left_by_another_process(b: Bench, **spec: object) -> None:
    """A machine that has our finalizer: whoever put it there may have asked for a VM."""
    await b.client.create(
        MACHINES,
        {
            "metadata": {"name": "m", "finalizers": [FINALIZER]},
            "spec": {"class": {"kind": "MachineClass", "name": "c"}, **spec},
        },
        namespace=NAMESPACE,
    )


@on_bench
async def test_a_machine_the_provider_was_never_asked_to_make_goes_at_once() -> None:
    async with bench() as b:
        await b.make_class()
        refuse_everything(b)
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        assert (await b.machine()).metadata.finalizers == ()
        await b.delete_machine()
        await b.until_gone(within=1)
        assert b.driver.count("delete") == 0
        assert "VMDeleted" not in b.events()


@on_bench
async def test_our_finalizer_is_there_before_the_provider_is_asked_to_make_a_vm() -> None:
    async with bench() as b:
        seen: list[tuple[str, ...]] = []
        original = b.driver.create_machine

        async def create(request: CreateMachineRequest) -> CreateMachineResponse:
            seen.append((await b.machine()).metadata.finalizers)
            return await original(request)

        b.driver.create_machine = create  # type: ignore[method-assign]
        await b.make_class()
        await b.make_machine()
        await b.until_phase("Pending")
        assert seen == [(FINALIZER,)]


@on_bench
async def test_a_machine_with_a_recorded_vm_is_claimed_whatever_its_class_is_like() -> None:
    async with bench() as b:
        await b.make_machine(spec={"providerID": "cloud:///m-1"})
        await b.settle()
        assert (await b.machine()).metadata.finalizers == (FINALIZER,)


@on_bench
async def test_a_vm_made_by_a_process_that_ended_before_it_told_is_looked_for() -> None:
    """The record says that the class was at fault, and then a VM was made all the same."""
    async with bench() as b:
        await b.make_class()
        b.driver.fail("status", Code.INVALID_ARGUMENT, "providerSpec.size: unknown")
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        b.faults.answer(500, method="PATCH", path="/machines/m$", where=_names_a_vm)
        await b.until(lambda: _has_vm(b), within=60)
        await b.crash()
        await b.start()
        refuse_everything(b)
        await b.delete_machine()
        await b.settle(300)
        assert b.driver.vms
        assert "unknown" in await description(b)
        b.driver.failures.clear()
        await b.until_gone(within=700)
        assert not b.driver.vms


def _names_a_vm(request: object) -> bool:
    return b"providerID" in (getattr(request, "body", None) or b"")


async def _has_vm(b: Bench) -> bool:
    return bool(b.driver.vms)


@pytest.mark.parametrize("knows_status", [True, False])
def test_a_deletion_that_is_refused_goes_on_where_the_provider_finds_no_vm(
    *, knows_status: bool
) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            b.driver.knows_status = knows_status
            refuse_everything(b, "create", "delete")
            await b.make_machine()
            await b.until_phase("CrashLoopBackOff")
            await b.delete_machine()
            await b.until_gone(within=5)
            assert "VMDeleted" not in b.events()

    main()


@on_bench
async def test_a_deletion_that_is_refused_waits_where_the_provider_finds_a_vm() -> None:
    async with bench(started=False) as b:
        await b.make_class()
        await left_by_another_process(b)
        b.driver.vms["m"] = "cloud:///m-1"
        b.driver.node_names["m"] = ""
        refuse_everything(b, "delete")
        await b.start()
        await b.delete_machine()
        await b.settle(300)
        assert (await description(b)).endswith("Aborting operation. Initiate VM deletion")
        b.driver.failures.clear()
        await b.until_gone(within=700)
        assert not b.driver.vms


@on_bench
async def test_by_force_a_machine_goes_though_its_class_is_broken_and_says_what_stays() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        refuse_everything(b)
        await b.delete_machine()
        await b.settle(5)
        assert await b.exists(MACHINES, "m")
        await b.label_machine("m", "force-deletion", "True")
        await b.until_gone(within=5)
        await b.settle()
        (note,) = notes(b, "VMLeftBehind")
        assert "cloud:///m-1" in note
        assert "providerSpec.size: unknown" in note


@on_bench
async def test_by_force_a_machine_goes_though_its_class_is_gone_and_says_what_stays() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await lose_class(b)
        await b.label_machine("m", "force-deletion", "true")
        await b.delete_machine()
        await b.until_gone(within=5)
        await b.settle()
        (note,) = notes(b, "VMLeftBehind")
        assert "cloud:///m-1" in note
        assert "machine class default/c not found" in note


@on_bench
async def test_by_force_a_status_that_cannot_be_had_is_waited_for_no_longer() -> None:
    async with bench(started=False) as b:
        await b.make_class()
        await left_by_another_process(b)
        refuse_everything(b)
        await b.label_machine("m", "force-deletion", "true")
        await b.start()
        await b.delete_machine()
        await b.until_gone(within=5)
        await b.settle()
        (note,) = notes(b, "VMLeftBehind")
        assert "none was recorded" in note


@on_bench
async def test_force_makes_nobody_leave_a_vm_behind_that_the_provider_only_cannot_reach() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        b.driver.fail("delete", Code.UNAVAILABLE, times=3)
        await b.label_machine("m", "force-deletion", "true")
        await b.delete_machine()
        await b.until_gone(within=200)
        assert not b.driver.vms
        assert "VMLeftBehind" not in b.events()


@on_bench
async def test_without_class_a_machine_without_recorded_vm_goes_and_says_that_none_looked() -> None:
    async with bench(started=False) as b:
        await left_by_another_process(b)
        await b.start()
        await b.delete_machine()
        await b.until_gone(within=2)
        await b.settle()
        assert "machine class default/c not found" in notes(b, "VMLeftBehind")[0]


@on_bench
async def test_a_class_in_use_stays_until_the_machine_that_was_refused_is_gone() -> None:
    async with bench() as b:
        await b.make_class()
        refuse_everything(b, "create", "delete")
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        await b.client.delete(MACHINE_CLASSES, "c", namespace=NAMESPACE)
        await b.settle()
        assert await b.exists(MACHINE_CLASSES, "c")
        await b.delete_machine()
        await b.until_gone(within=5)
        await b.settle()
        assert not await b.exists(MACHINE_CLASSES, "c")
