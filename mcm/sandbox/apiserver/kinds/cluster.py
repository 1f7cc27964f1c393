"""Schemas of nodes, namespaces, configuration, events, leases and volumes."""

from __future__ import annotations

from mcm.sandbox.apiserver.kinds.meta import (
    CONDITIONS,
    LABEL_SELECTOR,
    LOCAL_REFERENCE,
    OBJECT_META,
    OBJECT_REFERENCE,
    SECRET_REFERENCE,
)
from mcm.sandbox.apiserver.kinds.notation import (
    ANY_OBJECT,
    BOOLEAN,
    INT_OR_STRING,
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
    set_of,
    strings,
    struct,
)
from mcm.sandbox.apiserver.kinds.pods import RESOURCE_REQUIREMENTS

TAINT = struct({**strings("key", "value", "effect"), "timeAdded": TIME})

NODE = struct(
    {
        "metadata": OBJECT_META,
        "spec": struct(
            {
                **strings("podCIDR", "providerID"),
                "podCIDRs": set_of(STRING),
                "taints": described(list_of(TAINT), "Keep pods away that do not tolerate them."),
                "unschedulable": described(BOOLEAN, "Whether new pods stay away (cordoned)."),
            }
        ),
        "status": struct(
            {
                "addresses": keyed_list(struct(strings("type", "address")), "type"),
                "allocatable": map_of(QUANTITY),
                "capacity": map_of(QUANTITY),
                "conditions": CONDITIONS,
                "daemonEndpoints": ANY_OBJECT,
                "images": list_of(struct({"names": list_of(STRING)})),
                "nodeInfo": ANY_OBJECT,
                "phase": STRING,
                "volumesAttached": list_of(struct(strings("name", "devicePath"))),
                "volumesInUse": list_of(STRING),
            }
        ),
    },
    description="A machine that has joined the cluster and runs pods.",
)

NAMESPACE = struct(
    {
        "metadata": OBJECT_META,
        "spec": struct({"finalizers": list_of(STRING)}),
        "status": struct({"conditions": CONDITIONS, "phase": STRING}),
    },
    description="A scope for names.",
)

SECRET = struct(
    {
        "metadata": OBJECT_META,
        "data": described(map_of({"type": "string", "format": "byte"}), "Base64 values."),
        "stringData": map_of(STRING),
        "immutable": BOOLEAN,
        "type": STRING,
    },
    description="Small confidential values.",
)

CONFIG_MAP = struct(
    {
        "metadata": OBJECT_META,
        "data": map_of(STRING),
        "binaryData": map_of({"type": "string", "format": "byte"}),
        "immutable": BOOLEAN,
    },
    description="Configuration for pods to read.",
)

SERVICE_ACCOUNT = struct(
    {
        "metadata": OBJECT_META,
        "secrets": keyed_list(OBJECT_REFERENCE, "name"),
        "imagePullSecrets": list_of(LOCAL_REFERENCE),
        "automountServiceAccountToken": BOOLEAN,
    },
    description="An identity for the processes of a pod.",
)

_EVENT_SERIES = struct({"count": INTEGER, "lastObservedTime": TIME})
_EVENT_SOURCE = struct(strings("component", "host"))
_EVERY_EVENT = {
    "metadata": OBJECT_META,
    **strings("action", "reason", "reportingInstance", "type"),
    "eventTime": TIME,
    "related": OBJECT_REFERENCE,
    "series": _EVENT_SERIES,
}
_EVENT_TEXT = "A report of something that happened to an object."

EVENT = struct(
    {
        **_EVERY_EVENT,
        **strings("message", "reportingComponent"),
        "count": INTEGER,
        "firstTimestamp": TIME,
        "involvedObject": OBJECT_REFERENCE,
        "lastTimestamp": TIME,
        "source": _EVENT_SOURCE,
    },
    description=_EVENT_TEXT,
)

NEW_EVENT = struct(
    {
        **_EVERY_EVENT,
        **strings("note", "reportingController"),
        "deprecatedCount": INTEGER,
        "deprecatedFirstTimestamp": TIME,
        "deprecatedLastTimestamp": TIME,
        "deprecatedSource": _EVENT_SOURCE,
        "regarding": OBJECT_REFERENCE,
    },
    description=_EVENT_TEXT,
)

