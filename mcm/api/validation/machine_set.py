"""What a MachineSet must satisfy."""

from __future__ import annotations

from mcm.api.machine import MACHINE_SETS, MachineSet
from mcm.api.selectors import is_empty
from mcm.api.templates import labels_of
from mcm.api.validation.counts import DEFAULT_MAX_REPLICAS, count_findings, replicas_findings
from mcm.api.validation.field_errors import (
    FieldError,
    Findings,
    errors_among,
    unread,
    warning,
)
from mcm.api.validation.marks import mark_findings
from mcm.api.validation.selector import selector_findings
from mcm.api.validation.template import template_findings


def validate_machine_set(
    machine_set: MachineSet, *, max_replicas: int = DEFAULT_MAX_REPLICAS
) -> tuple[FieldError, ...]:
    """Return what keeps a set from being acted on. ``max_replicas``: 0 for no bound."""
    return errors_among(machine_set_findings(machine_set, max_replicas))


def machine_set_findings(machine_set: MachineSet, max_replicas: int) -> Findings:
    meta, spec = machine_set.metadata, machine_set.spec
    counts = {
        "spec.minReadySeconds": spec.min_ready_seconds,
        "spec.autoPreserveFailedMachineMax": spec.auto_preserve_failed_machine_max,
    }
    yield from unread(meta)
    yield from replicas_findings(spec.replicas, max_replicas)
    yield from count_findings(counts)
    yield from selector_findings(spec.selector, spec.template)
    yield from template_findings(spec.template)
    yield from _breadth_findings(machine_set)
    if spec.machine_class is not None:
        yield warning("spec.machineClass", "is not used: the class stands in spec.template.spec")
    yield from mark_findings(MACHINE_SETS.kind, meta.labels, meta.annotations, "metadata")


def _breadth_findings(machine_set: MachineSet) -> Findings:
    """Machines without labels could never be recognised as the set's own."""
    selector = machine_set.spec.selector
    if selector is None or selector.match_labels:
        return
    if is_empty(selector):
        yield warning("spec.selector", "is empty: it selects every machine that no other set owns")
    if not labels_of(machine_set.spec.template):
        detail = "must hold the labels that spec.selector selects"
        yield FieldError("spec.template.metadata.labels", detail)
