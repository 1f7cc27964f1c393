"""The fleet that is measured with: objects as a server with field management sends them.

Everything is a function of numbers, so that two processes can make the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import orjson

from mcm.api.core import NODES, PODS
from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject, KubeObject, Resource
from mcm.api.names import ANNOTATION_INITIAL_EVENTS_END

NAMESPACE = "shoot--project--cluster"
FIRST_VERSION = 10_000_000
"""The version of the first list; its objects have lower ones, events higher ones."""

_TIME = "2026-01-01T10:00:00Z"
_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_PHASES = ("Pending", "Running")


class _Make(Protocol):
    def __call__(self, number: int, *, version: int, turn: int = 1) -> JSONObject: ...


def _version_of_list(turn: int) -> int:
    return FIRST_VERSION + turn * 1_000_000


@dataclass(frozen=True, slots=True)
class Kind:
    """A resource of the fleet. ``indexed`` are the labels by which a mirror must find objects;
    ``bare_items``: the server leaves apiVersion and kind out of list items (built-in kinds)."""

    resource: Resource[KubeObject]
    make: _Make
    indexed: tuple[str, ...]
    bare_items: bool = False

    @property
    def path(self) -> str:
        return self.resource.path()

    def listed(self, count: int, *, turn: int = 1) -> bytes:
        """Return the body of a complete list, in which each object is in its ``turn``-th state."""
        return self.page(range(count), count, turn=turn)

    def page(self, numbers: range, count: int, *, turn: int = 1, token: str = "") -> bytes:
        """Return a page with ``numbers`` of such a list; ``token`` says where the next begins."""
        items = [self._item(number, count, turn) for number in numbers]
        if self.bare_items:
            for item in items:
                del item["apiVersion"], item["kind"]
        version = str(_version_of_list(turn))
        return orjson.dumps(
            {
                "apiVersion": self.resource.api_version,
                "kind": f"{self.resource.kind}List",
                "metadata": {"resourceVersion": version, **({"continue": token} if token else {})},
                "items": items,
            }
        )

    def streamed(self, numbers: range, count: int, *, turn: int = 1) -> bytes:
        """Return the frames that bring ``numbers`` of such a list as a stream."""
        items = (self._item(number, count, turn) for number in numbers)
        return b"".join(orjson.dumps({"type": "ADDED", "object": i}) + b"\n" for i in items)

    def end_of_stream(self, *, turn: int = 1) -> bytes:
        """Return the bookmark after the last of ``streamed``."""
        metadata = {
            "resourceVersion": str(_version_of_list(turn)),
            "annotations": {ANNOTATION_INITIAL_EVENTS_END: "true"},
        }
        resource = self.resource
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        return orjson.dumps({"type": "BOOKMARK", "object": {**head, "metadata": metadata}}) + b"\n"

    def _item(self, number: int, count: int, turn: int) -> JSONObject:
        return self.make(number, version=_version_of_list(turn) - count + number, turn=turn)

    def events(self, count: int, rounds: int) -> Iterator[bytes]:
        """Yield the frames of a watch after ``listed(count)`` in which each object changes
        ``rounds`` times."""
        version = _version_of_list(1)
        for turn in range(2, rounds + 2):
            for number in range(count):
                version += 1
                obj = self.make(number, version=version, turn=turn)
                yield orjson.dumps({"type": "MODIFIED", "object": obj}) + b"\n"

    def last_version(self, count: int, rounds: int) -> str:
        """Return the version of the last of ``events``."""
        return str(_version_of_list(1) + count * rounds)


def machine(number: int, *, version: int, turn: int = 1) -> JSONObject:
    """A Machine of about 3 kB; its phase alternates with ``turn``."""
    name = f"{NAMESPACE}-worker-z{number % 3}-6f9c8-{number:05d}"
    return {
        "apiVersion": MACHINES.api_version,
        "kind": MACHINES.kind,
        "metadata": _machine_metadata(number, name, version),
        "spec": _machine_spec(number),
        "status": {
            "conditions": _conditions(turn),
            "currentStatus": {"phase": _PHASES[turn % 2], "lastUpdateTime": _TIME},
            "lastOperation": {
                "description": f"Machine {name} successfully joined the cluster",
                "lastUpdateTime": _TIME,
                "state": "Successful",
                "type": "Create",
            },
            "addresses": [{"type": "InternalIP", "address": _address(number)}],
        },
    }


def node(number: int, *, version: int, turn: int = 1) -> JSONObject:
    """A Node of about 2.5 kB; a condition's reason alternates with ``turn``."""
    resources = {"cpu": "4", "memory": "16Gi", "pods": "110", "ephemeral-storage": "50Gi"}
    return {
        "apiVersion": NODES.api_version,
        "kind": NODES.kind,
        "metadata": _node_metadata(number, version),
        "spec": {
            "podCIDR": f"100.64.{number & 255}.0/24",
            "providerID": f"aws:///eu-west-1/i-{number:017x}",
            "taints": [{"key": "dedicated", "value": "a", "effect": "NoSchedule"}],
        },
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": _address(number)},
                {"type": "Hostname", "address": _node_name(number)},
            ],
            "allocatable": resources,
            "capacity": resources,
            "conditions": _conditions(turn),
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": _node_info(number),
        },
    }


