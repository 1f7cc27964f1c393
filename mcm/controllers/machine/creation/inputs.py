"""What a machine's creation needs, its class and credentials, or what is wrong with them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import final

from mcm.api.machine import Machine, MachineClass
from mcm.api.names import KIND_MACHINE_CLASS, MACHINE_FINALIZER
from mcm.api.validation import describe, validate_machine, validate_machine_class
from mcm.controllers.machine.creation.user_data import USER_DATA
from mcm.controllers.machine.own_conditions import OwnCondition, find_own
from mcm.controllers.machine.ports import ControlCluster, class_key
from mcm.controllers.provider import Credentials, secret_keys_of


@final
@dataclass(frozen=True, slots=True)
class CreationInputs:
    """A machine to make, with all that its provider must be given."""

    machine: Machine
    class_: MachineClass
    credentials: Credentials

    @property
    def circumstances(self) -> Hashable:
        """What a failure depends on: when any of it changes, trying again makes sense at once."""
        return (
            self.machine.metadata.generation,
            self.class_.metadata.resource_version,
            self.credentials.versions,
        )


def inputs_for(control: ControlCluster, machine: Machine) -> CreationInputs | str:
    """Gather what is needed; a text says what is missing or wrong, and what to do about it."""
    if errors := validate_machine(machine):
        return f"the machine is invalid: {describe(errors)}"
    key = class_key(machine)
    if machine.spec.class_.kind != KIND_MACHINE_CLASS:
        unmigrated = find_own(machine.status, OwnCondition.CLASS_MIGRATED)
        why = f": {unmigrated.message}" if unmigrated is not None else ""
        return f"the machine is invalid: spec.class.kind must be {KIND_MACHINE_CLASS}{why}"
    class_ = control.class_of(machine)
    if class_ is None:
        return f"machine class {key} not found: create it, or correct spec.class.name"
    if class_.metadata.deletion_timestamp and MACHINE_FINALIZER not in class_.metadata.finalizers:
        return f"machine class {key} is being deleted: create another one"
    if errors := validate_machine_class(class_):
        return f"machine class {key} is invalid: {describe(errors)}"
    credentials = control.credentials(class_)
    if credentials.problems:
        return "; ".join(credentials.problems)
    if (secrets := secret_keys_of(class_)) and USER_DATA not in credentials.data:
        return _no_user_data(secrets)
    return CreationInputs(machine, class_, credentials)


def _no_user_data(secrets: Sequence[str]) -> str:
    names = " and ".join(secrets)
    if len(secrets) == 1:
        return f"secret {names} has no key {USER_DATA}, which VMs boot with: add it"
    return f"secrets {names} have no key {USER_DATA}, which VMs boot with: add it to one of them"
