"""What of a node template, or of a virtual capacity, is not to be applied; the rest is.

The rules themselves are those by which objects are validated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import final

from mcm.api.machine import NodeTemplateSpec, TemplateMeta, TemplateNodeSpec
from mcm.api.validation.field_errors import shortened
from mcm.api.validation.node_template import (
    fault_of_amount,
    fault_of_annotation,
    fault_of_label,
    faults_of_taints,
)


@final
@dataclass(frozen=True, slots=True)
class Applicable:
    """The part of a template that can be applied, and what is wrong with the rest."""

    template: NodeTemplateSpec
    faults: tuple[str, ...] = ()


def applicable(template: NodeTemplateSpec | None) -> Applicable:
    """Tell valid from invalid. A valid template is returned as it is."""
    template = template or NodeTemplateSpec()
    metadata, spec = template.metadata or TemplateMeta(), template.spec or TemplateNodeSpec()
    labels, annotations, taints = metadata.labels, metadata.annotations, spec.taints
    wrong_labels = _faults_of_map(labels or {}, "labels", fault_of_label)
    wrong_annotations = _faults_of_map(annotations or {}, "annotations", fault_of_annotation)
    wrong_taints = {
        index: f"spec.nodeTemplate.spec.taints[{index}]: {fault}"
        for index, fault in faults_of_taints(taints or ())
    }
    if not (wrong_labels or wrong_annotations or wrong_taints):
        return Applicable(template)
    valid = NodeTemplateSpec(
        metadata=TemplateMeta(
            labels=_without(labels, wrong_labels),
            annotations=_without(annotations, wrong_annotations),
        ),
        spec=TemplateNodeSpec(
            taints=tuple(t for i, t in enumerate(taints or ()) if i not in wrong_taints)
        ),
    )
    faults = (*wrong_labels.values(), *wrong_annotations.values(), *wrong_taints.values())
    return Applicable(valid, faults)


def faults_of_capacity(capacity: Mapping[str, str | int]) -> Mapping[str, str]:
    """Return what is wrong with each amount that no Node can have, by its key."""
    return {
        key: f"nodeTemplate.virtualCapacity[{shortened(key)}]: {fault}"
        for key, amount in capacity.items()
        if (fault := fault_of_amount(key, amount))
    }


def _faults_of_map(
    values: Mapping[str, str], name: str, fault_of: Callable[[str, str], str]
) -> dict[str, str]:
    return {
        key: f"spec.nodeTemplate.metadata.{name}[{shortened(key)}]: {fault}"
        for key, value in values.items()
        if (fault := fault_of(key, value))
    }


def _without(values: dict[str, str] | None, wrong: Mapping[str, str]) -> dict[str, str] | None:
    return None if values is None else {k: v for k, v in values.items() if k not in wrong}
