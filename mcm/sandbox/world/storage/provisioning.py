"""The volume that is made for a claim: of its size, in the zone of its Node."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from mcm.api.meta import JSONObject
from mcm.providers.simulated.volumes import ATTACH_REQUIRED
from mcm.sandbox.world.kinds import Node, PersistentVolumeClaim, StorageClass
from mcm.sandbox.world.storage.behaviour import read_behaviour
from mcm.sandbox.world.storage.node_affinity import ZONE

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""The claim's annotation by which the scheduler says for which Node a volume is to be made."""
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


def volume_name(claim: PersistentVolumeClaim) -> str:
    return f"pvc-{claim.metadata.uid}"


def volume_manifest(
    claim: PersistentVolumeClaim, storage_class: StorageClass, zone: str
) -> JSONObject:
    """Return the volume, bound to the claim; in ``zone`` only, unless that is empty.

    Raises ValueError if the class's parameters cannot be read.
    """
    try:
        read_behaviour(storage_class.parameters)
    except ValueError as error:
        name = storage_class.metadata.name
        raise ValueError(f'parameters of the StorageClass "{name}": {error}') from error
    spec: JSONObject = {
        "capacity": dict(claim.spec.resources.requests),
        "accessModes": list(claim.spec.access_modes),
        "volumeMode": claim.spec.volume_mode,
        "persistentVolumeReclaimPolicy": storage_class.reclaim_policy,
        "storageClassName": storage_class.metadata.name,
        "claimRef": claim_reference(claim),
        "csi": {
            "driver": storage_class.provisioner,
            "volumeHandle": volume_name(claim),
            "volumeAttributes": storage_class.parameters,
        },
    }
    if zone:
        expression = {"key": ZONE, "operator": "In", "values": [zone]}
        term = {"matchExpressions": [expression]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return {
        "metadata": {
            "name": volume_name(claim),
            "annotations": {_PROVISIONED_BY: storage_class.provisioner},
        },
        "spec": spec,
    }


def claim_reference(claim: PersistentVolumeClaim) -> JSONObject:
    meta = claim.metadata
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
    }


def zone_for(
    claim: PersistentVolumeClaim,
    storage_class: StorageClass,
    selected: Node | None,
    nodes: Iterable[Node],
) -> str:
    """Return the zone of the selected Node; without one, any of the Nodes' that the class allows,
    always the same for a claim. Empty where zones play no part."""
    if storage_class.parameters.get(ATTACH_REQUIRED) == "false":
        return ""
    if selected is not None:
        return selected.metadata.labels.get(ZONE, "")
    known = {node.metadata.labels.get(ZONE, "") for node in nodes} - {""}
    allowed = allowed_zones(storage_class)
    zones = sorted(known & allowed if allowed else known) or sorted(allowed)
    return zones[zlib.crc32(claim.metadata.uid.encode()) % len(zones)] if zones else ""


def allowed_zones(storage_class: StorageClass) -> set[str]:
    """Return the zones the class names; empty if it names none."""
    return {
        zone
        for term in storage_class.allowed_topologies
        for label in term.match_label_expressions
        if label.key == ZONE
        for zone in label.values
    }
