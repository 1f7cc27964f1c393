"""A machine's spec, alone or in a template: its class, and how long and how it is looked after."""

from __future__ import annotations

from typing import Final

from mcm.api.durations import parse_duration
from mcm.api.labels import is_label_key, is_object_name
from mcm.api.machine import GROUP, ClassSpec, MachineSpec
from mcm.api.names import KIND_MACHINE_CLASS
from mcm.api.validation.counts import count_findings
from mcm.api.validation.field_errors import FieldError, Findings, required, shortened, warning
from mcm.api.validation.node_template import node_template_findings

_DURATION_FIELDS: Final = {
    "drainTimeout": "drain_timeout",
    "healthTimeout": "health_timeout",
    "creationTimeout": "creation_timeout",
    "inPlaceUpdateTimeout": "in_place_update_timeout",
    "machinePreserveTimeout": "machine_preserve_timeout",
}


def machine_spec_findings(spec: MachineSpec, path: str) -> Findings:
    """``providerID`` and ``disableHealthTimeout`` may be anything."""
    yield from _class_findings(spec.class_, f"{path}.class")
    for name, attribute in _DURATION_FIELDS.items():
        text = getattr(spec, attribute)
        if text is not None:
            yield from _duration_findings(text, f"{path}.{name}")
    yield from count_findings({f"{path}.maxEvictRetries": spec.max_evict_retries})
    yield from _node_conditions_findings(spec.node_conditions, f"{path}.nodeConditions")
    if spec.node_template is not None:
        yield from node_template_findings(spec.node_template, f"{path}.nodeTemplate")


def _class_findings(class_: ClassSpec, path: str) -> Findings:
    if not class_.kind:
        yield required(f"{path}.kind", "Kind is required")
    elif class_.kind != KIND_MACHINE_CLASS:
        detail = f"is no {KIND_MACHINE_CLASS}: machines are made only once it was migrated to one"
        yield warning(f"{path}.kind", detail, value=class_.kind)
    if not class_.name:
        yield required(f"{path}.name", "Name is required")
    elif not is_object_name(class_.name):
        detail = "must be the name of an object: at most 253 of a-z, 0-9, - and ."
        yield FieldError(f"{path}.name", detail, value=shortened(class_.name))
    if class_.api_group not in ("", GROUP):
        detail = f"is not looked at: classes are of the group {GROUP}"
        yield warning(f"{path}.apiGroup", detail, value=class_.api_group)


def _duration_findings(text: str, field: str) -> Findings:
    try:
        span = parse_duration(text)
    except ValueError as error:
        reason = shortened(str(error).partition(": ")[2])
        shown = shortened(text)
        yield FieldError(field, f"must be a duration like 10m0s ({reason})", value=shown)
        return
    if span.total_seconds() < 0:
        yield FieldError(field, "must not be negative", value=shortened(text))


def _node_conditions_findings(text: str | None, field: str) -> Findings:
    for part in (text or "").split(","):
        kind = part.strip()
        if kind and not is_label_key(kind):
            detail = "is no type of a condition; types are separated by commas"
            yield warning(field, detail, value=kind)
