"""A machine's own writes do not bring its key back, and nothing is missed because of that."""

from __future__ import annotations

from tests.unit.machine.bench import Bench, bench, on_bench


async def made(b: Bench, *, group: str = "") -> int:
    """Passes over a new machine until it is Pending."""
    await b.make_class()
    await b.settle()
    before = b.reconciles()
    await b.make_machine(group=group)
    await b.until_phase("Pending")
    await b.settle()
    return b.reconciles() - before


@on_bench
async def test_a_machine_is_made_in_two_passes_as_its_class_is_protected_in_between() -> None:
    async with bench() as b:
        assert await made(b) == 2
        assert len(b.written("machines", "m")) == 3


@on_bench
async def test_a_machine_joins_in_a_pass_for_its_node_and_one_for_its_readiness() -> None:
    async with bench() as b:
        await made(b)
        before = b.reconciles()
        await b.join()
        await b.until_phase("Running")
        await b.settle()
        assert b.reconciles() - before == 2


@on_bench
async def test_a_machine_without_pods_goes_in_one_pass() -> None:
    async with bench() as b:
        await made(b)
        await b.join()
        await b.until_phase("Running")
        await b.settle()
        before = b.reconciles()
        await b.delete_machine()
        await b.until_gone()
        await b.settle()
        assert b.reconciles() - before == 1


@on_bench
async def test_a_machine_whose_node_is_ready_runs_after_the_pass_that_made_it() -> None:
    async with bench() as b:
        b.driver.vms["m"] = "cloud:///m-0"
        await b.join()
        await b.make_class()
        await b.settle()
        await b.make_machine()
        await b.until_phase("Running")
        await b.settle()
        assert b.reconciles() == 2


@on_bench
async def test_somebody_elses_write_brings_the_key_back() -> None:
    async with bench() as b:
        await made(b)
        before = b.reconciles()
        await b.label_machine("m", "somebody", "else")
        await b.settle()
        assert b.reconciles() - before == 1
