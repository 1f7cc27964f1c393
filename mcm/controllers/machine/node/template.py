"""Keeping a Node as its machine's template says: one patch for all that differs, or none.

What was applied last is written on the Node, so that what leaves the template leaves the Node too.
Keys and taints that we never applied are other people's and stay.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from mcm.api.core import Node, Taint
from mcm.api.labels import is_label_value
from mcm.api.machine import (
    Machine,
    MachineClass,
    MachinePhase,
    NodeTemplateSpec,
    TemplateMeta,
    TemplateNodeSpec,
)
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_LAST_APPLIED_ALT,
    ANNOTATION_LAST_APPLIED_VIRTUAL_CAPACITY,
    ANNOTATION_NODE_NAMESPACE,
    LABEL_NODE_MACHINE_NAME,
    NODE_FINALIZER,
)
from mcm.controllers.machine.node.capacity import capacity_record
from mcm.controllers.machine.node.last_applied import last_applied
from mcm.controllers.machine.node.taints import (
    encode_taint,
    is_instance_not_ready,
    taints_to_write,
)
from mcm.controllers.machine.node.template_faults import applicable
from mcm.controllers.node_ownership import is_named
from mcm.controllers.preconditions import for_this_object, for_this_version
from mcm.controllers.rollouts import keeping_annotations

_JOINING = ("", MachinePhase.PENDING, MachinePhase.CRASH_LOOP_BACK_OFF)


def node_patch(
    node: Node,
    machine: Machine,
    machine_class: MachineClass | None,
    *,
    admitted: bool = False,
    in_rollout: bool = False,
    shared: bool = False,
) -> JSONObject | None:
    """Return the strategic merge patch that makes ``node`` what ``machine`` wants; None if it is.

    It holds our finalizer (which such a patch adds to the others), the machine's name, labels,
    annotations, taints and the record of what was applied. Only the taints are replaced as a whole,
    so a patch that has them applies only to the version seen: a kubelet writes all the time.
    ``admitted``: the machine is Running, or about to be, so what kept pods away goes.
    ``shared``: the cluster has Nodes of other namespaces, too.
    ``in_rollout``: a Node that is new is kept from the autoscaler; later on, that is not ours.
    """
    template = applicable(machine.spec.node_template).template
    applied = _last_applied(node)
    labels = _difference(node.metadata.labels, *_labels(applied), *_labels(template))
    labels.pop(LABEL_NODE_MACHINE_NAME, None)  # ours, whatever a template says
    named = is_named(node, machine)
    if not named and is_label_value(machine.metadata.name):
        labels[LABEL_NODE_MACHINE_NAME] = machine.metadata.name
    annotations = _difference(
        node.metadata.annotations, *_annotations(applied), *_annotations(template)
    )
    for record in (ANNOTATION_LAST_APPLIED_ALT, ANNOTATION_LAST_APPLIED_VIRTUAL_CAPACITY):
        annotations.pop(record, None)
    if not _same_template(applied, template):
        annotations[ANNOTATION_LAST_APPLIED_ALT] = encode_template(template)
    annotations.update(capacity_record(node, machine_class))
    namespace = machine.metadata.namespace
    if shared and node.metadata.annotations.get(ANNOTATION_NODE_NAMESPACE) != namespace:
        annotations[ANNOTATION_NODE_NAMESPACE] = namespace
    if in_rollout and not named:
        annotations.update(keeping_annotations(node))
    taints = _wanted_taints(node, machine, applied, template, admitted=admitted)
    maps = {"labels": labels, "annotations": annotations}
    return _patch(node, {name: values for name, values in maps.items() if values}, taints)


def parts_of(patch: JSONObject) -> Mapping[str, JSONObject]:
    """Return what a patch of ``node_patch`` consists of, each part a patch of its own, by its name.

    Taints come first: they alone are for the version of the Node that was seen.
    """
    metadata = patch["metadata"]
    assert isinstance(metadata, dict)
    bound: JSONObject = {"uid": metadata["uid"]}
    parts: dict[str, JSONObject] = {}
    if "spec" in patch:
        version = {"resourceVersion": metadata["resourceVersion"]}
        parts["taints"] = {"metadata": {**bound, **version}, "spec": patch["spec"]}
    labels = dict(metadata.get("labels", {}))
    ours: JSONObject = {key: metadata[key] for key in ("finalizers",) if key in metadata}
    if LABEL_NODE_MACHINE_NAME in labels:
        ours["labels"] = {LABEL_NODE_MACHINE_NAME: labels.pop(LABEL_NODE_MACHINE_NAME)}
    others = {"labels": labels, "annotations": metadata.get("annotations")}
    if ours:
        parts["finalizer and machine name"] = {"metadata": {**bound, **ours}}
    for name, values in others.items():
        if values:
            parts[name] = {"metadata": {**bound, name: values}}
    return parts


def release_patch(node: Node) -> JSONObject | None:
    """Return the strategic merge patch that takes our finalizer off; None if it is not there."""
    if NODE_FINALIZER not in node.metadata.finalizers:
        return None
    directive = {"$deleteFromPrimitiveList/finalizers": [NODE_FINALIZER]}
    return for_this_object(node.metadata, {"metadata": directive})


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
        document["spec"] = {"taints": [encode_taint(taint) for taint in spec.taints]}
    return orjson.dumps(document).decode()


def _patch(
    node: Node, maps: Mapping[str, object], taints: tuple[Taint, ...] | None
) -> JSONObject | None:
    metadata: JSONObject = dict(maps)
    if NODE_FINALIZER not in node.metadata.finalizers:
        metadata["finalizers"] = [NODE_FINALIZER]
    change: JSONObject = {"metadata": metadata} if metadata else {}
    if taints is not None:
        change["spec"] = {"taints": [encode_taint(taint) for taint in taints]}
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


def _labels(template: NodeTemplateSpec) -> tuple[Mapping[str, str]]:
    return ((template.metadata.labels if template.metadata else None) or {},)


def _annotations(template: NodeTemplateSpec) -> tuple[Mapping[str, str]]:
    return ((template.metadata.annotations if template.metadata else None) or {},)


def _wanted_taints(
    node: Node,
    machine: Machine,
    applied: NodeTemplateSpec,
    template: NodeTemplateSpec,
    *,
    admitted: bool,
) -> tuple[Taint, ...] | None:
    """The taint that keeps pods away until the machine runs is never applied to one that did."""
    before, wanted = _taints_of(applied), _taints_of(template)
    if machine.phase not in _JOINING or admitted:
        before = tuple(t for t in before if not is_instance_not_ready(t))
        wanted = tuple(t for t in wanted if not is_instance_not_ready(t))
    if admitted:
        before = (*before, *(t for t in node.spec.taints if is_instance_not_ready(t)))
    return taints_to_write(node.spec.taints, before, wanted)


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
    return last_applied(node, ANNOTATION_LAST_APPLIED_ALT, NodeTemplateSpec) or NodeTemplateSpec()
