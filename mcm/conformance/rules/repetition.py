"""Rules on calls that are made again: after a crash nobody knows what came of the first one."""

from __future__ import annotations

from mcm.conformance.lab import Lab, recorded
from mcm.conformance.rule import Violation, rule
from mcm.driver import Code, CreateMachineResponse, DriverError


@rule
async def a_repeated_create_adopts_the_vm(lab: Lab) -> None:
    """CreateMachine, called again for the same machine, answers with the VM that exists."""
    machine = lab.machine()
    first = await lab.create(machine)
    _same(first, await lab.create(machine))
    await _is_listed_once(lab, machine.metadata.name)


@rule
async def another_processes_create_adopts_the_vm(lab: Lab) -> None:
    """What identifies a VM is in the cloud, not in the driver: the next process finds it."""
    machine = lab.machine()
    first = await lab.create(machine)
    _same(first, await lab.create(machine, by=lab.subject.new_driver()))
    await _is_listed_once(lab, machine.metadata.name)


@rule
async def a_name_can_be_used_again(lab: Lab) -> None:
    """After a deletion, CreateMachine makes a new VM for a machine of the same name."""
    machine = lab.machine()
    first = await lab.create(machine)
    await lab.delete(recorded(machine, first.provider_id, first.node_name))
    await lab.create(machine)
    await _is_listed_once(lab, machine.metadata.name)


@rule
async def deletes_of_what_is_not_there_succeed(lab: Lab) -> None:
    """DeleteMachine answers OK (or NOT_FOUND) for a VM that is gone, and for one that never was:
    anything else would keep its machine for ever."""
    gone, never = lab.machine(), lab.machine()
    made = await lab.create(gone)
    known = recorded(gone, made.provider_id, made.node_name)
    await lab.delete(known)
    for machine, what in ((known, "a VM already deleted"), (gone, "the same by name"),
                          (never, "a VM that never was")):  # fmt: skip
        try:
            await lab.delete(machine)
        except DriverError as error:
            if error.code is not Code.NOT_FOUND:
                raise Violation(f"deleting {what} failed: {error}") from error


def _same(first: CreateMachineResponse, again: CreateMachineResponse) -> None:
    before, now = (first.provider_id, first.node_name), (again.provider_id, again.node_name)
    if before != now:
        raise Violation(f"the first call answered {before}, the second {now}")


async def _is_listed_once(lab: Lab, name: str) -> None:
    async def once() -> bool:
        return list((await lab.listed()).values()).count(name) == 1

    await lab.eventually(once, f"not exactly one VM is listed for the machine {name}")
