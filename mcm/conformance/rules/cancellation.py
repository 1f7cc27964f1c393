"""Rules on calls that are cancelled: leaders lose their leases in the middle of anything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from mcm.api.machine import Machine
from mcm.conformance.lab import Lab
from mcm.conformance.rule import Violation, rule
from mcm.driver import Code, DriverError

GRACE = 3.0
"""Seconds in which a cancelled call must have ended."""

_SETTLED = 0.3
"""Seconds in which a thread, which nobody can cancel, ends the request that it was at."""

_Cut = Callable[[Lab], Awaitable[None]]


@rule
async def a_cancelled_create_can_be_resumed(lab: Lab) -> None:
    """CreateMachine ends within 3 seconds when it is cancelled, at whichever await; the next
    process's call then ends with one VM, whatever the first one had begun."""
    for cut in await _cuts_of(lab, lab.create(lab.machine())):
        machine = lab.machine()
        await _cancel("CreateMachine", lab, lab.create(machine), cut)
        await lab.create(machine, by=lab.subject.new_driver())
        await _until_one(lab, machine)


@rule
async def a_cancelled_create_leaves_nothing_that_delete_misses(lab: Lab) -> None:
    """What a cancelled CreateMachine had begun is deleted by DeleteMachine, which knows no more
    than the machine's name."""
    for cut in await _cuts_of(lab, lab.create(lab.machine())):
        machine = lab.machine()
        await _cancel("CreateMachine", lab, lab.create(machine), cut)
        await lab.subject.clock.sleep(_SETTLED + lab.subject.visible_within)
        await _delete(lab, machine)
        await _until_none(lab, machine)


@rule
async def a_cancelled_delete_can_be_resumed(lab: Lab) -> None:
    """DeleteMachine ends within 3 seconds when it is cancelled, and ends its work when called
    again."""
    machine = lab.machine()
    await lab.create(machine)
    for cut in await _cuts_of(lab, _delete(lab, machine)):
        machine = lab.machine()
        await lab.create(machine)
        await _cancel("DeleteMachine", lab, _delete(lab, machine), cut)
        await _delete(lab, machine)
        await _until_none(lab, machine)


async def _cuts_of(lab: Lab, call: Awaitable[object]) -> tuple[_Cut, ...]:
    """Choose moments to cancel such a call at: first turns of the loop, and parts of its time."""
    started = lab.subject.clock.monotonic()
    await call
    lasted = lab.subject.clock.monotonic() - started
    turns = max(1, lab.subject.cuts // 2)
    parts = max(1, lab.subject.cuts - turns)
    return (
        *(_after_turns(number) for number in range(turns)),
        *(_after(lasted * (number + 1) / (parts + 1)) for number in range(parts)),
    )


def _after_turns(number: int) -> _Cut:
    async def wait(lab: Lab) -> None:
        for _ in range(number):
            await lab.subject.clock.sleep(0)

    return wait


def _after(seconds: float) -> _Cut:
    async def wait(lab: Lab) -> None:
        await lab.subject.clock.sleep(seconds)

    return wait


async def _cancel(verb: str, lab: Lab, call: Awaitable[object], cut: _Cut) -> None:
    task = asyncio.ensure_future(call)
    await cut(lab)
    task.cancel()
    ended, _ = await asyncio.wait({task}, timeout=GRACE)
    if not ended:
        raise Violation(f"{verb} still ran {GRACE:g} s after it was cancelled")
    if not task.cancelled() and isinstance(error := task.exception(), Violation):
        raise error


async def _delete(lab: Lab, machine: Machine) -> None:
    try:
        await lab.delete(machine)
    except DriverError as error:
        if error.code is not Code.NOT_FOUND:
            raise


async def _until_one(lab: Lab, machine: Machine) -> None:
    async def is_one() -> bool:
        return await lab.count(machine) == 1

    await lab.eventually(is_one, "after the second call not exactly one VM is listed")


async def _until_none(lab: Lab, machine: Machine) -> None:
    async def is_none() -> bool:
        return await lab.count(machine) == 0

    await lab.eventually(is_none, "a VM is left that DeleteMachine did not find")
