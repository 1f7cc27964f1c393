"""No VM counts as ready before it is initialised, whatever fails and whichever process ends."""

from __future__ import annotations

import pytest

from mcm.api.core import NodeAddress
from mcm.api.machine import MACHINES, LastOperation, Machine, MachinePhase
from mcm.api.meta import JSONObject
from mcm.controllers.machine.flow import needs_creation
from mcm.controllers.machine.initialization import (
    as_initialized,
    as_uninitialized,
    is_initialized,
)
from mcm.driver import Code, DriverError
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench
from tests.unit.machine.objects import BORN, machine

CREATE, HEALTH = LastOperation(type="Create"), LastOperation(type="HealthCheck")
OWNER: JSONObject = {
    "apiVersion": "machine.sapcloud.io/v1alpha1",
    "kind": "MachineSet",
    "name": "s",
    "uid": "set-uid",
    "controller": True,
}


async def initializing(b: Bench) -> bool:
    return b.driver.count("initialize") == 1


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (machine(), False),
        (machine(provider_id="p", node="n"), False),
        (machine(phase="CrashLoopBackOff", operation=CREATE), False),
        (machine(phase="CrashLoopBackOff"), False),
        (machine(phase="CrashLoopBackOff", operation=HEALTH), True),
        (machine(phase="Pending"), True),
        (machine(phase="Running"), True),
        (machine(phase="Failed"), True),
        (machine(phase="Terminating"), True),
    ],
)
def test_only_the_creation_leaves_a_vm_that_is_not_initialised(
    subject: Machine, *, expected: bool
) -> None:
    assert is_initialized(subject) is expected


@pytest.mark.parametrize("phase", ["Failed", "Running", "Pending", "Unknown"])
def test_the_record_counts_in_every_phase_and_goes_without_a_trace(phase: str) -> None:
    before = machine(phase=phase, provider_id="p")
    recorded = Machine(
        metadata=before.metadata, spec=before.spec, status=as_uninitialized(before.status, BORN)
    )
    assert not is_initialized(recorded)
    assert needs_creation(recorded)
    assert as_initialized(recorded.status) == before.status


def test_a_set_replaces_what_failed_before_it_was_initialised() -> None:
    before = machine(phase="Failed", provider_id="p", owned=True)
    status = as_uninitialized(before.status, BORN)
    assert not needs_creation(Machine(metadata=before.metadata, spec=before.spec, status=status))


@pytest.mark.parametrize("code", [Code.NOT_FOUND, Code.UNIMPLEMENTED])
def test_initialisation_is_skipped_where_it_cannot_be(code: Code) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            b.driver.fail("initialize", code)
            await b.make_machine()
            await b.until_phase("Pending", within=5)
            assert b.driver.count("initialize") == 1
            assert is_initialized(await b.machine())

    main()


@pytest.mark.parametrize("knows_status", [False, True])
@pytest.mark.parametrize("code", [Code.INTERNAL, Code.UNINITIALIZED])
def test_initialisation_is_repeated_even_if_the_status_call_cannot_tell(
    code: Code, *, knows_status: bool
) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            b.driver.knows_status = knows_status
            b.driver.fail("initialize", code, times=2)
            await b.make_machine()
            await b.until_phase("CrashLoopBackOff")
            last = (await b.machine()).status.last_operation
            assert (last.error_code, last.type, last.state) == (code.text, "Create", "Failed")
            await b.until_phase("Pending", within=30)
            assert b.driver.count("initialize") == 3
            assert b.driver.made == 1

    main()


@pytest.mark.parametrize("knows_status", [False, True])
def test_a_crash_between_creation_and_initialisation_is_made_good(*, knows_status: bool) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            b.driver.needs_initialization = True
            b.driver.knows_status = knows_status
            await b.make_machine()
            b.driver.latency = 5.0
            await b.until(lambda: initializing(b))
            await b.crash()
            assert b.driver.uninitialized == {"m"}
            b.driver.latency = 0.0
            await b.start()
            await b.until_phase("Pending")
            assert not b.driver.uninitialized
            assert b.driver.made == 1

    main()


