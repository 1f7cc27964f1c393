"""Keeping a Node as its machine's template says: one patch for all that differs, or none.

What was applied last is written on the Node, so that what leaves the template leaves the Node too.
Keys and taints that we never applied are other people's and stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TypeVar

import msgspec
import orjson

from mcm.api.core import Node, Taint
from mcm.api.machine import Machine, MachineClass, NodeTemplateSpec, TemplateMeta, TemplateNodeSpec
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_LAST_APPLIED_ALT,
    ANNOTATION_LAST_APPLIED_VIRTUAL_CAPACITY,
    LABEL_NODE_MACHINE_NAME,
    NODE_FINALIZER,
)
from mcm.api.quantities import parse_quantity
from mcm.controllers.preconditions import for_this_object, for_this_version

V = TypeVar("V")
Capacity = Mapping[str, str | int]


def node_patch(
    node: Node, machine: Machine, machine_class: MachineClass | None
) -> JSONObject | None:
    """Return the strategic merge patch that makes ``node`` what ``machine`` wants; None if it is.

    It holds our finalizer (which such a patch adds to the others), the machine's name, labels,
    annotations, taints and the record of what was applied. Only the taints are replaced as a whole,
    so a patch that has them applies only to the version seen: a kubelet writes all the time.
    """
    template = machine.spec.node_template or NodeTemplateSpec()
    applied = _last_applied(node)
    labels = _difference(node.metadata.labels, *_labels(applied), *_labels(template))
    labels.pop(LABEL_NODE_MACHINE_NAME, None)  # ours, whatever a template says
    if node.metadata.labels.get(LABEL_NODE_MACHINE_NAME) != machine.metadata.name:
        labels[LABEL_NODE_MACHINE_NAME] = machine.metadata.name
    annotations = _difference(
        node.metadata.annotations, *_annotations(applied), *_annotations(template)
    )
    for record in (ANNOTATION_LAST_APPLIED_ALT, ANNOTATION_LAST_APPLIED_VIRTUAL_CAPACITY):
        annotations.pop(record, None)
    if not _same_template(applied, template):
        annotations[ANNOTATION_LAST_APPLIED_ALT] = encode_template(template)
    annotations.update(_capacity_record(node, machine_class))
    taints = _taints(node.spec.taints, _taints_of(applied), _taints_of(template))
    maps = {"labels": labels, "annotations": annotations}
    return _patch(node, {name: values for name, values in maps.items() if values}, taints)


def release_patch(node: Node) -> JSONObject | None:
    """Return the strategic merge patch that takes our finalizer off; None if it is not there."""
    if NODE_FINALIZER not in node.metadata.finalizers:
        return None
    directive = {"$deleteFromPrimitiveList/finalizers": [NODE_FINALIZER]}
    return for_this_object(node.metadata, {"metadata": directive})


def capacity_patch(node: Node, machine_class: MachineClass | None) -> JSONObject | None:
    """Return the merge patch of the Node's status that gives it the class's virtual capacity."""
    desired, applied = _virtual_capacity(machine_class), _applied_capacity(node)
    if desired is None:
        return None
    capacity: JSONObject = {
        key: None for key in applied if key not in desired and key in node.status.capacity
    }
    for key, amount in desired.items():
        if not _same_amount(node.status.capacity.get(key), amount):
            capacity[key] = str(amount)
    return {"status": {"capacity": capacity}} if capacity else None


def encode_template(template: NodeTemplateSpec) -> str:
    """Write a template the way it stands in the Node's annotation."""
    metadata = template.metadata or TemplateMeta()
    spec = template.spec or TemplateNodeSpec()
    document: JSONObject = {"metadata": {}, "spec": {}}
    document["metadata"] = {
        name: dict(sorted(values.items()))
        for name, values in (("labels", metadata.labels), ("annotations", metadata.annotations))
        if values
    }
    if spec.taints:
        document["spec"] = {"taints": [_encode_taint(taint) for taint in spec.taints]}
    return orjson.dumps(document).decode()


