"""What a Machine must satisfy."""

from __future__ import annotations

from mcm.api.machine import MACHINES, Machine
from mcm.api.validation.field_errors import FieldError, Findings, errors_among, unread
from mcm.api.validation.machine_spec import machine_spec_findings
from mcm.api.validation.marks import mark_findings


def validate_machine(machine: Machine) -> tuple[FieldError, ...]:
    """Return what a machine cannot be looked after with."""
    return errors_among(machine_findings(machine))


def machine_findings(machine: Machine) -> Findings:
    meta = machine.metadata
    yield from unread(meta)
    yield from machine_spec_findings(machine.spec, "spec")
    yield from mark_findings(MACHINES.kind, meta.labels, meta.annotations, "metadata")