@on_bench
async def test_a_later_failure_of_another_kind_hides_nothing() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.knows_status = False
        b.driver.needs_initialization = True
        b.driver.fail("initialize", Code.INTERNAL)
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        b.driver.fail("status", Code.UNAVAILABLE, times=2)
        await b.settle(8)
        assert (await b.machine()).status.last_operation.error_code == "Unavailable"
        await b.crash()
        await b.start()
        await b.until_phase("Pending", within=60)
        assert not b.driver.uninitialized


class Textual(Exception):
    """What a provider in another process raises: an error of which there is only the text."""


@pytest.mark.parametrize("recorded", [False, True])
def test_an_uninitialised_vm_known_from_text_alone_is_initialised(*, recorded: bool) -> None:
    """By its recorded names; where there are none, the answer of the initialisation has them."""

    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            if recorded:
                b.driver.fail("initialize", Code.UNINITIALIZED, times=1)
            else:
                b.driver.vms["m"] = "cloud:///m-before"
            text = str(DriverError(Code.UNINITIALIZED, "half made"))
            if recorded:
                await b.make_machine()
                await b.until_phase("CrashLoopBackOff")
            b.driver.failures["status"].append(Textual(text))
            if not recorded:
                await b.make_machine()
            await b.until_phase("Pending", within=30)
            subject = await b.machine()
            assert subject.spec.provider_id == b.driver.vms["m"]
            assert subject.node_name == "node-m"
            assert b.driver.count("create") == (1 if recorded else 0)

    main()


@on_bench
async def test_addresses_that_the_initialisation_tells_are_kept() -> None:
    async with bench(has_target=False) as b:
        await b.make_class()
        b.driver.addresses = (NodeAddress(type="InternalIP", address="10.0.0.7"),)
        await b.make_machine()
        await b.until_phase("Available")
        assert b.driver.addresses[0] in (await b.machine()).status.addresses


@on_bench
async def test_a_healthy_node_does_not_make_up_for_an_initialisation() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.fail("initialize", Code.INTERNAL, times=4)
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        await b.join()
        await b.settle(5)
        assert (await b.machine()).phase == "CrashLoopBackOff"
        await b.until_phase("Running", within=300)
        assert b.driver.count("initialize") == 5


@on_bench
async def test_a_machine_that_failed_in_time_is_initialised_before_it_recovers() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.needs_initialization = True
        b.driver.knows_status = False
        b.driver.fail("initialize", Code.INTERNAL, times=14)
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        await b.join()
        await b.until_phase("Failed", within=1300)
        assert not is_initialized(await b.machine())
        assert "m" in b.driver.uninitialized
        await b.until_phase("Running", within=1200)
        assert not b.driver.uninitialized
        assert all(c.type == "Ready" for c in (await b.machine()).status.conditions)


@on_bench
async def test_a_machine_of_no_vm_says_that_it_will_be_uninitialised_before_there_is_one() -> None:
    """A Failed machine on its own, left so by a process that kept no such record."""
    async with bench() as b:
        await b.make_class()
        b.driver.needs_initialization = True
        b.driver.knows_status = False
        b.driver.fail("create", Code.INTERNAL)
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        await b.crash()
        status: JSONObject = {"currentStatus": {"phase": MachinePhase.FAILED.value}}
        await b.client.patch(
            MACHINES, "m", {"status": status}, namespace=NAMESPACE, subresource="status"
        )
        b.driver.latency = 5.0
        await b.start()
        await b.until(lambda: initializing(b))
        await b.crash()
        b.driver.latency = 0.0
        await b.start()
        await b.settle(5)
        assert not b.driver.uninitialized
        assert is_initialized(await b.machine())
