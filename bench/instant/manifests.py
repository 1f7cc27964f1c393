"""The objects of a measured fleet, of the size that they have in earnest."""

from __future__ import annotations

import base64
from typing import Final

from bench.instant.plug_in import NAME
from mcm.api.meta import JSONObject

SECRET: Final = "cloud"
CLASSES: Final = ("small", "large")
FLEET_LABEL: Final = "bench.machine.sapcloud.io/fleet"
"""On each Node that the bench lets join: the namespace of its machine."""

LEASES_OF_NODES: Final = "kube-node-lease"

_GROUP = "machine.sapcloud.io/v1alpha1"
_USER_DATA = "#!/bin/sh\necho joining as <<MACHINE_NAME>>{credentials}\n"
_TOKEN = " with <<BOOTSTRAP_TOKEN>>"
_SINCE = "2026-01-01T00:00:00Z"
_HEALTHY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "has sufficient PID available"),
    ("NetworkUnavailable", "False", "RouteCreated", "the node is connected"),
    ("Ready", "True", "KubeletReady", "is posting ready status"),
)


def secret(*, bootstrap_tokens: bool) -> JSONObject:
    """The credentials of the classes, with user data that asks for a bootstrap token, or not."""
    text = _USER_DATA.format(credentials=_TOKEN if bootstrap_tokens else "")
    data = {"userData": base64.b64encode(text.encode()).decode()}
    return {"metadata": {"name": SECRET}, "type": "Opaque", "data": data}


def machine_class(name: str, namespace: str, others: JSONObject) -> JSONObject:
    """A class; ``others`` are fields of another provider's, which go before ours."""
    return {
        "metadata": {"name": name},
        "provider": NAME,
        "secretRef": {"name": SECRET, "namespace": namespace},
        "nodeTemplate": {
            "capacity": {"cpu": "4", "gpu": "0", "memory": "16Gi"},
            "instanceType": f"instant.{name}",
            "region": "bench",
            "zone": "bench-a",
        },
        "providerSpec": {},
        **others,
    }


def deployment(name: str, replicas: int) -> JSONObject:
    """Twenty percent at a time; a machine is Failed as soon as its Node is seen to be unhealthy."""
    labels = {"name": name}
    rolling = {"maxSurge": "20%", "maxUnavailable": "20%"}
    template = {
        "metadata": {"labels": labels},
        "spec": {
            "class": {
                "apiGroup": "machine.sapcloud.io",
                "kind": "MachineClass",
                "name": CLASSES[0],
            },
            "healthTimeout": "1s",
            "nodeTemplate": {
                "metadata": {
                    "labels": {"pool": name, "topology.kubernetes.io/zone": "bench-a"},
                    "annotations": {"bench.machine.sapcloud.io/made-for": "a benchmark"},
                }
            },
        },
    }
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            "template": template,
        },
    }


def node(name: str, provider_id: str, fleet: str) -> JSONObject:
    """A Node as its kubelet registers it, healthy from the first; ``fleet`` is its label."""
    capacity = {
        "cpu": "4",
        "ephemeral-storage": "51474912Ki",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": "16393244Ki",
        "pods": "110",
    }
    return {
        "metadata": {
            "name": name,
            "labels": {
                FLEET_LABEL: fleet,
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": "instant.small",
            },
        },
        "spec": {"providerID": provider_id},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": "10.250.0.1"},
                {"type": "Hostname", "address": name},
            ],
            "allocatable": {**capacity, "cpu": "3920m", "memory": "14000000Ki"},
            "capacity": capacity,
            "conditions": [_condition(*each) for each in _HEALTHY],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "5b1cc0d5-1d0c-4c5a-9d3e-0b8a6a9c6d10",
                "containerRuntimeVersion": "containerd://1.7.24",
                "kernelVersion": "6.6.62",
                "kubeProxyVersion": "v1.32.0",
                "kubeletVersion": "v1.32.0",
                "machineID": "5b1cc0d51d0c4c5a9d3e0b8a6a9c6d10",
                "operatingSystem": "linux",
                "osImage": "Linux",
                "systemUUID": "5b1cc0d5-1d0c-4c5a-9d3e-0b8a6a9c6d10",
            },
        },
    }


def lease(name: str, fleet: str, renewed: str) -> JSONObject:
    """A kubelet's lease, ``renewed`` at a time (RFC 3339, with microseconds)."""
    return {
        "metadata": {"name": name, "labels": {FLEET_LABEL: fleet}},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": renewed},
    }


def dead_kubelet() -> JSONObject:
    """A patch (strategic) of the status of a Node whose VM is gone."""
    dead = _condition("Ready", "False", "KubeletStopped", "the VM was killed by the benchmark")
    return {"status": {"conditions": [dead]}}


def machine(name: str, namespace: str) -> JSONObject:
    """A Machine as a set makes it, for the measurement of what a server can take."""
    template = deployment("raw", 1)["spec"]["template"]  # type: ignore[index]
    return {
        "apiVersion": _GROUP,
        "kind": "Machine",
        "metadata": {"name": name, "namespace": namespace, "labels": {"name": "raw"}},
        "spec": template["spec"],
    }


def pending_machine(name: str) -> JSONObject:
    """A patch of the status of a Machine whose VM is there: phase and last operation."""
    about = f"Creating machine {name} on cloud provider"
    return {"status": _status("Pending", about, "Processing")}


def running_machine(name: str) -> JSONObject:
    """A patch of the status of a Machine that has joined: also the conditions of its Node."""
    patch = _status("Running", f"Machine {name} successfully joined the cluster", "Successful")
    return {"status": {**patch, "conditions": [_condition(*each) for each in _HEALTHY]}}


def _status(phase: str, description: str, state: str) -> JSONObject:
    return {
        "currentStatus": {"phase": phase, "lastUpdateTime": _SINCE, "timeoutActive": True},
        "lastOperation": {
            "description": description,
            "lastUpdateTime": _SINCE,
            "state": state,
            "type": "Create",
        },
    }


def _condition(kind: str, status: str, reason: str, message: str) -> JSONObject:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": f"kubelet {message}",
        "lastHeartbeatTime": _SINCE,
        "lastTransitionTime": _SINCE,
    }


def named(manifest: JSONObject, name: str) -> JSONObject:
    return {**manifest, "metadata": {"name": name}}


def event(name: str, namespace: str) -> JSONObject:
    about = {
        "apiVersion": _GROUP,
        "kind": "Machine",
        "name": name,
        "namespace": namespace,
    }
    return {
        "metadata": {"name": name},
        "involvedObject": about,
        "reason": "Created",
        "message": f"Machine {name} was created by the benchmark",
        "type": "Normal",
        "source": {"component": "bench"},
        "firstTimestamp": _SINCE,
        "lastTimestamp": _SINCE,
        "count": 1,
    }
