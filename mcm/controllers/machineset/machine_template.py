"""Making a Machine from a set's template.

The template is copied as it was sent: what we have no type for reaches the machine all the same.
"""

from __future__ import annotations

from typing import Final

from mcm.api.codec import to_json_object
from mcm.api.durations import parse_duration
from mcm.api.machine import MACHINE_SETS, MachineSet
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_EFFECTIVE_CREATION_TIMEOUT, MACHINE_FINALIZER
from mcm.api.templates import annotations_of, finalizers_of, labels_of
from mcm.controllers.owning.child_control import name_prefix
from mcm.controllers.owning.claims import controller_reference

# What names one object cannot come from a template for many.
_OF_ONE_OBJECT: Final = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)


def new_machine(machine_set: MachineSet, name: str, *, claimed: bool = False) -> JSONObject:
    """Return the body of a Machine called ``name``, owned by ``machine_set``. ``claimed``: it bears
    our finalizer from the beginning."""
    template = machine_set.spec.template
    metadata: JSONObject = {
        key: value
        for key, value in template.metadata.items()
        if key not in _OF_ONE_OBJECT and value is not None
    }
    metadata["name"] = name
    metadata["generateName"] = name_prefix(machine_set)
    metadata["namespace"] = machine_set.metadata.namespace
    metadata["labels"] = labels_of(template)
    metadata["ownerReferences"] = [
        to_json_object(controller_reference(MACHINE_SETS, machine_set.metadata))
    ]
    if claimed:
        metadata["finalizers"] = [*dict.fromkeys((*finalizers_of(template), MACHINE_FINALIZER))]
    spec = dict(template.spec)
    annotations = annotations_of(template)
    override = machine_set.metadata.annotations.get(ANNOTATION_EFFECTIVE_CREATION_TIMEOUT)
    if override is not None:
        annotations[ANNOTATION_EFFECTIVE_CREATION_TIMEOUT] = override
        if is_creation_timeout(override):
            spec["creationTimeout"] = override
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": spec}


def is_creation_timeout(text: str) -> bool:
    """Tell whether the text of the override annotation is a duration, and so takes effect."""
    try:
        parse_duration(text)
    except ValueError:
        return False
    return True
