"""What the schemas say beyond the types: carried fields, and what a type annotation cannot express.

A type declares only the fields we use. Whoever adds a field to a type later must take it out of
``fields`` here; a test holds the two apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcm.api import core, machine, meta
from mcm.api.meta import JSONObject

TEXT: JSONObject = {"type": "string"}
FLAG: JSONObject = {"type": "boolean"}
TIME: JSONObject = {"type": "string", "format": "date-time", "nullable": True}
"""Nullable, as all times are here: Go writes a time that was never set as null."""


@dataclass(frozen=True, slots=True)
class Extras:
    """Additions to the schema made from one type. All names are wire names."""

    fields: Mapping[str, JSONObject] = field(default_factory=dict)
    """Carried: in the objects, not in the type."""
    required: tuple[str, ...] = ()
    """Required on the wire, although the type has a default."""
    nullable: frozenset[str] = frozenset()
    """Go clients may write null here."""
    int64: frozenset[str] = frozenset()
    """All other integers are int32."""
    opaque: frozenset[str] = frozenset()
    """Objects of which nothing is described and everything is kept."""
    open: frozenset[str] = frozenset()
    """Objects that are described, and keep what is not."""
    described_by: Mapping[str, type] = field(default_factory=dict)
    """Kept raw by the type, described to the API server by another type."""
    atomic: frozenset[str] = frozenset()
    """Replaced whole by a server-side apply."""


_CONFIG_MAP: JSONObject = {
    "type": "object",
    "properties": {
        "kubeletConfigKey": TEXT,
        "name": TEXT,
        "namespace": TEXT,
        "resourceVersion": TEXT,
        "uid": TEXT,
    },
    "required": ["kubeletConfigKey", "name", "namespace"],
}

# A node template's spec is a core NodeSpec: of all this we read the taints only.
_NODE_SPEC_FIELDS: Mapping[str, JSONObject] = {
    "configSource": {"type": "object", "properties": {"configMap": _CONFIG_MAP}},
    "externalID": TEXT,
    "podCIDR": TEXT,
    "podCIDRs": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
    "providerID": TEXT,
    "unschedulable": FLAG,
}

EXTRAS: Mapping[type, Extras] = {
    meta.LabelSelector: Extras(atomic=frozenset({"matchExpressions"})),
    meta.LabelSelectorRequirement: Extras(atomic=frozenset({"values"})),
    core.NodeCondition: Extras(fields={"lastHeartbeatTime": TIME}),
    machine.TemplateNodeSpec: Extras(fields=_NODE_SPEC_FIELDS, atomic=frozenset({"taints"})),
    machine.NodeTemplateSpec: Extras(opaque=frozenset({"metadata"})),
    machine.MachineTemplate: Extras(
        opaque=frozenset({"metadata"}), described_by={"spec": machine.MachineSpec}
    ),
    machine.MachineClass: Extras(
        required=("providerSpec",),
        open=frozenset({"nodeTemplate"}),
        atomic=frozenset({"credentialsSecretRef", "secretRef"}),
    ),
    machine.MachineClassNodeTemplate: Extras(
        required=("capacity", "instanceType", "region", "zone")
    ),
    machine.MachineSetSpec: Extras(atomic=frozenset({"selector"})),
    machine.MachineSetStatus: Extras(
        nullable=frozenset({"failedMachines"}), int64=frozenset({"observedGeneration"})
    ),
    machine.MachineDeploymentSpec: Extras(
        required=("template",),
        nullable=frozenset({"progressDeadlineSeconds", "revisionHistoryLimit", "rollbackTo"}),
        atomic=frozenset({"selector"}),
    ),
    machine.RollbackConfig: Extras(int64=frozenset({"revision"})),
    machine.MachineDeploymentStatus: Extras(
        nullable=frozenset({"collisionCount", "failedMachines"}),
        int64=frozenset({"observedGeneration"}),
    ),
}
