"""A process may end at any write, and another one, ours or not, goes on from there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar, final

import pytest

from mcm.api.core import NODES
from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject
from mcm.client.errors import RequestTimeout
from mcm.client.transport import Request
from mcm.clock import LoopClock
from mcm.driver import (
    Code,
    CreateMachineRequest,
    CreateMachineResponse,
    DriverError,
    GetMachineStatusRequest,
    GetMachineStatusResponse,
    InitializeMachineRequest,
    InitializeMachineResponse,
)
from tests.unit.machine.bench import NAMESPACE, Bench, ScriptedDriver, bench, on_bench

R = TypeVar("R")


@pytest.mark.parametrize("number", range(1, 11))
@pytest.mark.parametrize("arrived", [False, True])
def test_a_life_survives_the_end_of_the_process_at_any_write(number: int, *, arrived: bool) -> None:
    """The process ends at its write number ``number``, which gets through only if ``arrived``."""

    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            await b.settle()
            ended, seen = asyncio.Event(), 0

            def count(request: Request) -> None:
                nonlocal seen
                if "/machines/m" not in request.path and "/nodes/node-m" not in request.path:
                    return
                seen += 1
                if seen == number:
                    ended.set()
                    if not arrived:
                        raise RequestTimeout("lost on its way")

            async def take_over() -> None:
                await ended.wait()
                await go_on(b)

            b.transport.before_write = count
            b.faults.lose_answers(
                where=lambda r: arrived and seen == number and r.method != "GET", times=1
            )
            successor = asyncio.create_task(take_over())
            await b.make_machine()
            await live_through(b)
            await successor
            assert b.driver.made == 1
            assert not b.driver.vms
            assert not await b.exists(NODES, "node-m")

    main()


@final
class CloudThatIsTheLast(ScriptedDriver):
    """A cloud whose call number ``number`` is the last thing that a process does.

    Its answer is never seen; ``done``: it did what it was asked for all the same.
    """

    def __init__(self, clock: LoopClock, number: int, *, done: bool) -> None:
        super().__init__(clock)
        self.ended = asyncio.Event()
        self._number = number
        self._done = done

    async def create_machine(self, request: CreateMachineRequest) -> CreateMachineResponse:
        return await self._last(lambda: super(CloudThatIsTheLast, self).create_machine(request))

    async def initialize_machine(
        self, request: InitializeMachineRequest
    ) -> InitializeMachineResponse:
        return await self._last(lambda: super(CloudThatIsTheLast, self).initialize_machine(request))

    async def get_machine_status(
        self, request: GetMachineStatusRequest
    ) -> GetMachineStatusResponse:
        return await self._last(lambda: super(CloudThatIsTheLast, self).get_machine_status(request))

    async def _last(self, call: Callable[[], Awaitable[R]]) -> R:
        self._number -= 1
        if self._number != 0:
            return await call()
        if self._done:
            with suppress(DriverError):
                await call()
        self.ended.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody is left to hear this")


@pytest.mark.parametrize("knows_status", [True, False])
@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_creation_survives_the_end_of_the_process_in_any_call(
    number: int, *, done: bool, knows_status: bool
) -> None:
    """Status, creation and initialisation: whether or not they were done, one VM becomes ready."""

    @on_bench
    async def main() -> None:
        async with bench(started=False) as b:
            b.driver = cloud = CloudThatIsTheLast(b.clock, number, done=done)
            cloud.needs_initialization, cloud.knows_status = True, knows_status
            await b.start()
            await b.make_class()
            await b.make_machine()
            await b.until(lambda: has_ended(cloud.ended))
            await go_on(b)
            await become_ready_and_go(b)

    main()


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("knows_status", [True, False])
@pytest.mark.parametrize("arrived", [False, True])
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_creation_survives_the_end_of_the_process_at_any_write(
    number: int, *, arrived: bool, knows_status: bool, fails: bool
) -> None:
    """Claim, identity and phase, and those of an initialisation that ``fails`` twice."""

    @on_bench
    async def main() -> None:
        async with bench() as b:
            b.driver.needs_initialization, b.driver.knows_status = True, knows_status
            if fails:
                b.driver.fail("initialize", Code.INTERNAL)
                b.driver.fail("initialize", Code.UNINITIALIZED)
            await b.make_class()
            await b.settle()
            ended = end_at_write(b, number, arrived=arrived)
            await b.make_machine()
            if number < 4 or fails:
                await b.until(lambda: has_ended(ended))
            else:
                await b.until_phase("Pending")
            await go_on(b)
            await become_ready_and_go(b)

    main()


async def has_ended(ended: asyncio.Event) -> bool:
    return ended.is_set()


async def become_ready_and_go(b: Bench) -> None:
    await b.until_phase("Pending", within=60)
    assert b.driver.made == 1
    assert not b.driver.uninitialized
    await b.join()
    await b.until_phase("Running", within=60)
    await b.delete_machine()
    await b.until_gone(within=60)
    assert not b.driver.vms


def end_at_write(b: Bench, number: int, *, arrived: bool) -> asyncio.Event:
    """Lose write number ``number`` on the machine, or its answer; tell when."""
    ended, seen = asyncio.Event(), 0

    def count(request: Request) -> None:
        nonlocal seen
        if "/machines/m" not in request.path or ended.is_set():
            return
        seen += 1
        if seen == number:
            ended.set()
            if not arrived:
                raise RequestTimeout("lost on its way")

    b.transport.before_write = count
    b.faults.lose_answers(where=lambda r: arrived and ended.is_set() and r.method != "GET", times=1)
    return ended


async def go_on(b: Bench) -> None:
    await b.crash()
    await b.start()


async def live_through(b: Bench) -> None:
    await b.until_phase("Pending", within=60)
    await b.join()
    await b.until_phase("Running", within=60)
    await b.settle()
    await b.delete_machine()
    await b.until_gone(within=60)
    await b.settle()


MARKERS = [
    "Deleting machine from cloud provider",
    "Set machine status to termination. Now, getting VM Status",
    "Initiate node drain",
    "Drain successful. Initiate VM deletion",
    "Force Drain successful. Delete Volume Attachments",
    "VM deletion failed due to - x. Aborting operation. Initiate VM deletion",
    "VM deletion was successful. Initiate node object deletion",
    'Deletion of Node Object "node-m" is successful. Initiate machine object finalizer removal',
]


@pytest.mark.parametrize("text", MARKERS)
def test_a_deletion_is_taken_over_from_the_go_original_at_any_marker(text: str) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            await b.running()
            await b.crash()
            await b.delete_machine()
            status: JSONObject = {
                "currentStatus": {"phase": "Terminating"},
                "lastOperation": {"description": text, "type": "Delete", "state": "Processing"},
            }
            await b.client.patch(
                MACHINES, "m", {"status": status}, namespace=NAMESPACE, subresource="status"
            )
            await b.start()
            await b.until_gone()
            if "node object deletion" not in text and "finalizer removal" not in text:
                assert not b.driver.vms
                assert not await b.exists(NODES, "node-m")

    main()


@on_bench
async def test_a_creation_is_taken_over_after_the_identity_was_written() -> None:
    async with bench(started=False) as b:
        await b.make_class()
        b.driver.vms["m"] = "cloud:///m-1"
        finalizer = "machine.sapcloud.io/machine-controller-manager"
        await b.client.create(
            MACHINES,
            {
                "metadata": {
                    "name": "m",
                    "finalizers": [finalizer],
                    "labels": {"node": "node-m"},
                    "annotations": {"machinepriority.machine.sapcloud.io": "3"},
                },
                "spec": {
                    "class": {"kind": "MachineClass", "name": "c"},
                    "providerID": "cloud:///m-1",
                },
            },
            namespace=NAMESPACE,
        )
        await b.start()
        await b.until_phase("Pending")
        assert b.driver.count("create") == 0
        assert len(b.written("machines", "m")) == 1