LEASE = struct(
    {
        "metadata": OBJECT_META,
        "spec": struct(
            {
                **strings("holderIdentity", "strategy", "preferredHolder"),
                **integers("leaseDurationSeconds", "leaseTransitions"),
                "acquireTime": TIME,
                "renewTime": TIME,
            }
        ),
    },
    description="A time-limited claim, for elections and heartbeats.",
)

POD_DISRUPTION_BUDGET = struct(
    {
        "metadata": OBJECT_META,
        "spec": struct(
            {
                "maxUnavailable": INT_OR_STRING,
                "minAvailable": INT_OR_STRING,
                "selector": {**LABEL_SELECTOR, "x-kubernetes-patch-strategy": "replace"},
                "unhealthyPodEvictionPolicy": STRING,
            }
        ),
        "status": struct(
            {
                **integers(
                    "currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"
                ),
                "conditions": CONDITIONS,
                "disruptedPods": map_of(TIME),
                "observedGeneration": LONG,
            }
        ),
    },
    description="How many pods of a set may be down by choice at a time.",
)

PERSISTENT_VOLUME = struct(
    {
        "metadata": OBJECT_META,
        "spec": struct(
            {
                **strings("persistentVolumeReclaimPolicy", "storageClassName", "volumeMode"),
                "accessModes": list_of(STRING),
                "capacity": map_of(QUANTITY),
                "claimRef": struct(
                    strings("apiVersion", "kind", "name", "namespace", "resourceVersion", "uid")
                ),
                "csi": struct(
                    {
                        **strings("driver", "fsType", "volumeHandle"),
                        **booleans("readOnly"),
                        "volumeAttributes": map_of(STRING),
                        "controllerPublishSecretRef": SECRET_REFERENCE,
                    }
                ),
                "mountOptions": list_of(STRING),
                "nodeAffinity": ANY_OBJECT,
            }
        ),
        "status": struct(strings("message", "phase", "reason")),
    },
    description="A piece of storage in the cluster.",
)

PERSISTENT_VOLUME_CLAIM = struct(
    {
        "metadata": OBJECT_META,
        "spec": struct(
            {
                **strings("storageClassName", "volumeMode", "volumeName"),
                "accessModes": list_of(STRING),
                "resources": RESOURCE_REQUIREMENTS,
                "selector": LABEL_SELECTOR,
            }
        ),
        "status": struct(
            {
                "accessModes": list_of(STRING),
                "capacity": map_of(QUANTITY),
                "conditions": CONDITIONS,
                "phase": STRING,
            }
        ),
    },
    description="A request for storage by a user.",
)

VOLUME_ATTACHMENT = struct(
    {
        "metadata": OBJECT_META,
        "spec": struct(
            {
                **strings("attacher", "nodeName"),
                "source": struct(
                    {**strings("persistentVolumeName"), "inlineVolumeSpec": ANY_OBJECT}
                ),
            }
        ),
        "status": struct(
            {
                "attached": BOOLEAN,
                "attachmentMetadata": map_of(STRING),
                "attachError": ANY_OBJECT,
                "detachError": ANY_OBJECT,
            }
        ),
    },
    description="The intent to attach a volume to a node.",
)

STORAGE_CLASS = struct(
    {
        "metadata": OBJECT_META,
        **strings("provisioner", "reclaimPolicy", "volumeBindingMode"),
        "allowVolumeExpansion": BOOLEAN,
        "allowedTopologies": list_of(atomic(ANY_OBJECT)),
        "mountOptions": list_of(STRING),
        "parameters": map_of(STRING),
    },
    description="A kind of storage that claims may ask for.",
)

CSI_NODE = struct(
    {
        "metadata": OBJECT_META,
        "spec": struct(
            {
                "drivers": keyed_list(
                    struct({**strings("name", "nodeID"), "topologyKeys": list_of(STRING)}), "name"
                )
            }
        ),
    },
    description="The volume drivers installed on a node.",
)
