"""A machine's spec, alone or in a template: its class, and how long and how it is looked after."""

from __future__ import annotations

from mcm.api.durations import parse_duration
from mcm.api.labels import is_object_name
from mcm.api.machine import ClassSpec, MachineSpec
from mcm.api.validation.counts import count_errors
from mcm.api.validation.field_errors import Errors, FieldError, required, shortened

_DURATION_FIELDS = {
    "drainTimeout": "drain_timeout",
    "healthTimeout": "health_timeout",
    "creationTimeout": "creation_timeout",
    "inPlaceUpdateTimeout": "in_place_update_timeout",
    "machinePreserveTimeout": "machine_preserve_timeout",
}


def machine_spec_errors(spec: MachineSpec, path: str) -> Errors:
    yield from _class_errors(spec.class_, f"{path}.class")
    for name, attribute in _DURATION_FIELDS.items():
        text = getattr(spec, attribute)
        if text is not None:
            yield from _duration_errors(text, f"{path}.{name}")
    yield from count_errors({f"{path}.maxEvictRetries": spec.max_evict_retries})


def _class_errors(class_: ClassSpec, path: str) -> Errors:
    if not class_.kind:
        yield required(f"{path}.kind", "Kind is required")
    if not class_.name:
        yield required(f"{path}.name", "Name is required")
    elif not is_object_name(class_.name):
        detail = "must be the name of an object: at most 253 of a-z, 0-9, - and ."
        yield FieldError(f"{path}.name", detail, value=shortened(class_.name))


def _duration_errors(text: str, field: str) -> Errors:
    try:
        span = parse_duration(text)
    except ValueError as error:
        reason = shortened(str(error).partition(": ")[2])
        shown = shortened(text)
        yield FieldError(field, f"must be a duration like 10m0s ({reason})", value=shown)
        return
    if span.total_seconds() < 0:
        yield FieldError(field, "must not be negative", value=text)
