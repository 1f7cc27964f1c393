"""What a MachineClass must satisfy; its ``providerSpec`` is for the driver to judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcm.api.core import SecretReference
from mcm.api.labels import is_label_key, is_object_name
from mcm.api.machine import MachineClass, MachineClassNodeTemplate
from mcm.api.validation.field_errors import (
    FieldError,
    Findings,
    errors_among,
    required,
    shortened,
    unread,
    warning,
)
from mcm.api.validation.node_template import fault_of_amount, fault_of_quantity

_NEEDED_CAPACITY: Final = ("cpu", "gpu", "memory")


def validate_machine_class(machine_class: MachineClass) -> tuple[FieldError, ...]:
    """Return what keeps machines of a class from being made."""
    return errors_among(machine_class_findings(machine_class))


def machine_class_findings(machine_class: MachineClass) -> Findings:
    """Check ``nodeTemplate``, which may be absent, and the secrets' names. ``provider`` may be
    anything."""
    yield from unread(machine_class.metadata)
    if machine_class.node_template is not None:
        yield from _node_template_findings(machine_class.node_template)
    yield from _reference_findings(machine_class.secret_ref, "secretRef")
    yield from _reference_findings(machine_class.credentials_secret_ref, "credentialsSecretRef")


def _node_template_findings(template: MachineClassNodeTemplate) -> Findings:
    for key in _NEEDED_CAPACITY:
        if key not in template.capacity:
            yield required(f"nodeTemplate.capacity[{key}]", f"{key} is required")
    yield from _quantity_findings(template.capacity, "nodeTemplate.capacity")
    yield from _quantity_findings(template.virtual_capacity, "nodeTemplate.virtualCapacity")
    for key in template.virtual_capacity:
        if not is_label_key(key):
            detail = f"{fault_of_amount(key, 0)}; it is left out"
            yield warning(f"nodeTemplate.virtualCapacity[{key}]", detail)
    texts = {
        "instanceType": template.instance_type,
        "region": template.region,
        "zone": template.zone,
    }
    for name, text in texts.items():
        if not text:
            yield required(f"nodeTemplate.{name}", f"{name} is required")


def _quantity_findings(amounts: Mapping[str, str | int], path: str) -> Findings:
    for key, amount in amounts.items():
        if fault := fault_of_quantity(amount):
            shown = shortened(amount) if isinstance(amount, str) else amount
            yield FieldError(f"{path}[{key}]", fault, value=shown)


def _reference_findings(reference: SecretReference | None, path: str) -> Findings:
    if reference is None:
        return
    if not reference.name:
        yield warning(f"{path}.name", "is empty, so no secret is used")
    elif not is_object_name(reference.name):
        detail = "must be the name of an object: at most 253 of a-z, 0-9, - and ."
        yield warning(f"{path}.name", detail, value=reference.name)
    if reference.namespace and not is_object_name(reference.namespace):
        detail = "must be the name of a namespace"
        yield warning(f"{path}.namespace", detail, value=reference.namespace)
