"""Which zone a machine is in: as its Node says, else its template, else its class."""

from __future__ import annotations

from collections.abc import Mapping

from mcm.api.core import Node
from mcm.api.machine import Machine, MachineClass
from mcm.api.names import LABEL_ZONE, LABEL_ZONE_BETA


def zone_of(machine: Machine, node: Node | None, class_: MachineClass | None) -> str:
    """Return the zone; empty if nothing tells. ``node`` is None before it is known."""
    for labels in (node.metadata.labels if node else {}, template_labels(machine)):
        if found := labels.get(LABEL_ZONE) or labels.get(LABEL_ZONE_BETA):
            return found
    return class_.node_template.zone if class_ and class_.node_template else ""


def template_labels(machine: Machine) -> Mapping[str, str]:
    """Return the labels that its template wants on the machine's Node."""
    template = machine.spec.node_template
    return (template.metadata.labels if template and template.metadata else None) or {}
