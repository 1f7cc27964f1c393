"""Rules on UpdateMachine, for drivers that can change a VM that runs."""

from __future__ import annotations

from mcm.api.machine import Machine, MachineClass
from mcm.conformance.lab import Lab, recorded, unimplemented
from mcm.conformance.rule import NotApplicable, Violation, rule
from mcm.driver import Code, Driver, DriverError


@rule
async def an_update_to_the_same_is_harmless(lab: Lab) -> None:
    """UpdateMachine with the class that the VM was made from succeeds, also when nobody knows what
    was applied before: that is how a fleet is taken over."""
    machine = await _made(lab)
    await _update(lab, machine, lab.subject.machine_class, None)
    await _update(lab, machine, lab.subject.machine_class, lab.subject.machine_class)


@rule
async def an_update_can_be_repeated_and_taken_back(lab: Lab) -> None:
    """UpdateMachine is repeated after each failure, by any process, and its user may change the
    class back meanwhile."""
    changed, first = lab.subject.changed_class, lab.subject.machine_class
    if changed is None:
        raise NotApplicable("the subject names no class that is changed (changed_class)")
    machine = await _made(lab)
    await _update(lab, machine, changed, first)
    await _update(lab, machine, changed, first, by=lab.subject.new_driver())
    await _update(lab, machine, first, changed)
    await _update(lab, machine, first, first, attempted=changed)


@rule
async def what_is_not_there_is_not_updated(lab: Lab) -> None:
    """UpdateMachine answers NOT_FOUND for a VM that is gone."""
    machine = await _made(lab)
    await lab.delete(machine)
    class_ = lab.subject.machine_class
    try:
        await lab.update(machine, class_, last_applied=class_)
    except DriverError as error:
        _refuse_unimplemented(error)
        if error.code is Code.NOT_FOUND:
            return
        raise Violation(f"it answered {error.code.text}, not NotFound") from error
    raise Violation("it succeeded without a VM")


async def _made(lab: Lab) -> Machine:
    machine = lab.machine()
    made = await lab.create(machine)
    return recorded(machine, made.provider_id, made.node_name)


async def _update(
    lab: Lab,
    machine: Machine,
    to: MachineClass,
    last_applied: MachineClass | None,
    *,
    attempted: MachineClass | None = None,
    by: Driver | None = None,
) -> None:
    try:
        await lab.update(machine, to, last_applied=last_applied, attempted=attempted, by=by)
    except DriverError as error:
        _refuse_unimplemented(error)
        raise


def _refuse_unimplemented(error: DriverError) -> None:
    if error.code is Code.UNIMPLEMENTED:
        raise unimplemented("UpdateMachine") from error
