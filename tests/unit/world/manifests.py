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


def claim(
    name: str, *, size: str = "1Gi", modes: tuple[str, ...] = ("ReadWriteOnce",), **spec: object
) -> JSONObject:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": list(modes),
            "resources": {"requests": {"storage": size}},
            **spec,
        },
    }


def using(*claims: str) -> list[JSONObject]:
    """A pod's volumes of these claims."""
    return [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]


def volume(
    name: str,
    *,
    size: str = "1Gi",
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    attributes: dict[str, str] | None = None,
    **spec: object,
) -> JSONObject:
    """A volume made by hand, of no class unless one is named."""
    driver = "disk.simulated.machine.sapcloud.io"
    source = {"driver": driver, "volumeHandle": name, "volumeAttributes": attributes or {}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": list(modes),
            "capacity": {"storage": size},
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": source,
            **spec,
        },
    }


def storage_class(name: str, *, binding: str = "Immediate", **parameters: str) -> JSONObject:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": f"{name}.example.com",
        "reclaimPolicy": "Delete",
        "volumeBindingMode": binding,
        "parameters": parameters,
    }
