"""What of a node template, or of a virtual capacity, no API server would take; the rest is applied.

The rules are Kubernetes' own for labels, annotations, taints and extended resources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from mcm.api.core import Taint
from mcm.api.labels import is_label_key, is_label_value
from mcm.api.machine import NodeTemplateSpec, TemplateMeta, TemplateNodeSpec
from mcm.api.names import EFFECT_NO_EXECUTE, EFFECT_NO_SCHEDULE, EFFECT_PREFER_NO_SCHEDULE
from mcm.api.quantities import parse_quantity

_EFFECTS: Final = (EFFECT_NO_SCHEDULE, EFFECT_PREFER_NO_SCHEDULE, EFFECT_NO_EXECUTE)
_KEY: Final = "the key must be a name of at most 63 characters, with or without a DNS prefix"
_VALUE: Final = "the value must be empty or at most 63 letters, digits, '-', '_', '.'"
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
    if not is_label_key(key):
        return _KEY
    return "" if is_label_value(value) else _VALUE


def _fault_of_annotation(key: str, value: str) -> str:
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
