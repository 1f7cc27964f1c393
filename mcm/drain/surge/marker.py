"""What stands on a Deployment while a successor for one of its pods is being made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import final

from mcm.api.meta import JSONObject, ObjectMeta
from mcm.api.names import (
    ANNOTATION_DRAIN_SURGE,
    ANNOTATION_KUBECTL_RESTARTED_AT,
    LABEL_DRAIN_SURGE,
    LABEL_VALUE_TRUE,
)
from mcm.api.timestamps import parse_rfc3339, rfc3339
from mcm.api.workloads import Deployment
from mcm.drain.selection import SurgeKind

_LONGEST = 1024


@final
@dataclass(frozen=True, slots=True)
class Marker:
    """``pod`` is the UID of the one that is to go, ``name`` its name. ``replicas``: how many there
    were before."""

    pod: str
    name: str
    kind: SurgeKind
    since: datetime
    until: datetime
    replicas: int


def is_marked(deployment: Deployment) -> bool:
    """Tell whether anything of a marker stands there, be it readable or not."""
    meta = deployment.metadata
    return LABEL_DRAIN_SURGE in meta.labels or ANNOTATION_DRAIN_SURGE in meta.annotations


def marker_of(deployment: Deployment) -> Marker | None:
    """Read the marker; None if there is none, or none that can be ours."""
    text = deployment.metadata.annotations.get(ANNOTATION_DRAIN_SURGE, "")
    if not text or len(text) > _LONGEST:
        return None
    try:
        raw = json.loads(text)
        return _read(raw) if isinstance(raw, dict) else None
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


def _read(raw: Mapping[str, object]) -> Marker:
    replicas = raw["replicas"]
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
        raise ValueError("replicas")
    return Marker(
        pod=str(raw["pod"]),
        name=str(raw["name"]),
        kind=SurgeKind(str(raw["kind"])),
        since=parse_rfc3339(str(raw["since"])),
        until=parse_rfc3339(str(raw["until"])),
        replicas=replicas,
    )


def begin_patch(deployment: Deployment, marker: Marker) -> JSONObject:
    """Return the merge patch that has a successor made, for the version that was read."""
    metadata = {
        **_version(deployment.metadata),
        "labels": {LABEL_DRAIN_SURGE: LABEL_VALUE_TRUE},
        "annotations": {ANNOTATION_DRAIN_SURGE: _text(marker)},
    }
    match marker.kind:
        case SurgeKind.SCALE:
            return {"metadata": metadata, "spec": {"replicas": marker.replicas + 1}}
        case SurgeKind.RESTART:
            restarted = {ANNOTATION_KUBECTL_RESTARTED_AT: rfc3339(marker.since)}
            template = {"metadata": {"annotations": restarted}}
            return {"metadata": metadata, "spec": {"template": template}}


def end_patch(deployment: Deployment, marker: Marker | None) -> JSONObject:
    """Return the merge patch that takes the marker off, and what we added to the replicas, unless
    somebody has changed their number since."""
    metadata = {
        **_version(deployment.metadata),
        "labels": {LABEL_DRAIN_SURGE: None},
        "annotations": {ANNOTATION_DRAIN_SURGE: None},
    }
    patch: JSONObject = {"metadata": metadata}
    if marker is not None and adds_to(deployment, marker):
        patch["spec"] = {"replicas": marker.replicas}
    return patch


def adds_to(deployment: Deployment, marker: Marker) -> bool:
    """Tell whether the Deployment asks for what we added, and for nothing else."""
    return marker.kind is SurgeKind.SCALE and deployment.spec.replicas == marker.replicas + 1


def _version(meta: ObjectMeta) -> JSONObject:
    return {"uid": meta.uid, "resourceVersion": meta.resource_version}


def _text(marker: Marker) -> str:
    raw = {
        "pod": marker.pod,
        "name": marker.name,
        "kind": marker.kind.value,
        "since": rfc3339(marker.since),
        "until": rfc3339(marker.until),
        "replicas": marker.replicas,
    }
    return json.dumps(raw, separators=(",", ":"))
