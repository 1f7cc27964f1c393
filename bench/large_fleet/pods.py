"""Pods as large as a real cluster's: two containers with probes, conditions, and who set which."""

from __future__ import annotations

from typing import Final

from bench.large_fleet.pattern import APP, NAME, NODE, NUMBER, TIME, Pattern, managed, metadata
from mcm.api.core import PODS
from mcm.api.meta import JSONObject

_CONTAINER_FIELDS: Final[JSONObject] = {
    f"f:{name}": {}
    for name in (
        *("env", "image", "imagePullPolicy", "livenessProbe", "name", "ports", "readinessProbe"),
        *("resources", "securityContext", "terminationMessagePath", "terminationMessagePolicy"),
        "volumeMounts",
    )
}


def _pod(owner: str, owner_kind: str, volumes: list[JSONObject]) -> JSONObject:
    meta = metadata("11111111")
    meta |= {
        "generateName": f"{APP}-",
        "labels": {
            "app.kubernetes.io/name": APP,
            "app.kubernetes.io/part-of": "shop",
            "app.kubernetes.io/managed-by": "Helm",
            "pod-template-hash": "6d4f8c7b9",
        },
        "annotations": {
            "checksum/config": "9b1f" * 16,
            "cni.projectcalico.org/containerID": f"{NUMBER}" + "4e5f" * 13,
            "cni.projectcalico.org/podIP": f"100.64.{NUMBER}/32",
            "prometheus.io/scrape": "true",
            "prometheus.io/port": "8080",
            "kubectl.kubernetes.io/restartedAt": TIME,
        },
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": owner_kind,
                "name": owner,
                "uid": "22222222-2222-4333-8444-000000000000",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": [
            managed(
                "kube-controller-manager",
                "v1",
                {
                    "f:metadata": {
                        "f:annotations": {".": {}, "f:checksum/config": {}},
                        "f:generateName": {},
                        "f:labels": {".": {}, "f:app.kubernetes.io/name": {}},
                        "f:ownerReferences": {".": {}},
                    },
                    "f:spec": {
                        "f:containers": {
                            'k:{"name":"main"}': {".": {}, **_CONTAINER_FIELDS},
                            'k:{"name":"proxy"}': {".": {}, **_CONTAINER_FIELDS},
                        },
                        "f:dnsPolicy": {},
                        "f:restartPolicy": {},
                        "f:terminationGracePeriodSeconds": {},
                    },
                },
            ),
            {
                **managed(
                    "kubelet",
                    "v1",
                    {
                        "f:status": {
                            "f:conditions": {
                                f'k:{{"type":"{kind}"}}': {
                                    ".": {},
                                    "f:lastProbeTime": {},
                                    "f:lastTransitionTime": {},
                                    "f:status": {},
                                    "f:type": {},
                                }
                                for kind in _POD_CONDITIONS
                            },
                            "f:containerStatuses": {},
                            "f:hostIP": {},
                            "f:phase": {},
                            "f:podIP": {},
                            "f:startTime": {},
                        }
                    },
                ),
                "subresource": "status",
            },
        ],
    }
    return {
        "kind": PODS.kind,
        "apiVersion": PODS.api_version,
        "metadata": meta,
        "spec": _pod_spec(volumes),
        "status": _pod_status(),
    }


_POD_CONDITIONS: Final = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
)


def _container(name: str) -> JSONObject:
    return {
        "name": name,
        "image": f"registry.example.com/shop/{name}@sha256:" + "0a1b" * 16,
        "args": ["--port=8080", "--log-level=info", f"--name={APP}"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [
            {
                "name": f"{field.upper()}_OF_POD",
                "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.{field}"}},
            }
            for field in ("name", "namespace", "uid")
        ],
        "resources": {
            "limits": {"cpu": "500m", "memory": "512Mi"},
            "requests": {"cpu": "100m", "memory": "256Mi"},
        },
        "volumeMounts": [
            {
                "name": f"kube-api-access-{NUMBER}",
                "readOnly": True,
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
            }
        ],
        "readinessProbe": {
            "httpGet": {"path": "/ready", "port": 8080, "scheme": "HTTP"},
            "timeoutSeconds": 1,
            "periodSeconds": 10,
            "successThreshold": 1,
            "failureThreshold": 3,
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"allowPrivilegeEscalation": False, "runAsNonRoot": True},
    }


def _pod_spec(volumes: list[JSONObject]) -> JSONObject:
    return {
        "volumes": [
            {
                "name": f"kube-api-access-{NUMBER}",
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                        {
                            "configMap": {
                                "name": "kube-root-ca.crt",
                                "items": [{"key": "ca.crt", "path": "ca.crt"}],
                            }
                        },
                    ],
                    "defaultMode": 420,
                },
            },
            {"name": "config", "configMap": {"name": f"{APP}-config", "defaultMode": 420}},
            {"name": "scratch", "emptyDir": {}},
            *volumes,
        ],
        "containers": [_container("main"), _container("proxy")],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": APP,
        "serviceAccount": APP,
        "nodeName": NODE,
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{key}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for key in ("not-ready", "unreachable")
        ],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def _pod_status() -> JSONObject:
    return {
        "phase": "Running",
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": TIME,
            }
            for kind in _POD_CONDITIONS
        ],
        "hostIP": "10.250.0.1",
        "hostIPs": [{"ip": "10.250.0.1"}],
        "podIP": "100.64.0.1",
        "podIPs": [{"ip": "100.64.0.1"}],
        "startTime": TIME,
        "containerStatuses": [
            {
                "name": name,
                "state": {"running": {"startedAt": TIME}},
                "lastState": {},
                "ready": True,
                "restartCount": 0,
                "image": f"registry.example.com/shop/{name}",
                "imageID": f"registry.example.com/shop/{name}@sha256:" + "0a1b" * 16,
                "containerID": "containerd://" + "2c3d" * 16,
                "started": True,
            }
            for name in ("main", "proxy")
        ],
        "qosClass": "Burstable",
    }


POD: Final = Pattern.of(_pod(f"{APP}-6d4f8c7b9", "ReplicaSet", []))
DAEMON_POD: Final = Pattern.of(_pod(APP, "DaemonSet", []))
STORE_POD: Final = Pattern.of(
    _pod(
        APP,
        "StatefulSet",
        [{"name": "data", "persistentVolumeClaim": {"claimName": f"data-{NAME}"}}],
    )
)
