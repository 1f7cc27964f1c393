"""What a Node may be given by a template: labels, annotations, taints, amounts of resources.

The rules are Kubernetes' own. Besides, a template gives no mark by which machines are kept, updated
in place or replaced: marks say what is the case with one Node, and whoever sets them takes them
away again. What breaks a rule is left out when the template is applied, and the rest applied; so
here it is a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

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
from mcm.api.validation.field_errors import FieldError, Findings, shortened, warning

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


def node_template_findings(template: NodeTemplateSpec, path: str) -> Findings:
    metadata, spec = template.metadata or TemplateMeta(), template.spec or TemplateNodeSpec()
    maps: tuple[tuple[str, Mapping[str, str], Callable[[str, str], str]], ...] = (
        ("labels", metadata.labels or {}, fault_of_label),
        ("annotations", metadata.annotations or {}, fault_of_annotation),
    )
    for name, values, fault_of in maps:
        for key, value in values.items():
            if fault := fault_of(key, value):
                yield _left_out(f"{path}.metadata.{name}[{shortened(key)}]", fault)
    for index, fault in faults_of_taints(spec.taints or ()):
        yield _left_out(f"{path}.spec.taints[{index}]", fault)


def _left_out(field: str, fault: str) -> FieldError:
    return warning(field, f"{fault}; it is left out")


def fault_of_label(key: str, value: str) -> str:
    """Say why a template cannot give a Node this label; empty if it can."""
    if key in _MARKS:
        return _MARK
    if not is_label_key(key):
        return _KEY
    return "" if is_label_value(value) else _VALUE


def fault_of_annotation(key: str, value: str) -> str:
    """Say why a template cannot give a Node this annotation; empty if it can."""
    if key in _MARKS or (key, value) == (ANNOTATION_PRESERVE, PRESERVE_AUTO):
        return _MARK
    return "" if is_label_key(key.lower()) else _KEY


def faults_of_taints(taints: Sequence[Taint]) -> Iterator[tuple[int, str]]:
    """Yield the place of each taint that cannot be applied, and why."""
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        fault = _fault_of_taint(taint)
        if not fault and (taint.key, taint.effect) in seen:
            fault = "another taint has the same key and effect"
        seen.add((taint.key, taint.effect))
        if fault:
            yield index, fault


def fault_of_amount(key: str, amount: str | int) -> str:
    """Say why no Node can have this much of the resource ``key``; empty if it can."""
    return _KEY if not is_label_key(key) else fault_of_quantity(amount)


def fault_of_quantity(amount: str | int) -> str:
    try:
        negative = parse_quantity(amount) < 0
    except ValueError:
        return "must be a quantity like 4, 500m or 16Gi"
    return "must not be negative" if negative else ""


def _fault_of_taint(taint: Taint) -> str:
    if taint.key in _MARKS:
        return _MARK
    if not is_label_key(taint.key):
        return _KEY
    if not is_label_value(taint.value):
        return _VALUE
    return "" if taint.effect in _EFFECTS else f"the effect must be one of {', '.join(_EFFECTS)}"
