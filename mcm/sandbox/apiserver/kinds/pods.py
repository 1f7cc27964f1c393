"""Schemas of pods and of the pod templates inside workloads."""

from __future__ import annotations

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.kinds.meta import (
    CONDITIONS,
    LABEL_SELECTOR,
    LOCAL_REFERENCE,
    OBJECT_META,
)
from mcm.sandbox.apiserver.kinds.notation import (
    ANY_OBJECT,
    INTEGER,
    LONG,
    QUANTITY,
    STRING,
    TIME,
    atomic,
    booleans,
    described,
    integers,
    keyed_list,
    list_of,
    map_of,
    owned_by_key,
    patch_list,
    strings,
    struct,
)

CONTAINER_PORT = struct(
    {
        **integers("containerPort", "hostPort"),
        **strings("hostIP", "name"),
        "protocol": {**STRING, "default": "TCP"},
    }
)

_KEY_REFERENCE = atomic(struct({**strings("key", "name"), **booleans("optional")}))
ENVIRONMENT_VARIABLE = struct(
    {
        **strings("name", "value"),
        "valueFrom": struct(
            {
                "configMapKeyRef": _KEY_REFERENCE,
                "secretKeyRef": _KEY_REFERENCE,
                "fieldRef": atomic(struct(strings("apiVersion", "fieldPath"))),
                "resourceFieldRef": atomic(ANY_OBJECT),
            }
        ),
    }
)

VOLUME_MOUNT = struct(
    {
        **strings("mountPath", "mountPropagation", "name", "subPath", "subPathExpr"),
        **booleans("readOnly"),
    }
)

RESOURCE_REQUIREMENTS = struct(
    {
        "claims": owned_by_key(struct(strings("name", "request")), "name"),
        "limits": map_of(QUANTITY),
        "requests": map_of(QUANTITY),
    }
)

PROBE = struct(
    {
        **integers(
            "failureThreshold",
            "initialDelaySeconds",
            "periodSeconds",
            "successThreshold",
            "timeoutSeconds",
        ),
        "exec": struct({"command": list_of(STRING)}),
        "httpGet": ANY_OBJECT,
        "tcpSocket": ANY_OBJECT,
    }
)

CONTAINER = struct(
    {
        **strings(
            "name",
            "image",
            "imagePullPolicy",
            "workingDir",
            "terminationMessagePath",
            "terminationMessagePolicy",
            "restartPolicy",
        ),
        "args": list_of(STRING),
        "command": list_of(STRING),
        "env": keyed_list(ENVIRONMENT_VARIABLE, "name"),
        "envFrom": list_of(ANY_OBJECT),
        "lifecycle": ANY_OBJECT,
        "livenessProbe": PROBE,
        "ports": keyed_list(CONTAINER_PORT, "containerPort", "protocol"),
        "readinessProbe": PROBE,
        "resizePolicy": list_of(ANY_OBJECT),
        "resources": RESOURCE_REQUIREMENTS,
        "securityContext": ANY_OBJECT,
        "startupProbe": PROBE,
        "volumeDevices": keyed_list(struct(strings("devicePath", "name")), "devicePath"),
        "volumeMounts": keyed_list(VOLUME_MOUNT, "mountPath"),
        **booleans("stdin", "stdinOnce", "tty"),
    }
)

VOLUME = struct(
    {
        "name": STRING,
        "configMap": struct({**strings("name"), "items": list_of(ANY_OBJECT)}),
        "emptyDir": struct({**strings("medium"), "sizeLimit": QUANTITY}),
        "hostPath": struct(strings("path", "type")),
        "persistentVolumeClaim": struct({**strings("claimName"), **booleans("readOnly")}),
        "secret": struct({**strings("secretName"), "items": list_of(ANY_OBJECT)}),
        "projected": struct({"sources": list_of(ANY_OBJECT)}),
    }
)

TOLERATION = struct({**strings("key", "operator", "value", "effect"), "tolerationSeconds": LONG})

TOPOLOGY_SPREAD_CONSTRAINT = struct(
    {
        **strings("topologyKey", "whenUnsatisfiable"),
        **integers("maxSkew", "minDomains"),
        "labelSelector": LABEL_SELECTOR,
        "matchLabelKeys": list_of(STRING),
    }
)

POD_SPEC = struct(
    {
        **strings(
            "dnsPolicy",
            "hostname",
            "nodeName",
            "preemptionPolicy",
            "priorityClassName",
            "restartPolicy",
            "runtimeClassName",
            "schedulerName",
            "serviceAccount",
            "serviceAccountName",
            "subdomain",
        ),
        **booleans("automountServiceAccountToken", "hostIPC", "hostNetwork", "hostPID"),
        "activeDeadlineSeconds": LONG,
        "affinity": ANY_OBJECT,
        "containers": described(keyed_list(CONTAINER, "name"), "What runs; at least one."),
        "ephemeralContainers": keyed_list(CONTAINER, "name"),
        "hostAliases": keyed_list(struct({"ip": STRING, "hostnames": list_of(STRING)}), "ip"),
        "imagePullSecrets": keyed_list(LOCAL_REFERENCE, "name"),
        "initContainers": keyed_list(CONTAINER, "name"),
        "nodeSelector": atomic(map_of(STRING)),
        "overhead": map_of(QUANTITY),
        "priority": INTEGER,
        "readinessGates": list_of(struct(strings("conditionType"))),
        "resourceClaims": keyed_list(struct(strings("name")), "name", retain_keys=True),
        "schedulingGates": keyed_list(struct(strings("name")), "name"),
        "securityContext": ANY_OBJECT,
        "terminationGracePeriodSeconds": described(
            LONG, "How long the containers may take to stop before they are killed."
        ),
        "tolerations": list_of(TOLERATION),
        "topologySpreadConstraints": keyed_list(
            TOPOLOGY_SPREAD_CONSTRAINT, "topologyKey", "whenUnsatisfiable"
        ),
        "volumes": keyed_list(VOLUME, "name", retain_keys=True),
    },
    description="What the pod should be.",
)

CONTAINER_STATUS = struct(
    {
        **strings("containerID", "image", "imageID", "name"),
        **booleans("ready", "started"),
        "restartCount": INTEGER,
        "state": ANY_OBJECT,
        "lastState": ANY_OBJECT,
    }
)

POD_STATUS = struct(
    {
        **strings("hostIP", "message", "nominatedNodeName", "phase", "podIP", "qosClass", "reason"),
        "conditions": CONDITIONS,
        "containerStatuses": list_of(CONTAINER_STATUS),
        "ephemeralContainerStatuses": list_of(CONTAINER_STATUS),
        "hostIPs": patch_list(struct(strings("ip")), "ip"),
        "initContainerStatuses": list_of(CONTAINER_STATUS),
        "podIPs": keyed_list(struct(strings("ip")), "ip"),
        "startTime": TIME,
    },
    description="What was last observed of the pod.",
)

POD = struct(
    {"metadata": OBJECT_META, "spec": POD_SPEC, "status": POD_STATUS},
    description="Containers that run together on one node.",
)

POD_TEMPLATE: JSONObject = struct({"metadata": OBJECT_META, "spec": POD_SPEC})
