"""What of a node template, or of a virtual capacity, is not to be applied; the rest is.

That is what no API server would take (the rules are Kubernetes' own for labels, annotations, taints
and extended resources), and the marks by which machines are kept, updated in place or replaced:
they say what is the case with one Node, and whoever sets them takes them away again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from mcm.api.core import Taint
from mcm.api.labels import is_label_key, is_label_value
from mcm.api.machine import NodeTemplateSpec, TemplateMeta, TemplateNodeSpec
from mcm.api.names import (
    ANNOTATION_CORDONED_BY_MCM,
    ANNOTATION_NOT_MANAGED_BY_MCM,
    ANNOTATION_PRESERVE,
    ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM,
    ANNOTATION_TRIGGER_DELETION,
    ANNOTATION_UPDATE_FAILED_REASON,
    EFFECT_NO_EXECUTE,
    EFFECT_NO_SCHEDULE,
    EFFECT_PREFER_NO_SCHEDULE,
    LABEL_CANDIDATE_FOR_UPDATE,
    LABEL_SELECTED_FOR_UPDATE,
    LABEL_UPDATE_RESULT,
    PRESERVE_AUTO,
    TAINT_PREFER_NO_SCHEDULE,
    TAINT_PRESERVED,
)
from mcm.api.quantities import parse_quantity

_EFFECTS: Final = (EFFECT_NO_SCHEDULE, EFFECT_PREFER_NO_SCHEDULE, EFFECT_NO_EXECUTE)
_KEY: Final = "the key must be a name of at most 63 characters, with or without a DNS prefix"
_VALUE: Final = "the value must be empty or at most 63 letters, digits, '-', '_', '.'"
_MARK: Final = "it marks what is the case with one node, and is not for templates"
_MARKS: Final = frozenset(
    {
        LABEL_CANDIDATE_FOR_UPDATE,
        LABEL_SELECTED_FOR_UPDATE,
        LABEL_UPDATE_RESULT,
        ANNOTATION_CORDONED_BY_MCM,
        ANNOTATION_NOT_MANAGED_BY_MCM,
        ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM,
        ANNOTATION_TRIGGER_DELETION,
        ANNOTATION_UPDATE_FAILED_REASON,
        TAINT_PREFER_NO_SCHEDULE,
        TAINT_PRESERVED,
    }
)
"""Keys of labels, annotations and taints. That a pool's machines are to be kept when they fail is a
template's to say; which of them is, is not."""
_SHOWN: Final = 80


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
    wrong_labels = _faults_of_map(labels or {}, "labels", _fault_of_label)
    wrong_annotations = _faults_of_map(annotations or {}, "annotations", _fault_of_annotation)
    wrong_taints = dict(_faults_of_taints(taints or ()))
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
        key: f"nodeTemplate.virtualCapacity[{_short(key)}]: {fault}"
        for key, amount in capacity.items()
        if (fault := _fault_of_amount(key, amount))
    }


def _faults_of_map(
    values: Mapping[str, str], name: str, fault_of: Callable[[str, str], str]
) -> dict[str, str]:
    return {
        key: f"spec.nodeTemplate.metadata.{name}[{_short(key)}]: {fault}"
        for key, value in values.items()
        if (fault := fault_of(key, value))
    }


def _fault_of_label(key: str, value: str) -> str:
    if key in _MARKS:
        return _MARK
    if not is_label_key(key):
        return _KEY
    return "" if is_label_value(value) else _VALUE


def _fault_of_annotation(key: str, value: str) -> str:
    if key in _MARKS or (key, value) == (ANNOTATION_PRESERVE, PRESERVE_AUTO):
        return _MARK
    return "" if is_label_key(key.lower()) else _KEY


def _faults_of_taints(taints: Sequence[Taint]) -> Iterator[tuple[int, str]]:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        fault = _fault_of_taint(taint)
        if not fault and (taint.key, taint.effect) in seen:
            fault = "another taint has the same key and effect"
        seen.add((taint.key, taint.effect))
        if fault:
            yield index, f"spec.nodeTemplate.spec.taints[{index}]: {fault}"


def _fault_of_taint(taint: Taint) -> str:
    if taint.key in _MARKS:
        return _MARK
    if not is_label_key(taint.key):
        return _KEY
    if not is_label_value(taint.value):
        return _VALUE
    return "" if taint.effect in _EFFECTS else f"the effect must be one of {', '.join(_EFFECTS)}"


def _fault_of_amount(key: str, amount: str | int) -> str:
    if not is_label_key(key):
        return _KEY
    try:
        negative = parse_quantity(amount) < 0
    except ValueError:
        return "must be a quantity like 4, 500m or 16Gi"
    return "must not be negative" if negative else ""


def _without(values: dict[str, str] | None, wrong: Mapping[str, str]) -> dict[str, str] | None:
    return None if values is None else {k: v for k, v in values.items() if k not in wrong}


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
