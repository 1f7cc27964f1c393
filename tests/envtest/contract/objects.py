"""Objects the contract tests create."""

from __future__ import annotations

from typing import Any

from tests.envtest.bench import Document

DEFAULT_SELECTOR = {"matchLabels": {"pool": "a"}}


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> Document:
    meta = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def machine(name: str, labels: dict[str, str] | None = None, **spec: Any) -> Document:
    meta = {"name": name, **({"labels": labels} if labels else {})}
    return {
        "apiVersion": "machine.sapcloud.io/v1alpha1",
        "kind": "Machine",
        "metadata": meta,
        "spec": {"class": {"kind": "MachineClass", "name": "small"}, **spec},
    }


def machine_deployment(name: str, **spec: Any) -> Document:
    return {
        "apiVersion": "machine.sapcloud.io/v1alpha1",
        "kind": "MachineDeployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 3,
            "selector": DEFAULT_SELECTOR,
            "template": {
                "metadata": {"labels": {"pool": "a"}},
                "spec": {"class": {"kind": "MachineClass", "name": "small"}},
            },
            **spec,
        },
    }


def pod(name: str, labels: dict[str, str] | None = None, **spec: Any) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"containers": [{"name": "main", "image": "none"}], **spec},
    }


def node(name: str, **spec: Any) -> Document:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec}


def budget(name: str, labels: dict[str, str]) -> Document:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
    }


def finalizer(obj: Document, name: str) -> Document:
    """Return the object with a finalizer more."""
    finalizers = [*obj["metadata"].get("finalizers", ()), name]
    return {**obj, "metadata": {**obj["metadata"], "finalizers": finalizers}}
