"""Schemas of the kinds that own pods, and of custom resource definitions."""

from __future__ import annotations

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.kinds.meta import CONDITIONS, LABEL_SELECTOR, OBJECT_META
from mcm.sandbox.apiserver.kinds.notation import (
    ANY_OBJECT,
    BOOLEAN,
    INT_OR_STRING,
    INTEGER,
    LONG,
    STRING,
    booleans,
    described,
    integers,
    list_of,
    owned_by_key,
    strings,
    struct,
)
from mcm.sandbox.apiserver.kinds.pods import POD_TEMPLATE

_ROLLING_UPDATE = struct({"maxSurge": INT_OR_STRING, "maxUnavailable": INT_OR_STRING})


def _workload(spec: dict[str, JSONObject], status: tuple[str, ...], description: str) -> JSONObject:
    return struct(
        {
            "metadata": OBJECT_META,
            "spec": struct(
                {
                    "selector": LABEL_SELECTOR,
                    "template": POD_TEMPLATE,
                    "minReadySeconds": INTEGER,
                    **spec,
                }
            ),
            "status": struct(
                {**integers(*status), "conditions": CONDITIONS, "observedGeneration": LONG}
            ),
        },
        description=description,
    )


_REPLICAS: dict[str, JSONObject] = {
    "replicas": described(INTEGER, "How many pods are wanted."),
}

DEPLOYMENT = _workload(
    {
        **_REPLICAS,
        "paused": BOOLEAN,
        "revisionHistoryLimit": INTEGER,
        "progressDeadlineSeconds": INTEGER,
        "strategy": {
            **struct({"type": STRING, "rollingUpdate": _ROLLING_UPDATE}),
            "x-kubernetes-patch-strategy": "retainKeys",
        },
    },
    ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"),
    "Keeps pods of a template running and replaces them step by step when it changes.",
)

REPLICA_SET = _workload(
    _REPLICAS,
    ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
    "Keeps a number of like pods running.",
)

STATEFUL_SET = _workload(
    {
        **_REPLICAS,
        **strings("podManagementPolicy", "serviceName"),
        "revisionHistoryLimit": INTEGER,
        "ordinals": struct({"start": INTEGER}),
        "persistentVolumeClaimRetentionPolicy": struct(strings("whenDeleted", "whenScaled")),
        "updateStrategy": struct(
            {
                "type": STRING,
                "rollingUpdate": struct({"partition": INTEGER, "maxUnavailable": INT_OR_STRING}),
            }
        ),
        "volumeClaimTemplates": list_of(ANY_OBJECT),
    },
    ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
    "Keeps numbered pods, each with volumes of its own.",
)

CONTROLLER_REVISION = struct(
    {"metadata": OBJECT_META, "data": ANY_OBJECT, "revision": LONG},
    description="A state of a workload's template, to go back to.",
)

DAEMON_SET = _workload(
    {
        "revisionHistoryLimit": INTEGER,
        "updateStrategy": struct({"type": STRING, "rollingUpdate": _ROLLING_UPDATE}),
    },
    (
        "currentNumberScheduled",
        "desiredNumberScheduled",
        "numberAvailable",
        "numberMisscheduled",
        "numberReady",
        "numberUnavailable",
        "updatedNumberScheduled",
    ),
    "Keeps one pod on each node.",
)

_NAMES = struct(
    {
        **strings("kind", "listKind", "plural", "singular"),
        "categories": list_of(STRING),
        "shortNames": list_of(STRING),
    }
)

CUSTOM_RESOURCE_DEFINITION = struct(
    {
        "metadata": OBJECT_META,
        "spec": struct(
            {
                **strings("group", "scope"),
                "conversion": ANY_OBJECT,
                "names": _NAMES,
                "preserveUnknownFields": BOOLEAN,
                "versions": list_of(
                    struct(
                        {
                            "name": STRING,
                            **booleans("deprecated", "served", "storage"),
                            "additionalPrinterColumns": list_of(ANY_OBJECT),
                            "schema": ANY_OBJECT,
                            "selectableFields": list_of(struct(strings("jsonPath"))),
                            "subresources": ANY_OBJECT,
                        }
                    )
                ),
            }
        ),
        "status": struct(
            {
                "acceptedNames": _NAMES,
                "conditions": owned_by_key(
                    struct(strings("type", "status", "reason", "message")), "type"
                ),
                "storedVersions": list_of(STRING),
            }
        ),
    },
    description="Adds a kind of object to the API.",
)

PRIORITY_CLASS = struct(
    {
        "metadata": OBJECT_META,
        **strings("description", "preemptionPolicy"),
        "globalDefault": BOOLEAN,
        "value": INTEGER,
    },
    description="A name for a priority of pods.",
)
