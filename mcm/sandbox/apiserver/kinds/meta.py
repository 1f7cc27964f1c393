"""Schemas that all kinds share: object metadata, selectors, conditions, references."""

from __future__ import annotations

from mcm.sandbox.apiserver.kinds.notation import (
    BOOLEAN,
    LONG,
    STRING,
    TIME,
    atomic,
    described,
    keyed_list,
    list_of,
    map_of,
    set_of,
    strings,
    struct,
)

OWNER_REFERENCE = atomic(
    struct(
        {
            **strings("apiVersion", "kind", "name", "uid"),
            "controller": described(BOOLEAN, "Whether this owner manages the object."),
            "blockOwnerDeletion": described(
                BOOLEAN, "Whether a foreground deletion of the owner waits for this object."
            ),
        }
    )
)

OBJECT_META = struct(
    {
        "name": described(STRING, "Unique among the objects of its kind in the namespace."),
        "generateName": described(STRING, "The server appends random characters to this."),
        "namespace": STRING,
        "uid": described(STRING, "Unique in time and space; set by the server."),
        "resourceVersion": described(STRING, "Changes with every write; compare for equality."),
        "generation": described(LONG, "Counts the changes of the desired state."),
        "creationTimestamp": TIME,
        "deletionTimestamp": described(TIME, "Set once somebody has asked for the deletion."),
        "deletionGracePeriodSeconds": LONG,
        "labels": described(map_of(STRING), "What selectors look at."),
        "annotations": described(map_of(STRING), "Notes of any kind, for tools."),
        "ownerReferences": described(
            keyed_list(OWNER_REFERENCE, "uid"), "The object goes when all of these are gone."
        ),
        "finalizers": described(set_of(STRING), "A deleted object stays until this list is empty."),
        "managedFields": list_of(
            struct(strings("manager", "operation", "apiVersion", "fieldsType", "subresource"))
        ),
        "selfLink": STRING,
    },
    description="Standard object metadata.",
)

LABEL_SELECTOR = atomic(
    struct(
        {
            "matchLabels": map_of(STRING),
            "matchExpressions": list_of(
                struct({**strings("key", "operator"), "values": list_of(STRING)})
            ),
        }
    )
)

OBJECT_REFERENCE = atomic(
    struct(
        strings("apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid")
    )
)

LOCAL_REFERENCE = atomic(struct(strings("name")))
SECRET_REFERENCE = atomic(struct(strings("name", "namespace")))

CONDITION = struct(
    {
        **strings("type", "status", "reason", "message"),
        "lastTransitionTime": TIME,
        "lastHeartbeatTime": TIME,
        "lastProbeTime": TIME,
        "lastUpdateTime": TIME,
        "observedGeneration": LONG,
    }
)
CONDITIONS = keyed_list(CONDITION, "type")
