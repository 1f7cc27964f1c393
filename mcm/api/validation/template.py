"""A template of machines, of which the CRD types only the half."""

from __future__ import annotations

from mcm.api.labels import is_label_key, is_label_value
from mcm.api.machine import MachineTemplate
from mcm.api.templates import TemplateError, machine_spec_of
from mcm.api.validation.field_errors import Errors, FieldError
from mcm.api.validation.machine_spec import machine_spec_errors


def template_errors(template: MachineTemplate) -> Errors:
    yield from _string_map(template, "labels")
    yield from _string_map(template, "annotations")
    try:
        spec = machine_spec_of(template)
    except TemplateError as error:
        yield FieldError(error.path, error.detail)
        return
    yield from machine_spec_errors(spec, "spec.template.spec")


def _string_map(template: MachineTemplate, name: str) -> Errors:
    """Template metadata is not typed by the CRD: anything may stand there."""
    field, value = f"spec.template.metadata.{name}", template.metadata.get(name)
    if value is None:
        return
    if not isinstance(value, dict):
        yield FieldError(field, "must be an object with text values")
        return
    for key, item in value.items():
        if complaint := _complaint_about_pair(key, item, is_label=name == "labels"):
            shown = item if isinstance(item, str) else repr(item)
            yield FieldError(f"{field}[{key}]", complaint, value=shown)


def _complaint_about_pair(key: str, value: object, *, is_label: bool) -> str:
    """The API server would refuse each machine made with such a label or annotation."""
    if not isinstance(value, str):
        return "must be a text (quote it)"
    if not is_label_key(key if is_label else key.lower()):
        return "the key must be a name of at most 63 characters, with or without a DNS prefix"
    if is_label and not is_label_value(value):
        return "must be empty or at most 63 letters, digits, '-', '_', '.'"
    return ""
