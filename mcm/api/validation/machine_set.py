"""What a MachineSet must satisfy."""

from __future__ import annotations

from mcm.api.machine import MachineSet
from mcm.api.validation.counts import count_errors, replicas_errors
from mcm.api.validation.field_errors import FieldError
from mcm.api.validation.selector import selector_errors
from mcm.api.validation.template import template_errors


def validate_machine_set(machine_set: MachineSet) -> tuple[FieldError, ...]:
    spec = machine_set.spec
    counts = {
        "spec.minReadySeconds": spec.min_ready_seconds,
        "spec.autoPreserveFailedMachineMax": spec.auto_preserve_failed_machine_max,
    }
    return (
        *replicas_errors(spec.replicas),
        *count_errors(counts),
        *selector_errors(spec.selector, spec.template),
        *template_errors(spec.template),
    )
