"""Typed views of a :class:`MachineTemplate`, which itself is carried as it was sent.

The views of metadata never fail: what is not of the expected form is left out there, and named by
:mod:`mcm.api.validation`. Views are for reading; ``with_label`` and ``without_label`` copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import msgspec

from mcm.api.codec import located
from mcm.api.machine import ClassSpec, MachineSpec, MachineTemplate
from mcm.api.meta import JSONObject
from mcm.api.nulls import without_nulls


@final
class TemplateError(ValueError):
    """``spec.template.spec`` has not the form of a MachineSpec; ``path`` names the field."""

    def __init__(self, detail: str, *, path: str) -> None:
        self.path = path
        self.detail = detail
        super().__init__(f"{path}: {detail}")


def labels_of(template: MachineTemplate) -> dict[str, str]:
    """Return the labels that machines made from the template will carry."""
    return _strings(template.metadata.get("labels"))


def annotations_of(template: MachineTemplate) -> dict[str, str]:
    return _strings(template.metadata.get("annotations"))


def finalizers_of(template: MachineTemplate) -> tuple[str, ...]:
    listed = template.metadata.get("finalizers")
    return tuple(f for f in listed if isinstance(f, str)) if isinstance(listed, list) else ()


def machine_spec_of(template: MachineTemplate) -> MachineSpec:
    """Return ``spec`` as a type. Raises TemplateError naming the field of the wrong type."""
    try:
        return msgspec.convert(template.spec, MachineSpec)
    except msgspec.ValidationError:
        return _tolerant_spec(template.spec)


def class_of(template: MachineTemplate) -> ClassSpec:
    """Return ``spec.class``; fields which are absent or no text are empty."""
    raw = template.spec.get("class")
    fields = _strings(raw)
    return ClassSpec(
        api_group=fields.get("apiGroup", ""),
        kind=fields.get("kind", ""),
        name=fields.get("name", ""),
    )


def with_label(template: MachineTemplate, key: str, value: str) -> MachineTemplate:
    """Return a copy whose metadata has the label; the original stays as it is."""
    return _with_labels(template, {**_raw_labels(template), key: value})


def without_label(template: MachineTemplate, key: str) -> MachineTemplate:
    """Return a copy without the label, or the template itself if it has none such."""
    labels = _raw_labels(template)
    if key not in labels:
        return template
    return _with_labels(template, {k: v for k, v in labels.items() if k != key})


def _tolerant_spec(spec: JSONObject) -> MachineSpec:
    """Convert after dropping nulls, which Go clients write where they mean "absent"."""
    try:
        return msgspec.convert(without_nulls(spec, MachineSpec), MachineSpec)
    except msgspec.ValidationError as error:
        detail, path = located(error)
        path = f"spec.template.spec.{path}" if path else "spec.template.spec"
        raise TemplateError(detail, path=path) from None


def _with_labels(template: MachineTemplate, labels: Mapping[str, object]) -> MachineTemplate:
    return MachineTemplate(metadata={**template.metadata, "labels": labels}, spec=template.spec)


def _raw_labels(template: MachineTemplate) -> Mapping[str, object]:
    labels = template.metadata.get("labels")
    return labels if isinstance(labels, dict) else {}


def _strings(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {k: v for k, v in value.items() if isinstance(k, str) and isinstance(v, str)}
