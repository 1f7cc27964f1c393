"""A machine says what its VM was made with; what nobody can know it does not say."""

from __future__ import annotations

from mcm.api.machine import MACHINE_CLASSES
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench

LAST = "last-applied-providerspec"


async def recorded(b: Bench) -> str | None:
    return (await b.machine()).metadata.annotations.get(LAST)


async def resize(b: Bench, size: str) -> None:
    patch: dict[str, object] = {"providerSpec": {"size": size}}
    await b.client.patch(MACHINE_CLASSES, "c", patch, namespace=NAMESPACE)


@on_bench
async def test_it_is_what_the_class_said_when_the_call_began() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.latency = 10.0
        await b.make_machine()
        await b.settle(15.0)
        assert b.driver.count("create") == 1, "found wanting, and being made"
        await resize(b, "l")
        await b.until_phase("Pending")
        assert await recorded(b) == '{"size":"s"}'


@on_bench
async def test_a_vm_that_was_found_may_be_of_an_earlier_state_of_the_class() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.vms["m"] = "cloud:///m-1"
        await b.make_machine()
        await b.until_phase("Pending")
        assert await recorded(b) is None


@on_bench
async def test_a_provider_that_cannot_look_may_have_found_it() -> None:
    async with bench() as b:
        b.driver.knows_status = False
        await b.make_class()
        await b.make_machine()
        await b.until_phase("Pending")
        assert await recorded(b) is None
