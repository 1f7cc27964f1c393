"""What a Machine must satisfy."""

from __future__ import annotations

from mcm.api.machine import Machine
from mcm.api.validation.field_errors import FieldError, unread
from mcm.api.validation.machine_spec import machine_spec_errors


def validate_machine(machine: Machine) -> tuple[FieldError, ...]:
    return (*unread(machine.metadata), *machine_spec_errors(machine.spec, "spec"))
