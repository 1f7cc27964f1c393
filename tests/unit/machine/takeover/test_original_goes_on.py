"""We end at one of our writes, and the Go original, played by the facts, goes on from there."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from mcm.api.core import NODES, SECRETS
from mcm.api.machine import MACHINES
from mcm.client.errors import RequestTimeout
from mcm.client.transport import Request
from tests.thoroughness import part_of
from tests.unit.machine.bench import Bench, bench, on_bench
from tests.unit.machine.takeover.actors import Kubelets
from tests.unit.machine.takeover.played_original import PlayedOriginal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

NAME = "pool-z1-abcde"


@asynccontextmanager
async def handed_over_at(
    b: Bench, number: int, *, arrived: bool
) -> AsyncIterator[tuple[PlayedOriginal, asyncio.Event]]:
    """Have us end at our write number ``number`` about the machine, which gets through only if
    ``arrived``; the original begins then. Kubelets work all the while."""
    original, ended, seen = PlayedOriginal(b), asyncio.Event(), 0

    def count(request: Request) -> None:
        nonlocal seen
        about = (f"/machines/{NAME}", f"/nodes/node-{NAME}", "/kube-system/secrets", "/pods/app")
        if ended.is_set() or not any(part in request.path for part in about):
            return
        seen += 1
        if seen == number:
            ended.set()
            if not arrived:
                raise RequestTimeout("lost on its way")

    async def take_over() -> None:
        await ended.wait()
        await b.crash()
        await original.run()

    async def end_pods() -> None:
        while True:
            await b.clock.sleep(2)
            await b.finish_leaving_pods()

    b.transport.before_write = count
    b.faults.lose_answers(where=lambda r: arrived and ended.is_set() and r.method != "GET", times=1)
    tasks = [asyncio.create_task(work) for work in (take_over(), end_pods(), Kubelets(b).run())]
    try:
        yield original, ended
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


TOKEN_DELETION = 6
"""Which of our writes takes the token of a machine away that has joined."""
CUTS = [(number, arrived) for number in range(1, 9) for arrived in (False, True)]


@pytest.mark.parametrize(("number", "arrived"), part_of(CUTS, one_in=3))
@pytest.mark.parametrize("initialized", [False, True])
def test_a_creation_that_we_began_comes_to_run(
    number: int, *, arrived: bool, initialized: bool
) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            b.driver.needs_initialization = initialized
            await b.make_class()
            await b.settle()
            async with handed_over_at(b, number, arrived=arrived) as (_, ended):
                await b.make_machine(NAME)
                await b.until_phase("Running", NAME, within=120)
                await b.settle(60)
                machine = await b.machine(NAME)
                assert machine.phase == "Running"
                assert machine.spec.provider_id == b.driver.vms[NAME]
                assert b.driver.made == 1
                assert not b.driver.uninitialized
                assert ended.is_set()
                tokens = [s for s in b.objects(SECRETS) if "bootstrap" in str(s)]
                # Lost with its process is what takes the token away, and nothing else is left to
                # do: it goes with the machine, or by itself.
                assert len(tokens) == ((number, arrived) == (TOKEN_DELETION, False))

    main()


@pytest.mark.parametrize(("number", "arrived"), part_of(CUTS, one_in=3))
def test_a_deletion_that_we_began_leaves_nothing(number: int, *, arrived: bool) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            b.driver.latency = 2.0  # what takes no time is not told of, so that nothing is there
            await b.make_class()
            await b.running(NAME)
            await b.run_pod("app", on=NAME)
            async with handed_over_at(b, number, arrived=arrived) as (original, ended):
                await b.delete_machine(NAME)
                await b.until_gone(NAME, within=180)
                assert not b.driver.vms
                assert b.driver.count("delete") <= 2
                assert not await b.exists(NODES, f"node-{NAME}")
                assert ended.is_set()
                assert original.restarted == set(), "it finds its place in what we said"

    main()


@pytest.mark.parametrize("number", [1, 2])
def test_a_machine_that_was_unhealthy_recovers_and_is_not_replaced(number: int) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            await b.running(NAME)
            async with handed_over_at(b, number, arrived=True) as (_, ended):
                uid = (await b.machine(NAME)).metadata.uid
                await b.set_ready(NAME, "Unknown")
                await b.settle(120)
                machine = await b.machine(NAME)
                assert ended.is_set()
                assert (machine.phase, machine.metadata.uid) == ("Running", uid)
                assert b.driver.made == 1
                assert await b.exists(MACHINES, NAME)

    main()
