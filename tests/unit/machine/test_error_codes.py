"""Every row of the error-code tables of the provider guide: method, code, and what follows.

A test is named for the method, number and name of the code as the guide spells them, for example
``CreateMachine-8-RESOURCE_EXHAUSTED``. Codes that the guide does not list for a method are here too
(``-unlisted``): drivers are not bound to the lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import pytest
from _pytest.mark.structures import ParameterSet

from mcm.api.machine import MACHINE_CLASSES, MACHINES, Machine
from mcm.api.meta import JSONObject
from mcm.controllers.provider import Provider, ProviderFailed
from mcm.driver import (
    Code,
    DeleteMachineRequest,
    DeleteMachineResponse,
    DriverError,
    GetMachineStatusRequest,
    GetMachineStatusResponse,
    GetVolumeIDsRequest,
    GetVolumeIDsResponse,
    ListMachinesRequest,
    ListMachinesResponse,
)
from mcm.fence import Unfenced
from tests.unit.machine.bench import (
    NAMESPACE,
    Bench,
    ScriptedDriver,
    bench,
    on_bench,
    with_settings,
)
from tests.unit.machine.objects import class_, machine

GUIDE = {
    "CreateMachine": "0N 1N 2Y 3N 4Y 6N 7N 8N 9N 10Y 11N 12N 13N 14Y 16N",
    "InitializeMachine": "0N 5N 12N 13Y 17Y",
    "DeleteMachine": "0N 1N 2Y 3N 4Y 7N 9N 10Y 12N 13N 14Y 16N",
    "GetMachineStatus": "0N 1N 2Y 3N 4Y 5N 7N 9N 11Y 12N 13N 14Y 16N 17N",
    "ListMachines": "0N 1N 2Y 3N 4Y 7N 12N 13N 14Y 16N",
    "GetVolumeIDs": "0N 1N 2Y 3N 4Y 12N 13N 14Y",
}
"""The guide's tables: number of the code, and whether "Auto Retry Required"."""

SPELLED = {code: code.name for code in Code} | {Code.FAILED_PRECONDITION: "PRECONDITION_FAILED"}

SOON = (3.0, 5.5)
"""Seconds within which the first retry comes: time may heal it."""
SLOWLY = (20.0, 31.0)
"""The same where somebody must mend something: not required, but nobody has to ask for it."""
QUOTA = (118.0, 160.0)
"""The same where capacity must become free: by ``--resource-exhausted-retry``, here 2 minutes."""
LISTED_SLOWLY = (40.0, 61.0)
NEXT_PERIOD = (800.0, 901.0)
NEVER = None


@dataclass(frozen=True)
class Shown:
    """What a user sees on the machine, and when the method is called again."""

    phase: str
    type: str
    state: str
    has_code: bool
    again: tuple[float, float] | None

    def check(self, subject: Machine, code: Code) -> None:
        last = subject.status.last_operation
        assert (subject.phase, last.type, last.state) == (self.phase, self.type, self.state)
        assert last.error_code == (code.text if self.has_code else "")


GOES_ON = Shown("Pending", "Create", "Processing", has_code=False, again=NEVER)
CRASHES_SOON = Shown("CrashLoopBackOff", "Create", "Failed", has_code=True, again=SOON)
CRASHES_SLOWLY = Shown("CrashLoopBackOff", "Create", "Failed", has_code=True, again=SLOWLY)
CRASHES_QUOTA = Shown("CrashLoopBackOff", "Create", "Failed", has_code=True, again=QUOTA)
STAYS_SOON = Shown("Terminating", "Delete", "Failed", has_code=False, again=SOON)
STAYS_SLOWLY = Shown("Terminating", "Delete", "Failed", has_code=False, again=SLOWLY)
GONE = None

