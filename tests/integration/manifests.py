"""Objects the kubectl tests create, and how to read what kubectl prints."""

from __future__ import annotations

import re
from typing import Any

MACHINES = "machine.sapcloud.io/v1alpha1"


def deployment(name: str = "d", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": MACHINES,
        "kind": "MachineDeployment",
        "metadata": {"name": name, "labels": {"team": "a"}},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"name": name}},
            "template": {
                "metadata": {"labels": {"name": name}},
                "spec": {"class": {"kind": "MachineClass", "name": "small"}},
            },
            **spec,
        },
    }


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def event(kind: str, name: str, uid: str, namespace: str) -> dict[str, Any]:
    stamp = "2026-01-01T00:00:00Z"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.1"},
        "involvedObject": {
            "apiVersion": MACHINES,
            "kind": kind,
            "name": name,
            "namespace": namespace,
            "uid": uid,
        },
        "type": "Warning",
        "reason": "Stuck",
        "message": "it does not move",
        "source": {"component": "tester"},
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
    }


def node(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"node-role.kubernetes.io/worker": ""}},
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"kubeletVersion": "v1.32.0"},
        },
    }


def pod_on(node_name: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "x"}},
        "spec": {"nodeName": node_name, "containers": [{"name": "c", "image": "i"}]},
    }


def child_of(owner: dict[str, Any], name: str, **flags: bool) -> dict[str, Any]:
    manifest = config_map(name)
    manifest["metadata"]["ownerReferences"] = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            **flags,
        }
    ]
    return manifest


def widget_definition() -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"size": {"type": "integer", "default": 7, "maximum": 9}},
            }
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "additionalPrinterColumns": [
                        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
                    ],
                }
            ],
        },
    }


def columns(table: str) -> list[str]:
    return re.split(r" {2,}", table.splitlines()[0].strip())


def rows(table: str) -> list[list[str]]:
    return [re.split(r" {2,}", line.strip()) for line in table.splitlines()[1:]]
