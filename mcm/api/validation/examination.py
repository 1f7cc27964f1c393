"""All there is to say about one object of any of the four kinds, errors and warnings."""

from __future__ import annotations

from typing import TypeAlias, assert_never

from mcm.api.machine import Machine, MachineClass, MachineDeployment, MachineSet
from mcm.api.validation.counts import DEFAULT_MAX_REPLICAS, replicas_findings
from mcm.api.validation.field_errors import FieldError
from mcm.api.validation.machine import machine_findings
from mcm.api.validation.machine_class import machine_class_findings
from mcm.api.validation.machine_deployment import machine_deployment_findings
from mcm.api.validation.machine_set import machine_set_findings

Examined: TypeAlias = Machine | MachineClass | MachineDeployment | MachineSet


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


def examine_replicas(
    replicas: int, *, max_replicas: int = DEFAULT_MAX_REPLICAS
) -> tuple[FieldError, ...]:
    """Return what is wrong with ``spec.replicas`` alone, as a scale subresource sets it."""
    return tuple(replicas_findings(replicas, max_replicas))
