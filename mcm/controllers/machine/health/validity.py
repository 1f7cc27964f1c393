"""Saying on a machine that exists that it is invalid; that is no reason to neglect it."""

from __future__ import annotations

from contextlib import suppress

from mcm.api.machine import Machine
from mcm.api.validation import describe, validate_machine
from mcm.client.errors import Invalid
from mcm.controllers.machine import last_operation, status
from mcm.controllers.machine.flow import needs_creation
from mcm.controllers.machine.ports import ControlCluster
from mcm.controllers.runtime import DONE, Outcome
from mcm.events import EventType


async def complain_if_invalid(control: ControlCluster, machine: Machine) -> Outcome:
    """Write what is wrong into the last operation, once, and that it is mended; the creation says
    both itself. An update that is not done is not overwritten: its next attempt would be told anew,
    and overwritten anew."""
    if needs_creation(machine):
        return DONE
    errors, last = validate_machine(machine), machine.status.last_operation
    if not errors:
        if last_operation.says_invalid(last):
            done = last_operation.mended(machine.phase, kind=last.type)
            wanted = status.with_operation(machine.status, done, control.now())
            await control.write_status(machine, wanted)
        return DONE
    done = last_operation.invalid(describe(errors), kind=last.type)
    if last.description == done.description or last_operation.is_work_under_way(last):
        return DONE
    control.tell(machine, EventType.WARNING, "Invalid", done.description)
    wanted = status.with_operation(machine.status, done, control.now())
    with suppress(Invalid):  # what is wrong may make every write of it wrong; the event told
        await control.write_status(machine, wanted)
    return DONE