def pod(number: int, *, version: int, turn: int = 1) -> JSONObject:
    """A running Pod of about 4.5 kB; whether it is ready alternates with ``turn``."""
    name = f"web-{number // 10:05d}-7d9c6b5f48-{number:06d}"
    mount = {"name": "kube-api-access", "mountPath": "/var/run/secrets", "readOnly": True}
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": _pod_metadata(number, name, version),
        "spec": {
            "nodeName": _node_name(number // 10),
            "containers": [
                {
                    "name": container,
                    "image": f"registry.example.org/{container}:v1.2.3",
                    "imagePullPolicy": "IfNotPresent",
                    "env": [{"name": f"SETTING_{n}", "value": f"value-{n}"} for n in range(12)],
                    "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}},
                    "volumeMounts": [mount],
                }
                for container in ("web", "proxy")
            ],
            "volumes": [{"name": "kube-api-access", "emptyDir": {}}],
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{state}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for state in ("not-ready", "unreachable")
            ],
            "serviceAccountName": "web",
            "terminationGracePeriodSeconds": 30,
            "restartPolicy": "Always",
        },
        "status": {
            "phase": "Running",
            "conditions": _pod_conditions(turn),
            "hostIP": _address(number // 10),
            "podIP": f"100.{64 + (number >> 16)}.{number >> 8 & 255}.{number & 255}",
            "startTime": _TIME,
            "containerStatuses": [
                {
                    "name": container,
                    "ready": True,
                    "restartCount": 0,
                    "image": f"registry.example.org/{container}:v1.2.3",
                    "containerID": f"containerd://{number:064x}",
                    "state": {"running": {"startedAt": _TIME}},
                }
                for container in ("web", "proxy")
            ],
        },
    }


def _machine_spec(number: int) -> JSONObject:
    return {
        "class": {
            "apiGroup": MACHINES.group,
            "kind": "MachineClass",
            "name": f"{NAMESPACE}-worker-z{number % 3}-abc12",
        },
        "providerID": f"aws:///eu-west-1/i-{number:017x}",
        "drainTimeout": "2h0m0s",
        "healthTimeout": "10m0s",
        "nodeTemplate": {
            "metadata": {
                "labels": {
                    "worker.gardener.cloud/pool": "worker",
                    "node.kubernetes.io/role": "node",
                    "topology.kubernetes.io/zone": _zone(number),
                },
                "annotations": {"checksum/cloud-config-data": "5f3c" * 16},
            },
            "spec": {"taints": [{"key": "dedicated", "value": "a", "effect": "NoSchedule"}]},
        },
    }


