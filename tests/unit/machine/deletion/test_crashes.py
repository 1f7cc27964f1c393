"""A deletion costs few writes, and goes on from each of them whoever comes after."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from mcm.api.core import NODES, VOLUME_ATTACHMENTS
from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject
from mcm.client.errors import RequestTimeout
from mcm.client.transport import Request
from mcm.driver import Code, DeleteMachineRequest, DeleteMachineResponse
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench

FINALIZER = "machine.sapcloud.io/machine-controller-manager"
TRIGGER = "node.machine.sapcloud.io/trigger-deletion-by-mcm"


async def empty_node(b: Bench) -> None:
    await b.running()


async def by_force_with_a_volume(b: Bench) -> None:
    await b.running()
    attachment: JSONObject = {
        "metadata": {"name": "va"},
        "spec": {
            "attacher": "csi",
            "nodeName": "node-m",
            "source": {"persistentVolumeName": "pv"},
        },
    }
    await b.client.create(VOLUME_ATTACHMENTS, attachment)
    await b.label_machine("m", "force-deletion", "true")


async def unnamed_node(b: Bench) -> None:
    """Somebody made a VM, and ended before the machine knew."""
    await b.crash()
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
    await b.client.delete(MACHINES, "m", namespace=NAMESPACE)
    await b.start()


async def asked_for_on_the_node(b: Bench) -> None:
    await b.running()
    await b.client.patch(NODES, "node-m", {"metadata": {"annotations": {TRIGGER: "true"}}})


async def failing_at_first(b: Bench) -> None:
    await b.running()
    b.driver.fail("delete", Code.UNAVAILABLE, times=2)


async def never_made(b: Bench) -> None:
    b.driver.fail("create", Code.INVALID_ARGUMENT, times=1000)
    b.driver.fail("delete", Code.INVALID_ARGUMENT, times=1000)
    await b.make_machine()
    await b.until_phase("CrashLoopBackOff")


Scene = Callable[[Bench], Awaitable[None]]
SCENES: list[Scene] = [
    empty_node, by_force_with_a_volume, unnamed_node, asked_for_on_the_node, failing_at_first,
    never_made,
]  # fmt: skip
MOST_WRITES = 10


def concerns(request: Request) -> bool:
    return any(part in request.path for part in ("/machines/m", "/nodes/node-m", "/va"))


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
@pytest.mark.parametrize("arrived", [False, True])
def test_a_deletion_survives_the_end_of_the_process_at_any_write(
    scene: Scene, *, arrived: bool
) -> None:
    """The process ends at its write number n, which gets through only if ``arrived``."""
    reached = []

    def end_at(number: int) -> None:
        @on_bench
        async def main() -> None:
            async with bench() as b:
                await b.make_class()
                await b.settle()
                ended, seen, armed = asyncio.Event(), 0, False

                def count(request: Request) -> None:
                    nonlocal seen
                    if not armed or not concerns(request):
                        return
                    seen += 1
                    if seen == number:
                        ended.set()
                        if not arrived:
                            raise RequestTimeout("lost on its way")

                async def take_over() -> None:
                    await ended.wait()
                    await b.crash()
                    await b.start()

                b.transport.before_write = count
                b.faults.lose_answers(
                    where=lambda r: arrived and armed and seen == number and r.method != "GET",
                    times=1,
                )
                armed = scene is unnamed_node or scene is asked_for_on_the_node
                successor = asyncio.create_task(take_over())
                await scene(b)
                armed = True
                if await b.exists(MACHINES, "m"):
                    await b.client.delete(MACHINES, "m", namespace=NAMESPACE)
                await b.until_gone(within=300)
                await b.settle()
                reached.append(ended.is_set())
                successor.cancel()
                assert not b.driver.vms
                assert not await b.exists(NODES, "node-m")
                assert not await b.exists(VOLUME_ATTACHMENTS, "va")

        main()

    for number in range(1, MOST_WRITES + 1):
        end_at(number)
        if not reached[-1]:
            break
    assert len(reached) > 2


def test_a_process_that_ends_when_the_vm_is_gone_and_nothing_says_so_leaves_nothing() -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            await b.running()
            gone = asyncio.Event()
            original = b.driver.delete_machine

            async def delete(request: DeleteMachineRequest) -> DeleteMachineResponse:
                answer = await original(request)
                gone.set()
                await b.clock.sleep(1000)
                return answer

            b.driver.delete_machine = delete  # type: ignore[method-assign]
            await b.delete_machine()
            await gone.wait()
            await b.crash()
            b.driver.delete_machine = original  # type: ignore[method-assign]
            await b.start()
            await b.until_gone()
            assert not b.driver.vms
            assert not await b.exists(NODES, "node-m")

    main()


@on_bench
async def test_the_deletion_of_an_empty_node_costs_four_writes() -> None:
    async with bench() as b:
        await b.make_class()
        await b.make_machine("other")
        await b.running()
        await b.delete_machine()
        await b.until_gone(within=1)
        await b.settle()
        of_the_machine, of_the_node = b.written("machines", "m"), b.written("nodes", "node-m")
        assert [w.method for w in of_the_machine] == ["PATCH"]
        assert [w.method for w in of_the_node] == ["PATCH", "PATCH", "DELETE"]
        assert {w.status for w in (*of_the_machine, *of_the_node)} == {200}
        assert len(b.writes) == 4


@on_bench
async def test_a_deletion_that_takes_the_provider_long_is_shown_while_it_does() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        b.driver.latency = 30.0
        await b.delete_machine()
        await b.settle(0.9)
        assert (await b.machine()).phase == "Running"
        await b.settle(1)
        shown = await b.machine()
        assert shown.phase == "Terminating"
        assert shown.status.last_operation.description == "Drain successful. Initiate VM deletion"
        assert "Terminating" in [c.type for c in (await b.node()).status.conditions]
        await b.until_gone(within=40)
        assert b.driver.count("delete") == 1
        assert len(b.written("machines", "m")) == 2
        assert len(b.written("nodes", "node-m")) == 4


@on_bench
async def test_what_a_deletion_did_in_memory_is_shown_when_it_cannot_go_on() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        fault = b.faults.answer(403, message="not yours", method="PATCH", path="/machines/m$")
        await b.delete_machine()
        await b.settle(5)
        shown = await b.machine()
        assert shown.phase == "Terminating"
        assert shown.status.last_operation.description == (
            'Deletion of Node Object "node-m" is successful. '
            "Initiate machine object finalizer removal"
        )
        await b.settle(600)
        assert b.driver.count("delete") == 1
        statuses = [w for w in b.written("machines", "m") if w.path.endswith("/status")]
        assert len(statuses) == 1
        fault.lift()
        await b.until_gone(within=600)


@on_bench
async def test_a_machine_says_that_it_is_terminating_while_its_pods_are_not_gone() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.run_pod("p")
        await b.delete_machine()
        await b.settle(1)
        assert (await b.machine()).phase == "Terminating"
        await b.finish_leaving_pods()
        await b.until_gone(within=5)
