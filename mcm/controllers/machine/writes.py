"""Writes on Machine objects, each of them counted: a fleet's cost at the API server is these."""

from __future__ import annotations

from mcm.api.machine import MACHINES, Machine, MachineStatus
from mcm.api.meta import JSONObject
from mcm.controllers.machine import status
from mcm.controllers.machine.ports import Ports


async def write_machine(ports: Ports, machine: Machine, patch: JSONObject) -> Machine:
    """Patch metadata or spec; return the machine as it then is."""
    meta = machine.metadata
    return await ports.control.patch(MACHINES, meta.name, patch, namespace=meta.namespace)


async def write_status(ports: Ports, machine: Machine, wanted: MachineStatus) -> Machine:
    """Make ``wanted`` the machine's status; no request if it is. Raises Conflict if anything about
    the machine changed since it was read."""
    patch = status.patch_of(machine, wanted)
    if patch is None:
        return machine
    meta = machine.metadata
    return await ports.control.patch(
        MACHINES, meta.name, patch, namespace=meta.namespace, subresource="status"
    )


async def write_failure(ports: Ports, machine: Machine, wanted: MachineStatus) -> Machine:
    """Like :func:`write_status`, but what only repeats what stands there is not written."""
    if status.is_repetition(machine.status, wanted):
        return machine
    return await write_status(ports, machine, wanted)
