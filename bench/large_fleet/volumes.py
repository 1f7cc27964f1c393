"""What a drain asks about beside pods: claims, volumes, attachments and disruption budgets."""

from __future__ import annotations

from typing import Final

from bench.large_fleet.pattern import APP, NODE, NUMBER, TIME, WORKLOAD, Pattern, metadata, uid
from mcm.api.core import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    VOLUME_ATTACHMENTS,
)

REPLICAS: Final = 100
"""Pods of one application."""

_DRIVER: Final = "disk.csi.example.com"


def volume_handle(number: int) -> str:
    """Return the name by which a Node's status knows the volume of a pod."""
    return f"kubernetes.io/csi/{_DRIVER}^vol-{number:012d}"


CLAIM: Final = Pattern.of(
    {
        "kind": PERSISTENT_VOLUME_CLAIMS.kind,
        "apiVersion": PERSISTENT_VOLUME_CLAIMS.api_version,
        "metadata": {
            **metadata("33333333"),
            "labels": {"app.kubernetes.io/name": "store"},
            "annotations": {
                "pv.kubernetes.io/bind-completed": "yes",
                "pv.kubernetes.io/bound-by-controller": "yes",
                "volume.kubernetes.io/storage-provisioner": _DRIVER,
            },
            "finalizers": ["kubernetes.io/pvc-protection"],
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
            "volumeName": "@volume@",
            "storageClassName": "default",
            "volumeMode": "Filesystem",
        },
        "status": {
            "phase": "Bound",
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "10Gi"},
        },
    }
)
VOLUME: Final = Pattern.of(
    {
        "kind": PERSISTENT_VOLUMES.kind,
        "apiVersion": PERSISTENT_VOLUMES.api_version,
        "metadata": {
            **metadata("44444444", namespaced=False),
            "annotations": {
                "pv.kubernetes.io/provisioned-by": _DRIVER,
                "volume.kubernetes.io/provisioner-deletion-secret-name": "",
                "volume.kubernetes.io/provisioner-deletion-secret-namespace": "",
            },
            "finalizers": [
                "kubernetes.io/pv-protection",
                "external-attacher/disk-csi-example-com",
            ],
        },
        "spec": {
            "capacity": {"storage": "10Gi"},
            "csi": {
                "driver": _DRIVER,
                "volumeHandle": f"vol-{NUMBER}",
                "fsType": "ext4",
                "volumeAttributes": {
                    "storage.kubernetes.io/csiProvisionerIdentity": f"1767261600000-8081-{_DRIVER}"
                },
            },
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {
                "kind": "PersistentVolumeClaim",
                "namespace": WORKLOAD,
                "name": f"data-{APP}",
                "uid": uid("33333333"),
                "apiVersion": "v1",
                "resourceVersion": "7",
            },
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": "default",
            "volumeMode": "Filesystem",
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {
                                    "key": f"topology.{_DRIVER}/zone",
                                    "operator": "In",
                                    "values": ["sandbox-a"],
                                }
                            ]
                        }
                    ]
                }
            },
        },
        "status": {"phase": "Bound", "lastPhaseTransitionTime": TIME},
    }
)
ATTACHMENT: Final = Pattern.of(
    {
        "kind": VOLUME_ATTACHMENTS.kind,
        "apiVersion": VOLUME_ATTACHMENTS.api_version,
        "metadata": {
            **metadata("55555555", namespaced=False),
            "annotations": {"csi.alpha.kubernetes.io/node-id": NODE},
            "finalizers": ["external-attacher/disk-csi-example-com"],
        },
        "spec": {
            "attacher": _DRIVER,
            "source": {"persistentVolumeName": "@volume@"},
            "nodeName": NODE,
        },
        "status": {"attached": True, "attachmentMetadata": {"devicePath": "/dev/xvdba"}},
    }
)
BUDGET: Final = Pattern.of(
    {
        "kind": POD_DISRUPTION_BUDGETS.kind,
        "apiVersion": POD_DISRUPTION_BUDGETS.api_version,
        "metadata": {**metadata("66666666"), "generation": 1},
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": {"app.kubernetes.io/name": APP}},
        },
        "status": {
            "observedGeneration": 1,
            "disruptionsAllowed": 1,
            "currentHealthy": REPLICAS,
            "desiredHealthy": REPLICAS - 1,
            "expectedPods": REPLICAS,
            "conditions": [],
        },
    }
)
