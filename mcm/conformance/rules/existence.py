"""Rules on what create, status, list and delete say of one VM."""

from __future__ import annotations

from mcm.api.labels import is_label_value
from mcm.api.machine import Machine, MachineSpec
from mcm.api.meta import ObjectMeta
from mcm.conformance.lab import Lab, recorded
from mcm.conformance.rule import Violation, rule
from mcm.driver import Code, CreateMachineResponse, DriverError


@rule
async def create_names_the_vm_and_its_node(lab: Lab) -> None:
    """CreateMachine answers with the VM's provider ID and the name its Node will register under,
    which must fit into a label (63 characters)."""
    answer = await lab.create(lab.machine())
    if not is_label_value(answer.node_name):
        raise Violation(f"the node name {answer.node_name!r} is no label value")


@rule
async def status_finds_a_vm_by_its_machines_name(lab: Lab) -> None:
    """GetMachineStatus finds the VM also before its provider ID was recorded: after a crash, the
    machine's name is all there is. It says the same of it as CreateMachine did."""
    machine = lab.machine()
    made = await lab.create(machine)
    await _expect_found(lab, machine, made, "by name")
    known = recorded(machine, made.provider_id, made.node_name)
    await _expect_found(lab, known, made, "with its provider ID")


async def _expect_found(lab: Lab, machine: Machine, made: CreateMachineResponse, how: str) -> None:
    async def is_found() -> bool:
        return await lab.exists(machine)

    await lab.eventually(is_found, f"not found {how}")
    try:
        found = await lab.status(machine)
    except DriverError as error:
        if error.code is not Code.UNINITIALIZED:
            raise
        names = error.provider_id, error.node_name
    else:
        names = found.provider_id, found.node_name
    if names != (made.provider_id, made.node_name):
        raise Violation(
            f"asked {how}, it answers {names}; created were "
            f"{(made.provider_id, made.node_name)}. An error UNINITIALIZED must name both, too"
        )


@rule
async def list_names_a_vms_machine(lab: Lab) -> None:
    """ListMachines has each VM's provider ID with its machine's name: a VM that it lists and no
    machine knows is deleted."""
    machine = lab.machine()
    made = await lab.create(machine)

    async def is_listed() -> bool:
        return (await lab.listed()).get(made.provider_id) == machine.metadata.name

    await lab.eventually(is_listed, f"{made.provider_id} is not listed with its machine's name")


@rule
async def status_of_what_never_was_is_not_found(lab: Lab) -> None:
    """GetMachineStatus answers NOT_FOUND, and nothing else, for a machine without VM: any other
    error would keep its VM from ever being made."""
    if await lab.exists(lab.machine()):
        raise Violation("it found a VM for a machine that never had one")


@rule
async def a_deleted_vm_is_gone(lab: Lab) -> None:
    """After DeleteMachine neither status nor list know the VM."""
    machine = lab.machine()
    made = await lab.create(machine)
    known = recorded(machine, made.provider_id, made.node_name)
    await lab.delete(known)

    async def is_gone() -> bool:
        return not await lab.exists(known) and not await lab.exists(machine)

    await lab.eventually(is_gone, "GetMachineStatus still finds the VM")

    async def is_unlisted() -> bool:
        return made.provider_id not in await lab.listed()

    await lab.eventually(is_unlisted, "ListMachines still has the VM")


@rule
async def a_vm_is_deleted_by_its_machines_name(lab: Lab) -> None:
    """DeleteMachine deletes a VM whose provider ID was never recorded."""
    machine = lab.machine()
    made = await lab.create(machine)
    await lab.delete(machine)

    async def is_unlisted() -> bool:
        return made.provider_id not in await lab.listed()

    await lab.eventually(is_unlisted, "the VM is still listed: its name alone did not find it")


@rule
async def an_orphan_is_deleted_by_its_provider_id(lab: Lab) -> None:
    """DeleteMachine deletes a VM that is told by name and provider ID alone: its machine is gone,
    and with it all labels and the class's name."""
    machine = lab.machine()
    made = await lab.create(machine)
    meta = ObjectMeta(name=machine.metadata.name, namespace=machine.metadata.namespace)
    await lab.delete(Machine(metadata=meta, spec=MachineSpec(provider_id=made.provider_id)))

    async def is_unlisted() -> bool:
        return made.provider_id not in await lab.listed()

    await lab.eventually(is_unlisted, "the VM is still listed")


@rule
async def status_and_list_change_nothing(lab: Lab) -> None:
    """GetMachineStatus and ListMachines only read."""
    machine = lab.machine()
    await lab.create(machine)

    async def is_listed() -> bool:
        return await lab.count(machine) == 1

    await lab.eventually(is_listed, "the VM is not listed")
    before = await lab.listed()
    await lab.exists(machine)
    await lab.exists(lab.machine())
    if await lab.listed() != before:
        raise Violation("what is listed changed, though nothing but status and list were called")
