"""Rules on InitializeMachine, for drivers that have it."""

from __future__ import annotations

from mcm.api.machine import Machine
from mcm.conformance.lab import Lab, recorded, unimplemented
from mcm.conformance.rule import Violation, rule
from mcm.driver import Code, DriverError


@rule
async def an_initialization_can_be_repeated(lab: Lab) -> None:
    """InitializeMachine may be called any number of times; UNIMPLEMENTED skips it. Its answer names
    the VM as CreateMachine did."""
    machine = lab.machine()
    made = await lab.create(machine)
    known = recorded(machine, made.provider_id, made.node_name)
    for by in (lab.driver, lab.driver, lab.subject.new_driver()):
        try:
            answer = await lab.initialize(known, by=by)
        except DriverError as error:
            if error.code is Code.UNIMPLEMENTED:
                raise unimplemented("InitializeMachine") from error
            raise Violation(f"InitializeMachine failed: {error}") from error
        if answer.provider_id not in ("", made.provider_id):
            raise Violation(f"it answers {answer.provider_id}; created was {made.provider_id}")


@rule
async def an_initialized_vm_is_called_so(lab: Lab) -> None:
    """GetMachineStatus does not answer UNINITIALIZED once InitializeMachine succeeded: the machine
    would be initialized for ever."""
    machine = lab.machine()
    made = await lab.create(machine)
    known = recorded(machine, made.provider_id, made.node_name)
    if not await _is_uninitialized(lab, known):
        return
    await lab.initialize(known)

    async def is_initialized() -> bool:
        return not await _is_uninitialized(lab, known)

    await lab.eventually(is_initialized, "GetMachineStatus still answers UNINITIALIZED")


@rule
async def what_is_not_there_is_not_initialized(lab: Lab) -> None:
    """InitializeMachine answers NOT_FOUND for a machine without VM."""
    try:
        await lab.initialize(lab.machine())
    except DriverError as error:
        if error.code is Code.UNIMPLEMENTED:
            raise unimplemented("InitializeMachine") from error
        if error.code is Code.NOT_FOUND:
            return
        raise Violation(f"it answered {error.code.text}, not NotFound") from error
    raise Violation("it succeeded without a VM")


async def _is_uninitialized(lab: Lab, machine: Machine) -> bool:
    try:
        await lab.status(machine)
    except DriverError as error:
        if error.code is Code.UNIMPLEMENTED:
            raise unimplemented("GetMachineStatus") from error
        if error.code is Code.UNINITIALIZED:
            return True
        raise
    return False
