"""A deployment with all that belongs to it, as the Go original leaves it on the wire.

Zeros are omitted, empty times are null, sets have ``machineSetCondition`` and a ``machineClass``
nobody fills, finalizers and owner references stand in its order. A test takes such a fleet, makes
of it what one write of the original makes, and puts it before a server.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from mcm.api.timestamps import rfc3339
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.sandbox.apiserver.server import ApiServer

Document: TypeAlias = dict[str, Any]

API: Final = "machine.sapcloud.io/v1alpha1"
NAME: Final = "sample"
NAMESPACE: Final = "default"
FINALIZER: Final = "machine.sapcloud.io/machine-controller-manager"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MOST: Final = "deployment.kubernetes.io/max-replicas"
REVISION: Final = "deployment.kubernetes.io/revision"
HISTORY: Final = "deployment.kubernetes.io/revision-history"
HASH: Final = "machine-template-hash"
PREFER_NO_SCHEDULE: Final = "deployment.machine.sapcloud.io/prefer-no-schedule"
OLD_NODE_TAINT: Final = {"key": PREFER_NO_SCHEDULE, "value": "True", "effect": "PreferNoSchedule"}
SCALE_DOWN_DISABLED: Final = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
BY_MCM: Final = "cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm"

_BEGAN: Final = datetime(2026, 1, 1, tzinfo=UTC)
_NAMES: Final = {"a": ("785cb", "3417670253"), "b": ("64485", "2041150911"), "c": ("7ff88", "399")}
_KINDS: Final = {
    "Secret": "secrets",
    "Node": "nodes",
    "MachineClass": "machineclasses.machine.sapcloud.io",
    "MachineDeployment": "machinedeployments.machine.sapcloud.io",
    "MachineSet": "machinesets.machine.sapcloud.io",
    "Machine": "machines.machine.sapcloud.io",
    VIRTUAL_MACHINES.kind: f"virtualmachines.{VIRTUAL_MACHINES.group}",
}


def ago(**past: float) -> str:
    return rfc3339(_BEGAN - timedelta(**past))


def rolling(surge: int | str, unavailable: int | str) -> Document:
    return {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
    }


def in_place(surge: int | str, unavailable: int | str, how: str = "Auto") -> Document:
    return {
        "type": "InPlaceUpdate",
        "inPlaceUpdate": {
            "maxSurge": surge,
            "maxUnavailable": unavailable,
            "orchestrationType": how,
        },
    }


def template(version: str, machine_class: str = "small") -> Document:
    return {
        "metadata": {"creationTimestamp": None, "labels": {"name": NAME, "version": version}},
        "spec": {
            "class": {"apiGroup": "machine.sapcloud.io", "kind": "MachineClass"}
            | {"name": machine_class},
            "healthTimeout": "20s",
            "nodeTemplate": {
                "metadata": {"creationTimestamp": None, "labels": {"pool": NAME}},
                "spec": {},
            },
        },
    }


def without_zeros(counts: Document) -> Document:
    return {key: value for key, value in counts.items() if value}


def condition(kind: str, status: str, reason: str, message: str = "") -> Document:
    """One of a deployment or of a Node."""
    at = ago(minutes=5)
    return {
        "type": kind,
        "status": status,
        "lastUpdateTime": at,
        "lastTransitionTime": at,
        "reason": reason,
        "message": message or reason,
    }


@dataclass
class LeftMachine:
    """A machine with its Node, None if it has none yet, and whether the cloud has its VM."""

    document: Document
    node: Document | None = None
    has_vm: bool = False

    @property
    def name(self) -> str:
        return str(self.document["metadata"]["name"])

    @property
    def uid(self) -> str:
        return str(self.document["metadata"]["uid"])

    @property
    def labels(self) -> Document:
        labels: Document = self.document["metadata"]["labels"]
        return labels

    @property
    def annotations(self) -> Document:
        annotations: Document = self.document["metadata"].setdefault("annotations", {})
        return annotations

    @property
    def its_node(self) -> Document:
        assert self.node is not None
        return self.node

    @property
    def phase(self) -> str:
        return str(self.document.get("status", {}).get("currentStatus", {}).get("phase", ""))

    def set_phase(self, phase: str, kind: str, state: str, text: str, **age: float) -> None:
        at = ago(**(age or {"seconds": 20}))
        status = self.document.setdefault("status", {})
        status["currentStatus"] = {"phase": phase, "lastUpdateTime": at}
        status["lastOperation"] = {
            "description": text,
            "lastUpdateTime": at,
            "state": state,
            "type": kind,
        }

    def deleted(self, step: str = "Deleting machine from cloud provider") -> None:
        """As its set leaves it: deleted and said to be Terminating; ``step`` is how far it is."""
        self.document["metadata"]["deletionTimestamp"] = ago(seconds=30)
        self.document["metadata"]["deletionGracePeriodSeconds"] = 0
        self.set_phase("Terminating", "Delete", "Processing", step, seconds=30)

    def label_node(self, **labels: str) -> None:
        prefix = "node.machine.sapcloud.io/"
        given = {prefix + key.replace("_", "-"): value for key, value in labels.items()}
        self.its_node["metadata"]["labels"].update(given)

    def taint(self, taint: Document) -> None:
        self.its_node["spec"].setdefault("taints", []).append(dict(taint))

    def keep_from_autoscaler(self) -> None:
        annotations = self.its_node["metadata"]["annotations"]
        annotations.update({SCALE_DOWN_DISABLED: "true", BY_MCM: "true"})


@dataclass
class LeftSet:
    """A set with its machines."""

    version: str
    document: Document
    machines: list[LeftMachine] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.document["metadata"]["name"])

    @property
    def spec(self) -> Document:
        spec: Document = self.document["spec"]
        return spec

    @property
    def size(self) -> int:
        return int(self.spec.get("replicas", 0))

    @property
    def labels(self) -> Document:
        labels: Document = self.document["metadata"]["labels"]
        return labels

    @property
    def annotations(self) -> Document:
        annotations: Document = self.document["metadata"]["annotations"]
        return annotations

    def scaled(self, replicas: int) -> None:
        """The size is another, and not observed yet; zero is not on the wire."""
        self.spec.pop("replicas", None)
        self.spec.update(without_zeros({"replicas": replicas}))
        self.document["metadata"]["generation"] += 1

    def report(self) -> None:
        """Let the status be what the original counts now."""
        phases = [m.phase for m in self.machines]
        status = {
            "replicas": len(phases),
            "fullyLabeledReplicas": len(phases),
            "readyReplicas": phases.count("Running"),
            "availableReplicas": phases.count("Running"),
            "observedGeneration": self.document["metadata"]["generation"],
        }
        kept = {
            key: value
            for key, value in self.document.get("status", {}).items()
            if key in ("machineSetCondition", "autoPreserveFailedMachineCount")
        }
        self.document["status"] = {
            **without_zeros(status),
            **kept,
            "failedMachines": None,
            "lastOperation": {"lastUpdateTime": ago(minutes=1)},
        }

    def frozen_condition(self) -> None:
        said = condition("Frozen", "True", "OverShootingReplicaCount")
        said.pop("lastUpdateTime")
        self.document["status"]["machineSetCondition"] = [said]


class LeftFleet:
    """One deployment. ``version`` names the template that it has now."""

    def __init__(
        self, *, replicas: int, strategy: Document, version: str = "a", surge: int = 0
    ) -> None:
        self.sets: list[LeftSet] = []
        self.others: list[Document] = []
        self.surge = surge
        self.deployment: Document = {
            "apiVersion": API,
            "kind": "MachineDeployment",
            "metadata": {
                "name": NAME,
                "namespace": NAMESPACE,
                "uid": "uid-of-the-deployment",
                "creationTimestamp": ago(days=30),
                "generation": 4,
                "annotations": {REVISION: "1"},
                "labels": {"team": "a"},
                "finalizers": [FINALIZER],
            },
            "spec": without_zeros(
                {
                    "replicas": replicas,
                    "selector": {"matchLabels": {"name": NAME}},
                    "strategy": strategy,
                    "template": template(version),
                }
            ),
        }

    @property
    def replicas(self) -> int:
        return int(self.deployment["spec"].get("replicas", 0))

    @property
    def spec(self) -> Document:
        spec: Document = self.deployment["spec"]
        return spec

    @property
    def annotations(self) -> Document:
        annotations: Document = self.deployment["metadata"]["annotations"]
        return annotations

    @property
    def machines(self) -> list[LeftMachine]:
        return [m for s in self.sets for m in s.machines]

    def add_set(
        self, version: str, replicas: int, *, machines: int | None = None, revision: int = 1
    ) -> LeftSet:
        """Add a set whose machines all run; its status says so."""
        suffix, mark = _NAMES[version]
        marked = template(version)
        marked["metadata"]["labels"][HASH] = mark
        made = LeftSet(
            version,
            {
                "apiVersion": API,
                "kind": "MachineSet",
                "metadata": {
                    "name": f"{NAME}-{suffix}",
                    "namespace": NAMESPACE,
                    "uid": f"uid-of-set-{version}",
                    "creationTimestamp": ago(days=20 - len(self.sets)),
                    "generation": 2,
                    "annotations": {
                        DESIRED: str(self.replicas),
                        MOST: str(self.replicas + self.surge),
                        REVISION: str(revision),
                    },
                    "labels": {"name": NAME, "version": version, HASH: mark},
                    "finalizers": [FINALIZER],
                    "ownerReferences": [_owner("MachineDeployment", NAME, "uid-of-the-deployment")],
                },
                "spec": {
                    "machineClass": {},
                    **without_zeros({"replicas": replicas}),
                    "selector": {"matchLabels": {"name": NAME, HASH: mark}},
                    "template": marked,
                },
            },
        )
        self.sets.append(made)
        for _ in range(replicas if machines is None else machines):
            self.add_machine(made)
        made.report()
        return made

    def add_machine(self, owner: LeftSet) -> LeftMachine:
        """Add one that runs. Of a set, the first is the oldest."""
        name = f"{owner.name}-{len(owner.machines):05}"
        labels = dict(owner.spec["template"]["metadata"]["labels"])
        document = {
            "apiVersion": API,
            "kind": "Machine",
            "metadata": {
                "name": name,
                "generateName": f"{owner.name}-",
                "namespace": NAMESPACE,
                "uid": f"uid-of-{name}",
                "creationTimestamp": ago(
                    hours=20 - 2 * len(self.sets), minutes=-len(self.machines)
                ),
                "generation": 2,
                "annotations": {"machinepriority.machine.sapcloud.io": "3"},
                "labels": {**labels, "node": name},
                "finalizers": [FINALIZER],
                "ownerReferences": [
                    _owner("MachineSet", owner.name, owner.document["metadata"]["uid"])
                ],
            },
            "spec": {
                **deepcopy(owner.spec["template"]["spec"]),
                "providerID": f"simulated:///{NAMESPACE}/{name}",
            },
            "status": {"conditions": [_ready()]},
        }
        machine = LeftMachine(document, _node(name), has_vm=True)
        text = f"Machine {name} successfully joined the cluster"
        machine.set_phase("Running", "Create", "Successful", text, minutes=10)
        owner.machines.append(machine)
        return machine

    def add_new_machine(self, owner: LeftSet, *, seen: bool = False) -> LeftMachine:
        """Add one that its set has made just now; ``seen`` by the machine controller."""
        machine = self.add_machine(owner)
        document = machine.document
        document["metadata"]["creationTimestamp"] = ago(seconds=15)
        del machine.labels["node"], document["spec"]["providerID"], document["status"]
        machine.node, machine.has_vm = None, False
        if seen:
            text = "Creating machine on cloud provider"
            machine.set_phase("Pending", "Create", "Processing", text, seconds=10)
            document["status"]["currentStatus"]["timeoutActive"] = True
        else:
            del document["metadata"]["finalizers"], document["metadata"]["annotations"]
        return machine

    def want(self, version: str) -> None:
        self.spec["template"] = template(version)
        self.deployment["metadata"]["generation"] += 1

    def report(
        self, *, updated: LeftSet | None = None, progress: str = "MachineSetUpdated"
    ) -> None:
        """Let the status be what the original counts. ``updated`` is the new set."""

        def total(field: str) -> int:
            return sum(s.document["status"].get(field, 0) for s in self.sets)

        available = total("availableReplicas")
        specs = sum(s.size for s in self.sets)
        counts = {
            "observedGeneration": self.deployment["metadata"]["generation"],
            "replicas": total("replicas"),
            "updatedReplicas": updated.document["status"].get("replicas", 0) if updated else 0,
            "readyReplicas": total("readyReplicas"),
            "availableReplicas": available,
            "unavailableReplicas": max(0, specs - available),
        }
        self.deployment["status"] = {
            **without_zeros(counts),
            "conditions": [
                condition("Available", "True", "MinimumReplicasAvailable"),
                condition("Progressing", "True", progress),
            ],
        }

    def complete(self, updated: LeftSet) -> None:
        self.report(updated=updated, progress="NewMachineSetAvailable")

    # ---- put before a server ---------------------------------------------------------------------

    def documents(self) -> Iterable[Document]:
        for document in samples.load():
            if document["kind"] != "MachineDeployment":
                yield _applied(document)
        yield self.deployment
        yield from self.others
        for owner in self.sets:
            yield owner.document
            for machine in owner.machines:
                if machine.node is not None:
                    yield machine.node
                if machine.has_vm:
                    yield _vm(machine)
                yield machine.document

    def put(self, server: ApiServer) -> None:
        for document in self.documents():
            meta = document["metadata"]
            namespace, name = meta.get("namespace", ""), meta["name"]
            server.store.create(_KINDS[document["kind"]], namespace, name, deepcopy(document))


def _owner(kind: str, name: str, uid: str) -> Document:
    return {
        "apiVersion": API,
        "blockOwnerDeletion": True,
        "controller": True,
        "kind": kind,
        "name": name,
        "uid": uid,
    }


def _ready() -> Document:
    at = ago(minutes=10)
    return {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "lastHeartbeatTime": at,
        "lastTransitionTime": at,
    }


def _node(name: str) -> Document:
    applied = {"metadata": {"creationTimestamp": None, "labels": {"pool": NAME}}, "spec": {}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-of-node-{name}",
            "creationTimestamp": ago(hours=10),
            "labels": {"node.gardener.cloud/machine-name": name, "pool": NAME},
            "annotations": {
                "node.machine.sapcloud.io/last-applied-anno-labels-taints": json.dumps(applied)
            },
            "finalizers": ["node.machine.sapcloud.io/machine-controller"],
        },
        "spec": {"providerID": f"simulated:///{NAMESPACE}/{name}"},
        "status": {"conditions": [_ready()]},
    }


def _vm(machine: LeftMachine) -> Document:
    class_ = machine.document["spec"]["class"]["name"]
    return {
        "apiVersion": VIRTUAL_MACHINES.api_version,
        "kind": VIRTUAL_MACHINES.kind,
        "metadata": {
            "name": machine.name,
            "namespace": NAMESPACE,
            "uid": f"uid-of-vm-{machine.name}",
            "creationTimestamp": ago(hours=10),
            "labels": {"simulation.machine.sapcloud.io/machine-class": class_},
        },
        "spec": {
            "machineName": machine.name,
            "machineClass": class_,
            "nodeName": machine.name,
            "powerState": "On",
            "bootLatency": "0s",
            "joinLatency": "0s",
        },
    }


def _applied(document: Document) -> Document:
    """A Secret or a class of the samples, in use for long."""
    made = deepcopy(document)
    made.pop("stringData", None)
    meta = made["metadata"]
    meta |= {"uid": f"uid-of-{meta['name']}", "creationTimestamp": ago(days=40), "generation": 1}
    if made["kind"] == "Secret":
        made["data"] = {"userData": "IyEvYmluL3NoCg=="}
        meta["finalizers"] = ["machine.sapcloud.io/machine-controller"]
    else:
        meta["finalizers"] = [FINALIZER]
    return made
