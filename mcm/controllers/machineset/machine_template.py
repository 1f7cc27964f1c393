"""Making a Machine from a set's template.

The template is copied as it was sent: what we have no type for reaches the machine all the same.
"""

from __future__ import annotations

import random
from typing import Final

from mcm.api.codec import to_json_object
from mcm.api.durations import parse_duration
from mcm.api.machine import MACHINE_SETS, MachineSet
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_EFFECTIVE_CREATION_TIMEOUT
from mcm.api.templates import annotations_of, labels_of
from mcm.controllers.ownership import controller_reference

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
# The API server's own rules for generated names.
_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5
_LONGEST_NAME: Final = 63


def generated_name(machine_set: MachineSet, randomness: random.Random) -> str:
    """Return a new name as the API server would generate it from :func:`name_prefix`.

    It is chosen here, so that a creation whose answer got lost can be asked for again by name.
    """
    suffix = "".join(randomness.choices(_SUFFIX_LETTERS, k=_SUFFIX_LENGTH))
    return name_prefix(machine_set)[: _LONGEST_NAME - _SUFFIX_LENGTH] + suffix


def name_prefix(machine_set: MachineSet) -> str:
    return f"{machine_set.metadata.name}-"


def new_machine(machine_set: MachineSet, name: str) -> JSONObject:
    """Return the body of a Machine called ``name``, owned by ``machine_set``."""
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
