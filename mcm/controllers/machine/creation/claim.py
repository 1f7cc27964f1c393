"""Claiming a machine: our finalizer, before anything exists that would have to be cleaned up."""

from __future__ import annotations

from mcm.api.machine import Machine
from mcm.api.names import MACHINE_FINALIZER
from mcm.controllers.finalizers import with_finalizer
from mcm.controllers.machine.ports import ControlCluster
from mcm.controllers.preconditions import for_this_version
from mcm.controllers.runtime import DONE, Outcome


async def claim(control: ControlCluster, machine: Machine) -> Outcome:
    """Put the finalizer on. Raises Conflict if the machine changed since it was read."""
    await claimed(control, machine)
    return DONE


async def claimed(control: ControlCluster, machine: Machine) -> Machine:
    """Return the machine with the finalizer on. Raises Conflict if it changed since it was read.

    A machine without it is one for which no provider was ever asked to make anything.
    """
    change = with_finalizer(machine.metadata, MACHINE_FINALIZER)
    if change is None:
        return machine
    return await control.patch(machine, for_this_version(machine.metadata, change))
