"""Which virtual capacity a Node is to have: what its class says, beside what its kubelet found."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TypeAlias

import orjson

from mcm.api.core import Node
from mcm.api.machine import MachineClass
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_LAST_APPLIED_VIRTUAL_CAPACITY
from mcm.api.quantities import parse_quantity
from mcm.controllers.machine.node.last_applied import last_applied
from mcm.controllers.machine.node.template_faults import faults_of_capacity

Capacity: TypeAlias = Mapping[str, str | int]


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


def _virtual_capacity(machine_class: MachineClass | None) -> Capacity | None:
    """None: not known what is wanted, so nothing may be taken away. Without what is invalid."""
    if machine_class is None or machine_class.node_template is None:
        return None
    wrong = faults_of_class(machine_class)
    every = machine_class.node_template.virtual_capacity
    return {key: amount for key, amount in every.items() if key not in wrong}


def faults_of_class(machine_class: MachineClass | None) -> Mapping[str, str]:
    """Return what is wrong with each amount of the class's virtual capacity, by its key."""
    if machine_class is None or machine_class.node_template is None:
        return {}
    faults = faults_of_capacity(machine_class.node_template.virtual_capacity)
    return {key: f"machine class {machine_class.metadata.name}: {f}" for key, f in faults.items()}


def _applied_capacity(node: Node) -> Capacity:
    return last_applied(node, ANNOTATION_LAST_APPLIED_VIRTUAL_CAPACITY, dict[str, str | int]) or {}


def capacity_record(node: Node, machine_class: MachineClass | None) -> dict[str, str | None]:
    """Return the change to the annotation that says which virtual capacity was applied."""
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