CREATE = {
    Code.OK: GOES_ON,
    Code.CANCELED: CRASHES_SLOWLY,
    Code.UNKNOWN: CRASHES_SOON,
    Code.INVALID_ARGUMENT: CRASHES_SLOWLY,
    Code.DEADLINE_EXCEEDED: CRASHES_SOON,
    Code.NOT_FOUND: CRASHES_SLOWLY,
    Code.ALREADY_EXISTS: CRASHES_SLOWLY,
    Code.PERMISSION_DENIED: CRASHES_SLOWLY,
    Code.RESOURCE_EXHAUSTED: CRASHES_QUOTA,
    Code.FAILED_PRECONDITION: CRASHES_SLOWLY,
    Code.ABORTED: CRASHES_SOON,
    Code.OUT_OF_RANGE: CRASHES_SLOWLY,
    Code.UNIMPLEMENTED: CRASHES_SLOWLY,
    Code.INTERNAL: CRASHES_SLOWLY,
    Code.UNAVAILABLE: CRASHES_SOON,
    Code.DATA_LOSS: CRASHES_SLOWLY,
    Code.UNAUTHENTICATED: CRASHES_SLOWLY,
    Code.UNINITIALIZED: CRASHES_SLOWLY,
}
INITIALIZE = {
    Code.OK: GOES_ON,
    Code.CANCELED: CRASHES_SLOWLY,
    Code.UNKNOWN: CRASHES_SOON,
    Code.INVALID_ARGUMENT: CRASHES_SLOWLY,
    Code.DEADLINE_EXCEEDED: CRASHES_SOON,
    Code.NOT_FOUND: GOES_ON,
    Code.ALREADY_EXISTS: CRASHES_SLOWLY,
    Code.PERMISSION_DENIED: CRASHES_SLOWLY,
    Code.RESOURCE_EXHAUSTED: CRASHES_SOON,
    Code.FAILED_PRECONDITION: CRASHES_SLOWLY,
    Code.ABORTED: CRASHES_SOON,
    Code.OUT_OF_RANGE: CRASHES_SLOWLY,
    Code.UNIMPLEMENTED: GOES_ON,
    Code.INTERNAL: CRASHES_SOON,
    Code.UNAVAILABLE: CRASHES_SOON,
    Code.DATA_LOSS: CRASHES_SLOWLY,
    Code.UNAUTHENTICATED: CRASHES_SLOWLY,
    Code.UNINITIALIZED: CRASHES_SOON,
}
STATUS = {
    Code.OK: GOES_ON,
    Code.CANCELED: CRASHES_SLOWLY,
    Code.UNKNOWN: CRASHES_SOON,
    Code.INVALID_ARGUMENT: CRASHES_SLOWLY,
    Code.DEADLINE_EXCEEDED: CRASHES_SOON,
    Code.NOT_FOUND: GOES_ON,
    Code.ALREADY_EXISTS: CRASHES_SLOWLY,
    Code.PERMISSION_DENIED: CRASHES_SLOWLY,
    Code.RESOURCE_EXHAUSTED: CRASHES_SOON,
    Code.FAILED_PRECONDITION: CRASHES_SLOWLY,
    Code.ABORTED: CRASHES_SOON,
    Code.OUT_OF_RANGE: CRASHES_SOON,
    Code.UNIMPLEMENTED: GOES_ON,
    Code.INTERNAL: CRASHES_SLOWLY,
    Code.UNAVAILABLE: CRASHES_SOON,
    Code.DATA_LOSS: CRASHES_SLOWLY,
    Code.UNAUTHENTICATED: CRASHES_SLOWLY,
    Code.UNINITIALIZED: GOES_ON,
}
DELETE = {
    Code.OK: GONE,
    Code.CANCELED: STAYS_SLOWLY,
    Code.UNKNOWN: STAYS_SOON,
    Code.INVALID_ARGUMENT: STAYS_SLOWLY,
    Code.DEADLINE_EXCEEDED: STAYS_SOON,
    Code.NOT_FOUND: GONE,
    Code.ALREADY_EXISTS: STAYS_SLOWLY,
    Code.PERMISSION_DENIED: STAYS_SLOWLY,
    Code.RESOURCE_EXHAUSTED: STAYS_SLOWLY,
    Code.FAILED_PRECONDITION: STAYS_SLOWLY,
    Code.ABORTED: STAYS_SOON,
    Code.OUT_OF_RANGE: STAYS_SLOWLY,
    Code.UNIMPLEMENTED: STAYS_SLOWLY,
    Code.INTERNAL: STAYS_SLOWLY,
    Code.UNAVAILABLE: STAYS_SOON,
    Code.DATA_LOSS: STAYS_SLOWLY,
    Code.UNAUTHENTICATED: STAYS_SLOWLY,
    Code.UNINITIALIZED: STAYS_SLOWLY,
}
STATUS_IN_DELETION = {
    Code.OK: GONE,
    Code.CANCELED: STAYS_SLOWLY,
    Code.UNKNOWN: STAYS_SOON,
    Code.INVALID_ARGUMENT: STAYS_SLOWLY,
    Code.DEADLINE_EXCEEDED: STAYS_SOON,
    Code.NOT_FOUND: GONE,
    Code.ALREADY_EXISTS: STAYS_SLOWLY,
    Code.PERMISSION_DENIED: STAYS_SLOWLY,
    Code.RESOURCE_EXHAUSTED: STAYS_SLOWLY,
    Code.FAILED_PRECONDITION: STAYS_SLOWLY,
    Code.ABORTED: STAYS_SOON,
    Code.OUT_OF_RANGE: GONE,
    Code.UNIMPLEMENTED: GONE,
    Code.INTERNAL: STAYS_SLOWLY,
    Code.UNAVAILABLE: STAYS_SOON,
    Code.DATA_LOSS: STAYS_SLOWLY,
    Code.UNAUTHENTICATED: STAYS_SLOWLY,
    Code.UNINITIALIZED: GONE,
}
LIST = {
    Code.OK: NEXT_PERIOD,
    Code.CANCELED: LISTED_SLOWLY,
    Code.UNKNOWN: SOON,
    Code.INVALID_ARGUMENT: LISTED_SLOWLY,
    Code.DEADLINE_EXCEEDED: SOON,
    Code.NOT_FOUND: LISTED_SLOWLY,
    Code.ALREADY_EXISTS: LISTED_SLOWLY,
    Code.PERMISSION_DENIED: LISTED_SLOWLY,
    Code.RESOURCE_EXHAUSTED: LISTED_SLOWLY,
    Code.FAILED_PRECONDITION: LISTED_SLOWLY,
    Code.ABORTED: SOON,
    Code.OUT_OF_RANGE: LISTED_SLOWLY,
    Code.UNIMPLEMENTED: NEXT_PERIOD,
    Code.INTERNAL: LISTED_SLOWLY,
    Code.UNAVAILABLE: SOON,
    Code.DATA_LOSS: LISTED_SLOWLY,
    Code.UNAUTHENTICATED: LISTED_SLOWLY,
    Code.UNINITIALIZED: LISTED_SLOWLY,
}


