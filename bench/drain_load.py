"""What is drained in the benchmark of drains: machines, the pods on them, their budgets and disks.

The chains that no drain can shorten are computed from the same numbers the objects are made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from mcm.api.meta import JSONObject
from mcm.providers.simulated.pods import ANNOTATION_TERMINATION
from mcm.sandbox import samples

START_SECONDS = 1.0
"""What a simulated kubelet needs to start a pod (:mod:`mcm.providers.simulated.pods`)."""

CLASS = "bench"
_GRACE = 60


@final
@dataclass(frozen=True, slots=True)
class Chain:
    """Steps of which each waits for the one before it, whoever drains."""

    what: str
    seconds: float


@final
@dataclass(frozen=True, slots=True)
class Disks:
    """Pods with a disk each, all of one driver: one after the other is detached and attached."""

    driver: str
    pods: int
    termination: float
    detach: float
    attach: float

    def chain(self) -> Chain:
        seconds = self.pods * (self.termination + self.detach + self.attach)
        return Chain(f"{self.pods} disks of {self.driver}", seconds)

    def manifests(self) -> list[JSONObject]:
        claim: JSONObject = {
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": self.driver,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        storage_class: JSONObject = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": self.driver},
            "provisioner": f"{self.driver}.example.com",
            "volumeBindingMode": "WaitForFirstConsumer",
            "parameters": {
                "attachSeconds": str(self.attach),
                "detachSeconds": str(self.detach),
            },
        }
        spec = {"podManagementPolicy": "Parallel", "volumeClaimTemplates": [claim]}
        made = _workload("StatefulSet", self.driver, self.pods, self.termination)
        members = made["spec"]
        assert isinstance(members, dict)
        return [storage_class, {**made, "spec": {**members, **spec}}]


@final
@dataclass(frozen=True, slots=True)
class Replicas:
    """Like pods, of which at most ``at_once`` may be missing (0: as many as you like)."""

    name: str
    pods: int
    termination: float
    at_once: int = 0

    def chain(self) -> Chain:
        if not self.at_once:
            return Chain(f"{self.pods} pods of {self.name}", self.termination)
        rounds = -(-self.pods // self.at_once)
        # One on its way out is replaced at once: the next may go as soon as its successor serves.
        seconds = (rounds - 1) * START_SECONDS + self.termination
        return Chain(f"{self.pods} pods of {self.name}, {self.at_once} at a time", seconds)

    def manifests(self) -> list[JSONObject]:
        made = [_workload("Deployment", self.name, self.pods, self.termination)]
        return [_budget(self.name, self.at_once), *made] if self.at_once else made


Load = Disks | Replicas


def longest(loads: Sequence[Load]) -> Chain:
    return max((load.chain() for load in loads), key=lambda chain: chain.seconds)


def fleet(machines: int, *, pods: int) -> list[JSONObject]:
    """Return a fleet of machines that take up to ``pods`` pods each; their VMs take no time."""
    kinds = {str(o["kind"]): o for o in samples.load()}
    class_, deployment = kinds["MachineClass"], kinds["MachineDeployment"]
    latencies = dict.fromkeys(
        ("createLatency", "bootLatency", "joinLatency", "deleteLatency"), "0s"
    )
    template = class_["nodeTemplate"]
    assert isinstance(template, dict)
    capacity = {"cpu": "64", "gpu": "0", "memory": "256Gi", "pods": str(pods)}
    made: JSONObject = {
        **class_,
        "metadata": {"name": CLASS, "namespace": "default"},
        "nodeTemplate": {**template, "capacity": capacity},
        "providerSpec": latencies,
    }
    return [kinds["Secret"], made, _of_class(deployment, machines)]


def bound_pod(name: str, node: str, *, termination: float) -> JSONObject:
    """Return a pod of nobody's on a Node: nothing takes its place."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", **_annotated(termination)},
        "spec": {**_pod_spec(), "nodeName": node},
    }


def _of_class(deployment: JSONObject, replicas: int) -> JSONObject:
    spec = deployment["spec"]
    assert isinstance(spec, dict)
    template = spec["template"]
    machine = {
        **template["spec"],
        "class": {**template["spec"]["class"], "name": CLASS},
        "drainTimeout": "2h",
    }
    return {
        **deployment,
        "spec": {**spec, "replicas": replicas, "template": {**template, "spec": machine}},
    }


def _workload(kind: str, name: str, replicas: int, termination: float) -> JSONObject:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, **_annotated(termination)},
                "spec": _pod_spec(),
            },
        },
    }


def _budget(name: str, at_once: int) -> JSONObject:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"maxUnavailable": at_once, "selector": {"matchLabels": {"app": name}}},
    }


def _annotated(termination: float) -> JSONObject:
    return {"annotations": {ANNOTATION_TERMINATION: str(termination)}}


def _pod_spec() -> JSONObject:
    containers = [{"name": "main", "image": "none"}]
    return {"containers": containers, "terminationGracePeriodSeconds": _GRACE}
