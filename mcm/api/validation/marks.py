"""Labels and annotations whose values are read: what nobody can read is ignored, so it is told."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Final

from mcm.api import names
from mcm.api.durations import parse_duration
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.timestamps import parse_rfc3339
from mcm.api.validation.field_errors import Findings, warning

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_GO_BOOLS: Final = frozenset(
    ("1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False")
)
_SWITCHES: Final = frozenset({names.LABEL_FREEZE, names.LABEL_FORCE_DRAIN})

Complaint = Callable[[str], str]
"""Says what is wrong with a value, and what happens; empty if nothing is."""

_MACHINE: Final = MACHINES.kind
_SET: Final = MACHINE_SETS.kind
_DEPLOYMENT: Final = MACHINE_DEPLOYMENTS.kind


def mark_findings(
    kind: str, labels: Mapping[str, str], annotations: Mapping[str, str], path: str
) -> Findings:
    """Check the labels and annotations of an object of ``kind``; those of a template are its
    machines'. ``path`` leads to its metadata."""
    for key, value in labels.items():
        if complaint := _complaint_about_label(key, value):
            yield warning(f"{path}.labels[{key}]", complaint, value=value)
    for key, value in annotations.items():
        kinds, complain = _ANNOTATIONS.get(key, ((), _no_complaint))
        if kind in kinds and (complaint := complain(value)):
            yield warning(f"{path}.annotations[{key}]", complaint, value=value)


def _complaint_about_label(key: str, value: str) -> str:
    if key in _SWITCHES and value != names.LABEL_VALUE_TRUE and value.lower() == "true":
        return f"only {names.LABEL_VALUE_TRUE} switches it on"
    if key == names.LABEL_FORCE_DELETION and value not in _GO_BOOLS:
        return "must be true or false; it counts as false"
    return ""


def _no_complaint(_: str) -> str:
    return ""


def _no_duration(text: str) -> str:
    try:
        span = parse_duration(text)
    except ValueError:
        return "must be a duration like 10m0s; it is ignored"
    return "must not be negative; it is ignored" if span.total_seconds() < 0 else ""


def _no_priority(text: str) -> str:
    if _INTEGER.fullmatch(text):
        return ""
    return f"must be a whole number; it counts as {names.PRIORITY_DEFAULT}"


def _no_preserve_value(text: str) -> str:
    if text in names.PRESERVE_VALUES or not text:
        return ""
    return f"must be one of {', '.join(sorted(names.PRESERVE_VALUES))}; it is ignored"


def _no_time(text: str) -> str:
    try:
        parse_rfc3339(text)
    except ValueError:
        return "must be a time like 2006-01-02T15:04:05Z; it is ignored"
    return ""


def _no_deletion_list(text: str) -> str:
    for entry in filter(None, map(str.strip, text.split(","))):
        name, separator, time = entry.partition("~")
        if not name or (separator and _no_time(time)):
            return (
                "must list machines and times, as machine~2006-01-02T15:04:05Z,…; what cannot be"
                " read is dropped"
            )
    return ""


def _no_pool(text: str) -> str:
    return "" if text.strip() else "names no pool, so nothing is shared"


_ANNOTATIONS: Final[Mapping[str, tuple[Collection[str], Complaint]]] = {
    names.ANNOTATION_EFFECTIVE_CREATION_TIMEOUT: ((_MACHINE, _SET, _DEPLOYMENT), _no_duration),
    names.ANNOTATION_PRIORITY: ((_MACHINE,), _no_priority),
    names.ANNOTATION_PRESERVE: ((_MACHINE,), _no_preserve_value),
    names.ANNOTATION_MARKED_FOR_DELETION: ((_MACHINE,), _no_time),
    names.ANNOTATION_REPLICA_CHANGE_BY_SCALER: ((_SET, _DEPLOYMENT), _no_time),
    names.ANNOTATION_ROLLBACK_AFTER: ((_DEPLOYMENT,), _no_duration),
    names.ANNOTATION_SURGE_POOL: ((_DEPLOYMENT,), _no_pool),
    names.ANNOTATION_TRIGGER_DELETION: ((_DEPLOYMENT,), _no_deletion_list),
}
"""By key, on which kinds a value is read, and what is wrong with it."""