def rows_of(method: str) -> dict[Code, bool]:
    """The guide's rows: code, and whether it asks for a retry."""
    return {Code(int(row[:-1])): row[-1] == "Y" for row in GUIDE[method].split()}


def named(method: str) -> list[ParameterSet]:
    listed = rows_of(method)
    tail = {code: "" if code in listed else "-unlisted" for code in Code}
    return [
        pytest.param(code, id=f"{method}-{code.value}-{SPELLED[code]}{tail[code]}") for code in Code
    ]


@pytest.mark.parametrize(
    ("method", "table"),
    [
        ("CreateMachine", CREATE),
        ("InitializeMachine", INITIALIZE),
        ("GetMachineStatus", STATUS),
        ("GetMachineStatus", STATUS_IN_DELETION),
        ("DeleteMachine", DELETE),
        ("ListMachines", LIST),
    ],
)
def test_the_tables_cover_every_row_and_every_code(method: str, table: dict[Code, object]) -> None:
    assert set(table) == set(Code)
    for code, retried in rows_of(method).items():
        expected = table[code]
        again = expected.again if isinstance(expected, Shown) else expected
        if retried and table is not STATUS_IN_DELETION:
            assert again == SOON, f"{method} {code.name}: an automatic retry is required"
        else:
            assert again != SOON or table is STATUS_IN_DELETION