def _patch(
    node: Node, maps: Mapping[str, object], taints: tuple[Taint, ...] | None
) -> JSONObject | None:
    metadata: JSONObject = dict(maps)
    if NODE_FINALIZER not in node.metadata.finalizers:
        metadata["finalizers"] = [NODE_FINALIZER]
    change: JSONObject = {"metadata": metadata} if metadata else {}
    if taints is not None:
        change["spec"] = {"taints": [_encode_taint(taint) for taint in taints]}
    if not change:
        return None
    bind = for_this_object if taints is None else for_this_version
    return bind(node.metadata, change)


def _difference(
    present: Mapping[str, str], applied: Mapping[str, str], wanted: Mapping[str, str]
) -> dict[str, str | None]:
    patch: dict[str, str | None] = {
        key: None for key in applied if key not in wanted and key in present
    }
    patch.update({key: value for key, value in wanted.items() if present.get(key) != value})
    return patch


def _taints(
    present: Sequence[Taint], applied: Sequence[Taint], wanted: Sequence[Taint]
) -> tuple[Taint, ...] | None:
    """Return the complete new list, in the order found; None if nothing changes."""
    want = {_place(taint): taint for taint in wanted}
    drop = {_place(taint) for taint in applied} - want.keys()
    result: list[Taint] = []
    for taint in present:
        place = _place(taint)
        if place in drop:
            continue
        wish = want.pop(place, None)
        # The time a taint was added is not part of the wish: as given once, so it stays.
        result.append(taint if wish is None or wish.value == taint.value else wish)
    result.extend(want.values())
    return None if result == list(present) else tuple(result)


def _place(taint: Taint) -> tuple[str, str]:
    return taint.key, taint.effect


def _encode_taint(taint: Taint) -> JSONObject:
    encoded: JSONObject = msgspec.to_builtins(taint)
    return {k: encoded[k] for k in ("key", "value", "effect", "timeAdded") if k in encoded}


def _labels(template: NodeTemplateSpec) -> tuple[Mapping[str, str]]:
    return ((template.metadata.labels if template.metadata else None) or {},)


def _annotations(template: NodeTemplateSpec) -> tuple[Mapping[str, str]]:
    return ((template.metadata.annotations if template.metadata else None) or {},)


def _taints_of(template: NodeTemplateSpec) -> tuple[Taint, ...]:
    return (template.spec.taints if template.spec else None) or ()


def _same_template(one: NodeTemplateSpec, other: NodeTemplateSpec) -> bool:
    return (
        _labels(one) == _labels(other)
        and _annotations(one) == _annotations(other)
        and set(_taints_of(one)) == set(_taints_of(other))
    )


def _last_applied(node: Node) -> NodeTemplateSpec:
    """Read the record; one that cannot be read counts as empty and is replaced."""
    text = node.metadata.annotations.get(ANNOTATION_LAST_APPLIED_ALT, "")
    return _decoded(text, NodeTemplateSpec) or NodeTemplateSpec()


def _decoded(text: str, kind: type[V]) -> V | None:
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeError):
        return None


def _virtual_capacity(machine_class: MachineClass | None) -> Capacity | None:
    """None: not known what is wanted, so nothing may be taken away."""
    if machine_class is None or machine_class.node_template is None:
        return None
    return machine_class.node_template.virtual_capacity


def _applied_capacity(node: Node) -> Capacity:
    text = node.metadata.annotations.get(ANNOTATION_LAST_APPLIED_VIRTUAL_CAPACITY, "")
    return _decoded(text, dict[str, str | int]) or {}


def _capacity_record(node: Node, machine_class: MachineClass | None) -> dict[str, str | None]:
    desired, applied = _virtual_capacity(machine_class), _applied_capacity(node)
    if desired is None or desired == applied:
        return {}
    if not desired:
        return {ANNOTATION_LAST_APPLIED_VIRTUAL_CAPACITY: None}
    text = orjson.dumps(desired, option=orjson.OPT_SORT_KEYS).decode()
    return {ANNOTATION_LAST_APPLIED_VIRTUAL_CAPACITY: text}


def _same_amount(present: str | None, wanted: str | int) -> bool:
    return present is not None and _amount(present) == _amount(wanted)


def _amount(text: str | int) -> Decimal | None:
    try:
        return parse_quantity(text)
    except ValueError:
        return None
