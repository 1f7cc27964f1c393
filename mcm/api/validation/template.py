"""A template of machines, of which the CRD types only the half."""

from __future__ import annotations

from typing import Final

from mcm.api.labels import is_label_key, is_label_value
from mcm.api.machine import MACHINES, MachineTemplate
from mcm.api.templates import TemplateError, annotations_of, labels_of, machine_spec_of
from mcm.api.validation.field_errors import FieldError, Findings, shortened, warning
from mcm.api.validation.machine_spec import machine_spec_findings
from mcm.api.validation.marks import mark_findings

_METADATA: Final = "spec.template.metadata"
_OF_ONE_OBJECT: Final = ("name", "generateName", "namespace", "ownerReferences")
_KEY: Final = "the key must be a name of at most 63 characters, with or without a DNS prefix"


def template_findings(template: MachineTemplate) -> Findings:
    yield from _map_findings(template, "labels")
    yield from _map_findings(template, "annotations")
    yield from _finalizer_findings(template.metadata.get("finalizers"))
    for name in _OF_ONE_OBJECT:
        if template.metadata.get(name):
            yield warning(f"{_METADATA}.{name}", "is not used: a template is for many machines")
    yield from mark_findings(
        MACHINES.kind, labels_of(template), annotations_of(template), _METADATA
    )
    try:
        spec = machine_spec_of(template)
    except TemplateError as error:
        yield FieldError(error.path, error.detail)
        return
    yield from machine_spec_findings(spec, "spec.template.spec")
    if spec.provider_id:
        detail = "names one VM: each machine made from the template would claim it"
        yield warning("spec.template.spec.providerID", detail, value=spec.provider_id)


def _map_findings(template: MachineTemplate, name: str) -> Findings:
    """Template metadata is not typed by the CRD: anything may stand there."""
    field, value = f"{_METADATA}.{name}", template.metadata.get(name)
    if value is None:
        return
    if not isinstance(value, dict):
        yield FieldError(field, "must be an object with text values")
        return
    for key, item in value.items():
        if complaint := _complaint_about_pair(key, item, is_label=name == "labels"):
            shown = shortened(item if isinstance(item, str) else repr(item))
            yield FieldError(f"{field}[{key}]", complaint, value=shown)


def _complaint_about_pair(key: str, value: object, *, is_label: bool) -> str:
    """The API server would refuse each machine made with such a label or annotation."""
    if not isinstance(value, str):
        return "must be a text (quote it)"
    if not is_label_key(key if is_label else key.lower()):
        return _KEY
    if is_label and not is_label_value(value):
        return "must be empty or at most 63 letters, digits, '-', '_', '.'"
    return ""


def _finalizer_findings(finalizers: object) -> Findings:
    """The API server would refuse each machine made with such a finalizer."""
    field = f"{_METADATA}.finalizers"
    if finalizers is None:
        return
    if not isinstance(finalizers, list):
        yield FieldError(field, "must be a list of texts")
        return
    for index, finalizer in enumerate(finalizers):
        if not isinstance(finalizer, str):
            yield FieldError(
                f"{field}[{index}]", "must be a text", value=shortened(repr(finalizer))
            )
        elif not is_label_key(finalizer):
            detail = "must be a name of at most 63 characters, with or without a DNS prefix"
            yield FieldError(f"{field}[{index}]", detail, value=shortened(finalizer))
