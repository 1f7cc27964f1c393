"""Rules on VMs of other clusters in the same account: not ours to list, find or delete."""

from __future__ import annotations

from mcm.api.machine import MachineClass
from mcm.conformance.lab import Lab
from mcm.conformance.rule import NotApplicable, Violation, rule
from mcm.driver import Code, DriverError


@rule
async def a_neighbours_vm_is_not_listed(lab: Lab) -> None:
    """ListMachines has only VMs of the class's own cluster: what it lists and no machine knows is
    deleted."""
    neighbour = _neighbour(lab)
    made = await lab.create(lab.machine(), in_class=neighbour)
    if made.provider_id in await lab.listed():
        raise Violation(f"it lists {made.provider_id}, which is the neighbour's")


@rule
async def a_neighbours_vm_is_not_deleted(lab: Lab) -> None:
    """DeleteMachine leaves a VM of another cluster alone, though it has the machine's name."""
    neighbour = _neighbour(lab)
    machine = lab.machine()
    made = await lab.create(machine, in_class=neighbour)
    try:
        await lab.delete(machine)
    except DriverError as error:
        if error.code is not Code.NOT_FOUND:
            raise Violation(f"it failed: {error}") from error
    if made.provider_id not in await lab.listed(in_class=neighbour):
        raise Violation(f"it deleted {made.provider_id}, which is the neighbour's")


def _neighbour(lab: Lab) -> MachineClass:
    if lab.subject.neighbour is None:
        raise NotApplicable("the subject names no class of another cluster (neighbour)")
    return lab.subject.neighbour