async def check_creation(b: Bench, verb: str, code: Code, shown: Shown) -> None:
    """Let ``verb`` answer ``code`` once; look at the machine, at the retry, and at the end."""
    if code is not Code.OK:
        b.driver.fail(verb, code)
    await b.make_machine()
    await b.until_phase(shown.phase, within=5)
    shown.check(await b.machine(), code)
    assert b.driver.count(verb) == 1
    await check_retry(b, verb, shown.again)
    await b.until_phase("Pending", within=5)
    assert b.driver.made == 1
    assert len(b.driver.vms) == 1


async def check_retry(b: Bench, verb: str, again: tuple[float, float] | None) -> None:
    async def called_again() -> bool:
        return b.driver.count(verb) == 2

    if again is NEVER:
        await b.settle(120)
        assert b.driver.count(verb) == 1
        return
    soonest, latest = again
    assert soonest <= await b.until(called_again, within=latest)


@pytest.mark.parametrize("code", named("CreateMachine"))
def test_create_machine(code: Code) -> None:
    @on_bench
    async def main() -> None:
        settings = with_settings(resource_exhausted_retry=timedelta(minutes=2))
        async with bench(settings=settings) as b:
            await b.make_class()
            await check_creation(b, "create", code, CREATE[code])

    main()


@pytest.mark.parametrize("code", named("InitializeMachine"))
def test_initialize_machine(code: Code) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            await check_creation(b, "initialize", code, INITIALIZE[code])

    main()


@pytest.mark.parametrize("code", named("GetMachineStatus"))
def test_get_machine_status(code: Code) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            if code in (Code.OK, Code.UNINITIALIZED):
                b.driver.vms["m"], b.driver.made = "cloud:///m-1", 1
            await check_creation(b, "status", code, STATUS[code])
            created = code in (Code.OK, Code.UNINITIALIZED)
            assert b.driver.count("create") == (0 if created else 1)

    main()


@pytest.mark.parametrize("code", named("DeleteMachine"))
def test_delete_machine(code: Code) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            await b.running()
            await check_deletion(b, "delete", code, DELETE[code])

    main()


@pytest.mark.parametrize("code", named("GetMachineStatus"))
def test_get_machine_status_where_a_deletion_looks_for_the_node(code: Code) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            await b.make_machine()
            await b.until_phase("Pending")
            patch: JSONObject = {"metadata": {"labels": {"node": None}}}
            await b.client.patch(MACHINES, "m", patch, namespace=NAMESPACE)
            await b.settle()
            b.driver.calls.clear()
            await check_deletion(b, "status", code, STATUS_IN_DELETION[code])

    main()


async def check_deletion(b: Bench, verb: str, code: Code, shown: Shown | None) -> None:
    if code is not Code.OK:
        b.driver.fail(verb, code)
    await b.delete_machine()
    if shown is not GONE:
        await b.settle(1)
        shown.check(await b.machine(), code)
        await check_retry(b, verb, shown.again)
    await b.until_gone(within=5)
    if (verb, code) != ("delete", Code.NOT_FOUND):
        assert not b.driver.vms


@pytest.mark.parametrize("code", named("ListMachines"))
def test_list_machines(code: Code) -> None:
    """A class whose VMs cannot be listed keeps nobody from anything, and is looked at again."""

    @on_bench
    async def main() -> None:
        async with bench() as b:
            if code is not Code.OK:
                b.driver.fail("list", code)
            await b.make_class()
            await b.settle(0.5)
            assert b.driver.count("list") == 1
            await b.make_class("other", with_secret=False)
            await b.make_machine(class_="other")
            await b.until_phase("Pending")

            def lists() -> int:
                return b.driver.calls.count(("list", "c"))

            async def listed_again() -> bool:
                return lists() == 2

            soonest, latest = LIST[code]
            assert b.driver.calls.count(("list", "other")) == 1
            assert soonest - 2 <= await b.until(listed_again, within=latest)

    main()


@dataclass(frozen=True)
class Volumes:
    """A driver of which only one verb matters."""

    raised: DriverError | None

    async def get_volume_ids(self, request: GetVolumeIDsRequest) -> GetVolumeIDsResponse:
        if self.raised is not None:
            raise self.raised
        return GetVolumeIDsResponse(tuple(str(spec["volume"]) for spec in request.pv_specs))


