"""All there is to say about one object of any of the four kinds, errors and warnings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, assert_never

from mcm.api.codec import DecodeError, decode_object, read_object
from mcm.api.machine import (
    MACHINE_CLASSES,
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    Machine,
    MachineClass,
    MachineDeployment,
    MachineSet,
)
from mcm.api.meta import Resource
from mcm.api.validation.counts import DEFAULT_MAX_REPLICAS, replicas_findings
from mcm.api.validation.field_errors import FieldError
from mcm.api.validation.machine import machine_findings
from mcm.api.validation.machine_class import machine_class_findings
from mcm.api.validation.machine_deployment import machine_deployment_findings
from mcm.api.validation.machine_set import machine_set_findings

Examined: TypeAlias = Machine | MachineClass | MachineDeployment | MachineSet
EXAMINED: Final[Sequence[Resource[Examined]]] = (
    MACHINES,
    MACHINE_CLASSES,
    MACHINE_SETS,
    MACHINE_DEPLOYMENTS,
)


def examine(obj: Examined, *, max_replicas: int = DEFAULT_MAX_REPLICAS) -> tuple[FieldError, ...]:
    """Return every finding, in the order of the fields. ``max_replicas``: 0 for no bound."""
    match obj:
        case Machine():
            return tuple(machine_findings(obj))
        case MachineClass():
            return tuple(machine_class_findings(obj))
        case MachineDeployment():
            return tuple(machine_deployment_findings(obj, max_replicas))
        case MachineSet():
            return tuple(machine_set_findings(obj, max_replicas))
        case _:
            assert_never(obj)


def read_and_examine(
    resource: Resource[Examined], body: bytes, *, max_replicas: int
) -> tuple[Examined | None, tuple[FieldError, ...]]:
    """Return what of the JSON ``body`` can be read, None if nothing can, and every finding; what
    cannot be read is one, too."""
    try:
        obj = decode_object(resource, body)
    except DecodeError as error:
        try:
            obj = read_object(resource, body)
        except DecodeError:  # a name that a server has yet to give is needed for that
            return None, (FieldError(error.path or "object", error.detail),)
    return obj, examine(obj, max_replicas=max_replicas)


def examine_replicas(
    replicas: int, *, max_replicas: int = DEFAULT_MAX_REPLICAS
) -> tuple[FieldError, ...]:
    """Return what is wrong with ``spec.replicas`` alone, as a scale subresource sets it."""
    return tuple(replicas_findings(replicas, max_replicas))
