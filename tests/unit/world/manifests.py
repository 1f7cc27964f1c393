"""Workloads as users write them, all in the namespace ``default``."""

from __future__ import annotations

from mcm.api.meta import JSONObject


def template(app: str = "web", *, image: str = "app:1", **spec: object) -> JSONObject:
    containers = [{"name": "main", "image": image}]
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": containers, **spec},
    }


def pod(name: str, *, labels: dict[str, str] | None = None, **spec: object) -> JSONObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}},
        "spec": {"containers": [{"name": "main", "image": "app:1"}], **spec},
    }


def workload(kind: str, name: str = "web", *, image: str = "app:1", **spec: object) -> JSONObject:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": template(name, image=image),
            **spec,
        },
    }


def budget(name: str = "web", **spec: object) -> JSONObject:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, **spec},
    }


def bare_node(name: str, *, pods: int = 110, **labels: str) -> JSONObject:
    """A Node without a kubelet, ready for now."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "allocatable": {"pods": str(pods), "cpu": "4", "memory": "8Gi"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
