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
    change = with_finalizer(machine.metadata, MACHINE_FINALIZER)
    if change is not None:
        await control.patch(machine, for_this_version(machine.metadata, change))
    return DONE
