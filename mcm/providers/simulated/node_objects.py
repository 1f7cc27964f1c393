"""What a kubelet tells the cluster of its VM: the Node it registers, the conditions it reports."""

from __future__ import annotations

import zlib
from datetime import datetime

from mcm.api.core import Node
from mcm.api.meta import JSONObject
from mcm.api.timestamps import rfc3339
from mcm.providers.simulated.virtual_machine import VirtualMachine

KUBELET_VERSION = "v1.32.0-simulated"
_PODS = "110"
_HEALTHY = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}


def node_manifest(vm: VirtualMachine, now: datetime) -> JSONObject:
    """Return the Node as registered: everything known but not yet Ready."""
    resources = {"pods": _PODS, "ephemeral-storage": "50Gi", **vm.spec.capacity}
    return {
        "metadata": {"name": vm.spec.node_name, "labels": _labels(vm)},
        "spec": {"providerID": vm.provider_id},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "addresses": [
                {"type": "Hostname", "address": vm.spec.node_name},
                {"type": "InternalIP", "address": internal_ip(vm.spec.node_name)},
            ],
            "nodeInfo": _node_info(vm),
            "conditions": first_conditions(vm, now),
        },
    }


def wanted_conditions(vm: VirtualMachine) -> dict[str, str]:
    """Return type → status as a running kubelet reports them: healthy but for what the VM says."""
    healthy = {**dict.fromkeys(_HEALTHY, "False"), "Ready": "True"}
    return {**healthy, **vm.spec.node_conditions}


def changed_conditions(node: Node, vm: VirtualMachine, now: datetime) -> list[JSONObject]:
    """Return the conditions that the Node shows otherwise than its kubelet sees them, for a
    strategic patch. One that the VM asked for once, and no longer does, becomes ``False``."""
    shown = {c.type: c for c in node.status.conditions}
    healed = {c.type: "False" for c in shown.values() if c.reason == _simulated(c.type)}
    return [
        _condition(type_, status, now)
        for type_, status in {**healed, **wanted_conditions(vm)}.items()
        if type_ not in shown or shown[type_].status != status
    ]


def first_conditions(vm: VirtualMachine, now: datetime) -> list[JSONObject]:
    """Return the conditions at registration: not Ready yet, all else as it is."""
    wanted = {**wanted_conditions(vm), "Ready": "False"}
    return [_condition(type_, status, now) for type_, status in wanted.items()]


def internal_ip(node_name: str) -> str:
    """Return an address in 10.0.0.0/8 that a name always maps to."""
    number = zlib.crc32(node_name.encode()) & 0xFFFFFF
    return f"10.{number >> 16}.{number >> 8 & 0xFF}.{number & 0xFF}"


def _condition(type_: str, status: str, now: datetime) -> JSONObject:
    reason, message = _explanation(type_, status)
    stamp = rfc3339(now)
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": stamp,
        "lastTransitionTime": stamp,
    }


def _explanation(type_: str, status: str) -> tuple[str, str]:
    if type_ == "Ready":
        if status == "True":
            return "KubeletReady", "kubelet is posting ready status"
        return "KubeletNotReady", "container runtime network not ready"
    if status == "False" and type_ in _HEALTHY:
        return _HEALTHY[type_]
    if status == "False":
        return f"No{type_}", f"the VM's nodeConditions ask for {type_} no more"
    return _simulated(type_), f"the VM's nodeConditions ask for {type_}={status}"


def _simulated(type_: str) -> str:
    return f"Simulated{type_}"


def _labels(vm: VirtualMachine) -> dict[str, str]:
    spec = vm.spec
    described = {
        "node.kubernetes.io/instance-type": spec.instance_type,
        "topology.kubernetes.io/region": spec.region,
        "topology.kubernetes.io/zone": spec.zone,
    }
    return {
        "kubernetes.io/hostname": spec.node_name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **{key: value for key, value in described.items() if value},
        **spec.node_labels,
    }


def _node_info(vm: VirtualMachine) -> JSONObject:
    return {
        "kubeletVersion": KUBELET_VERSION,
        "kubeProxyVersion": KUBELET_VERSION,
        "containerRuntimeVersion": "simulated://1",
        "osImage": "Simulated Linux",
        "operatingSystem": "linux",
        "architecture": "amd64",
        "kernelVersion": "6.0.0",
        "machineID": vm.metadata.uid,
        "systemUUID": vm.metadata.uid,
        "bootID": vm.metadata.uid,
    }
