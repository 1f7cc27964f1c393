"""A selector, which must select what is made from the template beside it."""

from __future__ import annotations

from typing import Final

from mcm.api.machine import MachineTemplate
from mcm.api.meta import LabelSelector
from mcm.api.selectors import complaint_about, matches
from mcm.api.templates import labels_of
from mcm.api.validation.field_errors import FieldError, Findings, required, shortened

_MISMATCH: Final = "is not matching with spec.template.metadata.labels"


def selector_findings(selector: LabelSelector | None, template: MachineTemplate) -> Findings:
    if selector is None:
        yield required("spec.selector", "must select the labels of spec.template.metadata")
        return
    labels = labels_of(template)
    for key, value in selector.match_labels.items():
        if labels.get(key) != value:
            field = f"spec.selector.matchLabels[{key}]"
            yield FieldError(field, _MISMATCH, value=shortened(value))
    for index, requirement in enumerate(selector.match_expressions):
        field = f"spec.selector.matchExpressions[{index}]"
        if complaint := complaint_about(requirement):
            yield FieldError(field, complaint)
        elif not matches(LabelSelector(match_expressions=(requirement,)), labels):
            yield FieldError(field, _MISMATCH, value=shortened(requirement.key))
