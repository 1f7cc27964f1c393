"""Rules on calls at the same time: a fleet's, and those of an old leader beside a new one."""

from __future__ import annotations

import asyncio

from mcm.conformance.lab import Lab
from mcm.conformance.loop_watch import LONGEST, LoopWatch
from mcm.conformance.rule import Violation, rule
from mcm.driver import Code, CreateMachineResponse, DriverError

_BEHIND = frozenset({Code.ABORTED, Code.ALREADY_EXISTS, Code.UNAVAILABLE})
"""What the later of two calls may say while the first one is under way."""


@rule
async def a_fleet_is_made_at_once(lab: Lab) -> None:
    """Calls for different machines do not get in each other's way, and each has a VM of its own."""
    machines = [lab.machine() for _ in range(lab.subject.fleet)]
    made = await asyncio.gather(*(lab.create(machine) for machine in machines))
    if len({answer.provider_id for answer in made}) != len(machines):
        raise Violation(f"{len(machines)} machines share {sorted(a.provider_id for a in made)}")
    if len({answer.node_name for answer in made}) != len(machines):
        raise Violation(f"{len(machines)} machines share Nodes {sorted(a.node_name for a in made)}")
    await asyncio.gather(*(lab.delete(machine) for machine in machines))


@rule
async def two_creates_of_one_machine_make_one_vm(lab: Lab) -> None:
    """An old leader's CreateMachine may still be under way when the new leader's begins. One VM
    comes of it; the later call may be refused with ABORTED, ALREADY_EXISTS or UNAVAILABLE."""
    machine = lab.machine()
    answers = await asyncio.gather(
        lab.create(machine),
        lab.create(machine, by=lab.subject.new_driver()),
        return_exceptions=True,
    )
    made: set[str] = set()
    for answer in answers:
        if isinstance(answer, CreateMachineResponse):
            made.add(answer.provider_id)
        elif not (isinstance(answer, DriverError) and answer.code in _BEHIND):
            raise answer
    if len(made) > 1:
        raise Violation(f"they answered with different VMs: {sorted(made)}")

    async def is_one() -> bool:
        return await lab.count(machine) == 1

    await lab.eventually(is_one, "not exactly one VM is listed for the machine")


@rule
async def two_deletes_of_one_machine_succeed(lab: Lab) -> None:
    """DeleteMachine beside another one for the same VM is no error that lasts."""
    machine = lab.machine()
    await lab.create(machine)
    answers = await asyncio.gather(
        lab.delete(machine),
        lab.delete(machine, by=lab.subject.new_driver()),
        return_exceptions=True,
    )
    for answer in answers:
        if isinstance(answer, DriverError) and answer.code in _BEHIND | {Code.NOT_FOUND}:
            continue
        if isinstance(answer, BaseException):
            raise answer
    if await lab.exists(machine):
        raise Violation("the VM still exists")


@rule
async def no_call_blocks_the_loop(lab: Lab) -> None:
    """All controllers, the mirrors and the lease live on the loop that the driver is called on: a
    library that blocks belongs into a thread (``asyncio.to_thread``)."""
    machine = lab.machine()
    async with LoopWatch() as watch:
        await lab.create(machine)
        await lab.exists(machine)
        await lab.delete(machine)
    if watch.longest > LONGEST:
        raise Violation(f"the loop stood still for {watch.longest:.1f} s")
