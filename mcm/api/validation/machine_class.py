"""What a MachineClass must satisfy; its ``providerSpec`` is for the driver to judge."""

from __future__ import annotations

from collections.abc import Mapping

from mcm.api.machine import MachineClass, MachineClassNodeTemplate
from mcm.api.quantities import parse_quantity
from mcm.api.validation.field_errors import Errors, FieldError, required, unread

_NEEDED_CAPACITY = ("cpu", "gpu", "memory")


def validate_machine_class(machine_class: MachineClass) -> tuple[FieldError, ...]:
    """Check ``nodeTemplate``, which may be absent."""
    template = machine_class.node_template
    parts = () if template is None else tuple(_node_template_errors(template))
    return (*unread(machine_class.metadata), *parts)


def _node_template_errors(template: MachineClassNodeTemplate) -> Errors:
    for key in _NEEDED_CAPACITY:
        if key not in template.capacity:
            yield required(f"nodeTemplate.capacity[{key}]", f"{key} is required")
    yield from _quantity_errors(template.capacity, "nodeTemplate.capacity")
    yield from _quantity_errors(template.virtual_capacity, "nodeTemplate.virtualCapacity")
    texts = {
        "instanceType": template.instance_type,
        "region": template.region,
        "zone": template.zone,
    }
    for name, text in texts.items():
        if not text:
            yield required(f"nodeTemplate.{name}", f"{name} is required")


def _quantity_errors(amounts: Mapping[str, str | int], path: str) -> Errors:
    for key, amount in amounts.items():
        try:
            negative = parse_quantity(amount) < 0
        except ValueError:
            yield FieldError(
                f"{path}[{key}]", "must be a quantity like 4, 500m or 16Gi", value=amount
            )
            continue
        if negative:
            yield FieldError(f"{path}[{key}]", "must not be negative", value=amount)
