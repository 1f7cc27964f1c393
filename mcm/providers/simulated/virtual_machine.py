"""The ``VirtualMachine`` kind: one VM of the simulated cloud, and its CRD."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from mcm.api.meta import ApiStruct, JSONObject, ObjectMeta, Resource

GROUP = "simulation.machine.sapcloud.io"
VERSION = "v1alpha1"
PROVIDER_ID_PREFIX = "simulated:///"


TAGGED = ("vm", "network", "disk")
"""What carries tags: the VM, its network interface, its disk; an update gets to them in this order.
"""


class PowerState(StrEnum):
    ON = "On"
    OFF = "Off"


class VMPhase(StrEnum):
    """``status.phase``, as the cloud reports it; empty before the cloud has seen the VM."""

    BOOTING = "Booting"
    RUNNING = "Running"
    STOPPED = "Stopped"


class VirtualMachineSpec(ApiStruct, frozen=True, kw_only=True):
    """Latencies are Go durations; ``node_conditions`` maps a condition type to the status that the
    kubelet shall report for it instead of the healthy one (``Ready: "False"``); ``tags`` holds
    those of each of :data:`TAGGED`, whoever put them there.
    """

    machine_name: str = ""
    machine_class: str = ""
    node_name: str = ""
    power_state: str = PowerState.ON
    boot_latency: str = "0s"
    join_latency: str = "0s"
    joins: bool = True
    instance_type: str = ""
    region: str = ""
    zone: str = ""
    capacity: dict[str, str] = {}
    node_labels: dict[str, str] = {}
    node_conditions: dict[str, str] = {}
    tags: dict[str, dict[str, str]] = {}


class VirtualMachineStatus(ApiStruct, frozen=True, kw_only=True):
    """``start_time`` is when the current boot began; ``joined`` that its kubelet has registered, so
    that a Node deleted by hand stays deleted until the next boot."""

    phase: str = ""
    start_time: datetime | None = None
    joined: bool = False


class VirtualMachine(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: VirtualMachineSpec = VirtualMachineSpec()
    status: VirtualMachineStatus = VirtualMachineStatus()

    @property
    def provider_id(self) -> str:
        return f"{PROVIDER_ID_PREFIX}{self.metadata.namespace}/{self.metadata.name}"


VIRTUAL_MACHINES = Resource(GROUP, VERSION, "virtualmachines", "VirtualMachine", VirtualMachine)


def name_of(provider_id: str, namespace: str) -> str | None:
    """Return the VM's name, or None if the ID is not one of this cloud's in ``namespace``."""
    prefix = f"{PROVIDER_ID_PREFIX}{namespace}/"
    return provider_id.removeprefix(prefix) if provider_id.startswith(prefix) else None


def _string_map() -> JSONObject:
    return {"type": "object", "additionalProperties": {"type": "string"}}


def _spec_schema() -> JSONObject:
    properties: JSONObject = {}
    for field in msgspec.structs.fields(VirtualMachineSpec):
        if field.type is bool:
            properties[field.encode_name] = {"type": "boolean"}
        elif field.type is str:
            properties[field.encode_name] = {"type": "string"}
        elif field.name == "tags":
            maps: JSONObject = {name: _string_map() for name in TAGGED}
            properties[field.encode_name] = {"type": "object", "properties": maps}
        else:
            properties[field.encode_name] = _string_map()
    properties["powerState"] = {
        "type": "string",
        "enum": [str(p) for p in PowerState],
        "default": PowerState.ON.value,
    }
    return {"type": "object", "properties": properties}


def crd_manifest() -> JSONObject:
    """Return the CustomResourceDefinition, needed wherever the simulated provider is used."""
    columns = [
        ("Phase", ".status.phase", 0),
        ("Power", ".spec.powerState", 0),
        ("Machine", ".spec.machineName", 0),
        ("Node", ".spec.nodeName", 1),
        ("Class", ".spec.machineClass", 1),
    ]
    schema: JSONObject = {
        "type": "object",
        "description": "A VM of the simulated cloud. Delete it to see its machine replaced.",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": _spec_schema(),
            "status": {
                "type": "object",
                "properties": {
                    "phase": {"type": "string"},
                    "startTime": {"type": "string", "format": "date-time"},
                    "joined": {"type": "boolean"},
                },
            },
        },
    }
    version: JSONObject = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            *(
                {"name": name, "type": "string", "jsonPath": path, "priority": priority}
                for name, path, priority in columns
            ),
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": VIRTUAL_MACHINES.name},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": "VirtualMachine",
                "listKind": "VirtualMachineList",
                "plural": "virtualmachines",
                "singular": "virtualmachine",
                "shortNames": ["vm", "vms"],
            },
            "versions": [version],
        },
    }
