"""What of a template reaches what exists already: node template, configuration and class kind.

All else in a template (class name, labels, …) takes a new machine. Two values are the same if they
mean the same: absent and empty, ``10m`` and ``10m0s``.
"""

from __future__ import annotations

from mcm.api.codec import to_json_object
from mcm.api.durations import parse_duration
from mcm.api.machine import MachineSpec, NodeTemplateSpec
from mcm.api.meta import JSONObject
from mcm.api.patches import merge_diff

_DURATIONS = {
    "drainTimeout": "drain_timeout",
    "healthTimeout": "health_timeout",
    "creationTimeout": "creation_timeout",
    "inPlaceUpdateTimeout": "in_place_update_timeout",
    "machinePreserveTimeout": "machine_preserve_timeout",
}
_PLAIN = {
    "disableHealthTimeout": "disable_health_timeout",
    "maxEvictRetries": "max_evict_retries",
    "nodeConditions": "node_conditions",
}
NODE_TEMPLATE = "nodeTemplate"
IN_PLACE_FIELDS = frozenset({NODE_TEMPLATE, *_DURATIONS, *_PLAIN})
"""The members of a machine spec, besides ``class.kind``, which change without a new machine."""


def configuration_change(had: MachineSpec, wanted: MachineSpec) -> JSONObject:
    """Return the change of timeouts, eviction limit and node conditions."""
    change: JSONObject = {}
    for wire, field in _DURATIONS.items():
        if not _same_duration(getattr(had, field), getattr(wanted, field)):
            change[wire] = getattr(wanted, field)
    for wire, field in _PLAIN.items():
        if getattr(had, field) != getattr(wanted, field):
            change[wire] = getattr(wanted, field)
    return change


def node_template_change(
    had: NodeTemplateSpec | None,
    wanted: NodeTemplateSpec | None,
    *,
    raw: object,
    raw_before: object = None,
) -> JSONObject:
    """Return the change of the node template. Where it differs, it becomes ``raw``, the wanted one
    as it was sent; ``raw_before`` is the present one, if more of it is known than its type."""
    if _meaning(had) == _meaning(wanted):
        return {}
    if not isinstance(raw, dict):
        return {NODE_TEMPLATE: None}
    before = raw_before if isinstance(raw_before, dict) else to_json_object(had) if had else {}
    return {NODE_TEMPLATE: merge_diff(before, raw)}


def _same_duration(one: str | None, other: str | None) -> bool:
    if not one or not other or one == other:
        return (one or None) == (other or None)
    try:
        return parse_duration(one) == parse_duration(other)
    except ValueError:
        return False


def _meaning(template: NodeTemplateSpec | None) -> tuple[object, ...]:
    metadata = template.metadata if template else None
    spec = template.spec if template else None
    return (
        (metadata.labels or {}) if metadata else {},
        (metadata.annotations or {}) if metadata else {},
        (spec.taints or ()) if spec else (),
    )