@pytest.mark.parametrize("code", named("GetVolumeIDs"))
def test_get_volume_ids(code: Code) -> None:
    """Whoever asks for volumes is told what the provider said; nothing else depends on it."""

    @on_bench
    async def main() -> None:
        async with bench(started=False) as b:
            raised = DriverError(code, "why") if code is not Code.OK else None
            provider = Provider(Volumes(raised), clock=b.clock, fence=Unfenced())  # type: ignore[arg-type]
            request = GetVolumeIDsRequest(({"volume": "v-1"},))
            asked = provider.volume_ids(
                request, machine=machine(), machine_class=class_(), secret={}
            )
            if raised is None:
                assert (await asked).volume_ids == ("v-1",)
                return
            with pytest.raises(ProviderFailed) as failed:
                await asked
            assert failed.value.code is code

    main()


@pytest.mark.parametrize("code", [Code.INVALID_ARGUMENT, Code.RESOURCE_EXHAUSTED, Code.INTERNAL])
@pytest.mark.parametrize("verb", ["create", "status"])
def test_what_is_retried_slowly_is_retried_at_once_when_circumstances_change(
    verb: str, code: Code
) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            b.driver.fail(verb, code)
            await b.make_machine()
            await b.until_phase("CrashLoopBackOff")
            await mend(b)
            assert await b.until_phase("Pending") < 1.0

    main()


@pytest.mark.parametrize("code", [Code.PERMISSION_DENIED, Code.UNAUTHENTICATED])
def test_a_deletion_and_a_list_are_tried_at_once_when_credentials_change(code: Code) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            b.driver.fail("list", code, times=1)
            await b.make_class()
            await b.running()
            b.driver.fail("delete", code)
            await b.delete_machine()
            await b.settle(1)
            assert (await b.machine()).phase == "Terminating"
            await mend(b)
            assert await b.until_gone() < 1.0

    main()


async def mend(b: Bench) -> None:
    await b.client.patch(MACHINE_CLASSES, "c", {"providerSpec": {"size": "m"}}, namespace=NAMESPACE)


@on_bench
async def test_an_error_of_code_ok_is_a_broken_contract() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.fail("create", Code.OK)
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        last = (await b.machine()).status.last_operation
        assert last.error_code == "Internal"
        assert "broke its contract" in last.description


class CloudWithDoubles(ScriptedDriver):
    """A cloud in which somebody made a second VM of a machine's name."""

    doubles: Sequence[str] = ()

    async def get_machine_status(
        self, request: GetMachineStatusRequest
    ) -> GetMachineStatusResponse:
        found = await super().get_machine_status(request)
        if self.doubles:
            raise DriverError(Code.OUT_OF_RANGE, "several VMs")
        return found

    async def list_machines(self, request: ListMachinesRequest) -> ListMachinesResponse:
        listed = (await super().list_machines(request)).machines
        return ListMachinesResponse({**listed, **dict.fromkeys(self.doubles, "m")})

    async def delete_machine(self, request: DeleteMachineRequest) -> DeleteMachineResponse:
        if (doubled := request.machine.spec.provider_id) not in self.doubles:
            return await super().delete_machine(request)
        self.doubles = [d for d in self.doubles if d != doubled]
        return DeleteMachineResponse()


@on_bench
async def test_several_vms_of_one_machine_are_left_to_the_collector_of_orphans() -> None:
    async with bench(started=False) as b:
        cloud = b.driver = CloudWithDoubles(b.clock)
        await b.start()
        await b.make_class()
        b.driver.fail("initialize", Code.UNINITIALIZED)
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        mine, cloud.doubles = cloud.vms["m"], ["cloud:///double"]
        await b.settle(300)
        assert (await b.machine()).status.last_operation.error_code == "OutOfRange"
        await b.until_phase("Pending", within=600)
        assert not cloud.doubles
        assert cloud.vms["m"] == mine
        assert (await b.machine()).spec.provider_id == mine