def _machine_metadata(number: int, name: str, version: int) -> JSONObject:
    return {
        "name": name,
        "generateName": name[:-5],
        "namespace": NAMESPACE,
        "uid": f"6a1b2c3d-0000-4000-8000-{number:012d}",
        "resourceVersion": str(version),
        "generation": 2,
        "creationTimestamp": _TIME,
        "labels": {
            "machine-template-hash": "6f9c8",
            "name": name[:-12],
            "node": _node_name(number),
        },
        "annotations": {"machinepriority.machine.sapcloud.io": "3"},
        "finalizers": ["machine.sapcloud.io/machine-controller-manager"],
        "ownerReferences": [
            {
                "apiVersion": MACHINES.api_version,
                "kind": "MachineSet",
                "name": name[:-6],
                "uid": f"11111111-2222-4333-8444-{number % 30:012d}",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": _managed_fields("machine-controller-manager", MACHINES.api_version),
    }


def _pod_metadata(number: int, name: str, version: int) -> JSONObject:
    return {
        "name": name,
        "generateName": name[:-6],
        "namespace": f"team-{number // 1000:03d}",
        "uid": f"8c3d4e5f-0000-4000-8000-{number:012d}",
        "resourceVersion": str(version),
        "creationTimestamp": _TIME,
        "labels": {"app": name[:9], "pod-template-hash": "7d9c6b5f48", "tier": "front"},
        "annotations": {"checksum/config": "5f3c" * 16},
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": name[:-7],
                "uid": f"22222222-2222-4333-8444-{number // 10:012d}",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": _managed_fields("kube-controller-manager", "v1"),
    }


def _node_metadata(number: int, version: int) -> JSONObject:
    return {
        "name": _node_name(number),
        "uid": f"7b2c3d4e-0000-4000-8000-{number:012d}",
        "resourceVersion": str(version),
        "creationTimestamp": _TIME,
        "labels": {
            "kubernetes.io/hostname": _node_name(number),
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            "node.kubernetes.io/instance-type": "m5.xlarge",
            "topology.kubernetes.io/region": "eu-west-1",
            "topology.kubernetes.io/zone": _zone(number),
            "worker.gardener.cloud/pool": "worker",
        },
        "annotations": {
            "node.alpha.kubernetes.io/ttl": "0",
            "volumes.kubernetes.io/controller-managed-attach-detach": "true",
        },
        "managedFields": _managed_fields("kubelet", NODES.api_version)[:1],
    }


def _managed_fields(manager: str, api_version: str) -> list[JSONObject]:
    return [
        {
            "manager": manager,
            "operation": operation,
            "apiVersion": api_version,
            "time": _TIME,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:annotations": {".": {}}, "f:labels": {".": {}, "f:node": {}}},
                "f:spec": {"f:class": {"f:kind": {}, "f:name": {}}, "f:providerID": {}},
            },
        }
        for operation in ("Update", "Apply")
    ]


def _conditions(turn: int) -> list[JSONObject]:
    return [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "reason": f"Kubelet{_PHASES[turn % 2]}",
            "message": f"kubelet reports {kind}",
            "lastHeartbeatTime": _TIME,
            "lastTransitionTime": _TIME,
        }
        for kind in _CONDITIONS
    ]


def _pod_conditions(turn: int) -> list[JSONObject]:
    return [
        {
            "type": kind,
            "status": "False" if kind == "Ready" and turn % 2 else "True",
            "lastProbeTime": None,
            "lastTransitionTime": _TIME,
        }
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]


def _node_info(number: int) -> JSONObject:
    return {
        "architecture": "amd64",
        "bootID": f"0f1e2d3c-0000-4000-8000-{number:012d}",
        "containerRuntimeVersion": "containerd://2.0.1",
        "kernelVersion": "6.12.0-amd64",
        "kubeProxyVersion": "v1.33.0",
        "kubeletVersion": "v1.33.0",
        "machineID": f"{number:032x}",
        "operatingSystem": "linux",
        "osImage": "Some Linux 1592.0",
        "systemUUID": f"ec2{number:029x}",
    }


def _node_name(number: int) -> str:
    return f"ip-10-{250 + (number >> 16)}-{number >> 8 & 255}-{number & 255}.eu-west-1.internal"


def _address(number: int) -> str:
    return f"10.{250 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"


def _zone(number: int) -> str:
    return f"eu-west-1{'abc'[number % 3]}"


KINDS: dict[str, Kind] = {
    "machines": Kind(MACHINES, machine, indexed=("node", "name")),
    "nodes": Kind(
        NODES,
        node,
        indexed=("kubernetes.io/hostname", "topology.kubernetes.io/zone"),
        bare_items=True,
    ),
    "pods": Kind(PODS, pod, indexed=("app", "tier"), bare_items=True),
}
