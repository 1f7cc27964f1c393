"""Pods as their owners see them: made from a template, counted, and the least useful go first."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import final

import orjson

from mcm.api.meta import JSONObject, KubeObject, Resource
from mcm.informers.store import Store
from mcm.sandbox.world.kinds import Pod, PodTemplate

BY_OWNER = "owner"
BY_NODE = "node"
_LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)


def index_pods(store: Store[Pod]) -> None:
    """Make pods findable by their owner's UID, and by the Node they are bound to."""
    store.add_index(BY_OWNER, owner_uids)
    store.add_index(BY_NODE, _node_of)


def _node_of(pod: Pod) -> tuple[str, ...]:
    return (pod.spec.node_name,) if pod.spec.node_name else ()


def owner_uids(obj: KubeObject) -> tuple[str, ...]:
    ref = obj.metadata.controller_ref()
    return () if ref is None else (ref.uid,)


def owner_reference(resource: Resource[KubeObject], owner: KubeObject) -> JSONObject:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_from_template(
    resource: Resource[KubeObject],
    owner: KubeObject,
    raw: JSONObject,
    *,
    name: str = "",
    labels: Mapping[str, str] | None = None,
    spec: Mapping[str, object] | None = None,
) -> JSONObject:
    """Return a pod's manifest: ``raw``, with ``labels`` and members of ``spec`` on top. Without a
    ``name`` the server makes one up from the owner's."""
    template = PodTemplate.read(raw)
    metadata: JSONObject = {
        "labels": {**template.metadata.labels, **(labels or {})},
        "annotations": template.metadata.annotations,
        "ownerReferences": [owner_reference(resource, owner)],
    }
    if name:
        metadata["name"] = name
    else:
        metadata["generateName"] = f"{owner.metadata.name}-"
    return {"metadata": metadata, "spec": {**template.spec, **(spec or {})}}


def template_hash(template: JSONObject) -> str:
    """Return what tells this template from others, as a label's value.

    What is empty says nothing: a template that went through a client's types and back is the same.
    """
    canonical = orjson.dumps(_said(template), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(canonical).hexdigest()[:10]


def _said(value: object) -> object:
    if isinstance(value, dict):
        said = {key: _said(inner) for key, inner in value.items()}
        return {key: inner for key, inner in said.items() if inner not in (None, {}, [], "")}
    return [_said(inner) for inner in value] if isinstance(value, list) else value


@final
@dataclass(frozen=True, slots=True)
class Tally:
    """How many pods there are, serve, and have served for long enough; ``wait`` is how many
    seconds until one more has, None if none is on its way there."""

    total: int
    ready: int
    available: int
    wait: float | None = None


def tally(pods: Sequence[Pod], *, min_ready_seconds: int, now: datetime) -> Tally:
    waits: list[float] = []
    ready = available = 0
    for pod in pods:
        since = pod.ready_since
        if since is None:
            continue
        ready += 1
        left = min_ready_seconds - (now - since).total_seconds() if min_ready_seconds else 0.0
        if left > 0:
            waits.append(left)
        else:
            available += 1
    return Tally(len(pods), ready, available, min(waits, default=None))


def least_useful(pods: Iterable[Pod], count: int) -> Sequence[Pod]:
    """Return ``count`` pods to let go: those without a Node first, then those not running, those
    not ready, the newest."""
    return sorted(pods, key=_usefulness)[:count]


def _usefulness(pod: Pod) -> tuple[bool, bool, bool, float, str]:
    created = pod.metadata.creation_timestamp or _LONG_AGO
    return (
        bool(pod.spec.node_name),
        pod.status.phase == "Running",
        pod.ready,
        -(created - _LONG_AGO).total_seconds(),
        pod.metadata.name,
    )
