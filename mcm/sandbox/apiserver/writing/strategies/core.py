"""The strategies of pods, configuration, events, leases, volumes and workloads."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from mcm.api.meta import JSONObject
from mcm.api.timestamps import micro_time, parse_rfc3339
from mcm.sandbox.apiserver.definitions.checking import prepare_definition
from mcm.sandbox.apiserver.errors import (
    StatusCause,
    bad_request,
    invalid,
    not_permitted,
    required,
    wrong_value,
)
from mcm.sandbox.apiserver.kinds.builtin import (
    DEFINITIONS,
    EVENTS,
    LEASES,
    NAMESPACES,
    PODS,
    SECRETS,
)
from mcm.sandbox.apiserver.reading.conversion import EVENTS_GROUP
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.requests.calls import ServerState
from mcm.sandbox.apiserver.store import Stored
from mcm.sandbox.apiserver.writing.strategies.priorities import resolve_priority
from mcm.sandbox.apiserver.writing.strategies.strategy import (
    Strategy,
    name_of,
    set_members,
    spec_of,
)

NAMESPACE_FINALIZER = "kubernetes"
"""In ``spec.finalizers`` until the namespace is empty."""

# Under the names of the core group, in which events are kept. Go leaves none of these out, and
# ``kubectl get events --sort-by=.lastTimestamp`` finds nothing where one of them is missing.
_ALWAYS_IN_EVENTS: Mapping[str, object] = {
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "source": {},
    "reportingComponent": "",
    "reportingInstance": "",
}
_OPEN_IN_EVENTS = frozenset({"apiVersion", "kind", "metadata", "series"})
_SHORTEST_SERIES = 2

_STATEFUL_SET_DEFAULTS: Mapping[str, object] = {
    "replicas": 1,
    "podManagementPolicy": "OrderedReady",
    "revisionHistoryLimit": 10,
    "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
}
_OPEN_IN_STATEFUL_SETS = frozenset(
    {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    }
)
_ONLY_THOSE = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden"
)


def _secret(_: ServerState, info: ResourceInfo, obj: JSONObject, live: Stored | None) -> None:
    """Fold ``stringData`` into ``data``; the type cannot change, nor anything if immutable."""
    plain = obj.pop("stringData", None)
    if isinstance(plain, dict) and plain:
        encoded = {k: base64.b64encode(str(v).encode()).decode() for k, v in plain.items()}
        obj["data"] = {**cast(JSONObject, obj.get("data") or {}), **encoded}
    if live is None:
        obj.setdefault("type", "Opaque")
    else:
        obj["type"] = obj.get("type") or live.body.get("type")
    _check_base64(obj.get("data"), live)
    causes: list[StatusCause] = []
    if live is not None and obj["type"] != live.body.get("type"):
        causes.append(wrong_value("type", obj["type"], "field is immutable"))
    if live is not None and _breaks_immutability(obj, live):
        causes.append(not_permitted("data", "field is immutable when `immutable` is set"))
    if causes:
        raise invalid(info, name_of(obj), causes)


def _breaks_immutability(obj: JSONObject, live: Stored) -> bool:
    if live.body.get("immutable") is not True:
        return False
    return obj.get("data") != live.body.get("data") or obj.get("immutable") is not True


def _check_base64(data: object, live: Stored | None) -> None:
    if not isinstance(data, dict) or (live is not None and data is live.body.get("data")):
        return
    for key, value in data.items():
        try:
            base64.b64decode(cast(str, value), validate=True)
        except (binascii.Error, TypeError, ValueError):
            # The value is a secret, even where it is none: it must not appear in an error.
            raise bad_request(f"cannot decode the object: data[{key}] is not base64") from None


def _namespace(_: ServerState, __: ResourceInfo, obj: JSONObject, live: Stored | None) -> None:
    """Only the finalize subresource changes ``spec.finalizers``."""
    if live is not None:
        obj["spec"] = live.body["spec"]
        return
    obj["spec"] = {"finalizers": [NAMESPACE_FINALIZER]}
    meta = cast(JSONObject, obj["metadata"])
    labels = cast(JSONObject, meta.get("labels") or {})
    meta["labels"] = {**labels, "kubernetes.io/metadata.name": meta["name"]}


def _pod(state: ServerState, info: ResourceInfo, obj: JSONObject, live: Stored | None) -> None:
    """Default what schedulers, kubelets and drains read."""
    if live is not None:
        return
    spec = spec_of(obj)
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("schedulerName", "default-scheduler")
    account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = account
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    resolve_priority(state, info, obj, spec)
    obj["spec"] = spec


def _replicated(_: ServerState, __: ResourceInfo, obj: JSONObject, ___: Stored | None) -> None:
    spec = obj.get("spec")
    if isinstance(spec, dict) and spec.get("replicas") is None:
        obj["spec"] = {**spec, "replicas": 1}


def _stateful_set(_: ServerState, info: ResourceInfo, obj: JSONObject, live: Stored | None) -> None:
    """Default what ``kubectl rollout`` reads; what the pods' names and volumes are made of stays
    as it is."""
    spec = {**_STATEFUL_SET_DEFAULTS, **set_members(spec_of(obj))}
    spec["updateStrategy"] = _update_strategy(spec)
    obj["spec"] = spec
    if live is None:
        return
    before = cast(JSONObject, live.body["spec"])
    settled = (spec.keys() | before.keys()) - _OPEN_IN_STATEFUL_SETS
    if any(spec.get(field) != before.get(field) for field in settled):
        raise invalid(info, name_of(obj), [not_permitted("spec", _ONLY_THOSE)])


def _update_strategy(spec: JSONObject) -> JSONObject:
    sent = spec.get("updateStrategy")
    strategy = {"type": "RollingUpdate", **(set_members(sent) if isinstance(sent, dict) else {})}
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.get("rollingUpdate")
        strategy["rollingUpdate"] = {
            "partition": 0,
            **(set_members(rolling) if isinstance(rolling, dict) else {}),
        }
    return strategy


def _lease(_: ServerState, info: ResourceInfo, obj: JSONObject, __: Stored | None) -> None:
    """Keep the times as MicroTime; refuse a term that is none."""
    spec = spec_of(obj)
    for field in ("acquireTime", "renewTime"):
        if spec.get(field) is not None:
            spec[field] = _micro_time(f"spec.{field}", spec[field])
    causes: list[StatusCause] = []
    for field, least, detail in (
        ("leaseDurationSeconds", 1, "must be greater than 0"),
        ("leaseTransitions", 0, "must be greater than or equal to 0"),
    ):
        value = spec.get(field)
        if isinstance(value, int) and value < least:
            causes.append(wrong_value(f"spec.{field}", value, detail))
    if causes:
        raise invalid(info, name_of(obj), causes)
    if "spec" in obj:
        obj["spec"] = spec


def _micro_time(field: str, value: object) -> str:
    try:
        return micro_time(parse_rfc3339(value if isinstance(value, str) else ""))
    except ValueError:
        raise bad_request(f"cannot decode the object: {field} is no MicroTime") from None


def _event(_: ServerState, info: ResourceInfo, obj: JSONObject, live: Stored | None) -> None:
    """What is sent to events.k8s.io must say everything, and later changes nothing but the series;
    the older API asks for nothing."""
    for field, unset in _ALWAYS_IN_EVENTS.items():
        if obj.get(field) is None:
            obj[field] = unset
    if info.group != EVENTS_GROUP:
        return
    causes = _faults_of_new_event(obj) if live is None else _changes_of_event(obj, live)
    if causes:
        raise invalid(replace(info, group=""), name_of(obj), causes)


def _faults_of_new_event(obj: JSONObject) -> list[StatusCause]:
    wanted = {
        "eventTime": "eventTime",
        "reportingController": "reportingComponent",
        "reportingInstance": "reportingInstance",
        "action": "action",
        "reason": "reason",
    }
    causes = [required(field) for field, kept in wanted.items() if not obj.get(kept)]
    if obj.get("type") not in ("Normal", "Warning"):
        causes.append(wrong_value("type", obj.get("type") or "", "must be Normal or Warning"))
    of_old = ("firstTimestamp", "lastTimestamp", "count", "source")
    causes += [wrong_value(f, "", "needs to be unset") for f in of_old if obj.get(f)]
    series = obj.get("series")
    if isinstance(series, dict) and not cast(int, series.get("count") or 0) >= _SHORTEST_SERIES:
        causes.append(wrong_value("series.count", "", f"should be at least {_SHORTEST_SERIES}"))
    return causes


def _changes_of_event(obj: JSONObject, live: Stored) -> list[StatusCause]:
    settled = (field for field in obj if field not in _OPEN_IN_EVENTS)
    changed = [field for field in settled if obj[field] != live.body.get(field)]
    return [wrong_value(field, obj[field], "field is immutable") for field in changed]


def _volume(_: ServerState, __: ResourceInfo, obj: JSONObject, live: Stored | None) -> None:
    _default_spec(obj, live, volumeMode="Filesystem", persistentVolumeReclaimPolicy="Retain")


def _claim(_: ServerState, __: ResourceInfo, obj: JSONObject, live: Stored | None) -> None:
    _default_spec(obj, live, volumeMode="Filesystem")


def _default_spec(obj: JSONObject, live: Stored | None, **defaults: str) -> None:
    if live is None:
        spec = spec_of(obj)
        for member, value in defaults.items():
            spec[member] = spec.get(member) or value
        obj["spec"] = spec


def _storage_class(_: ServerState, __: ResourceInfo, obj: JSONObject, live: Stored | None) -> None:
    if live is None:
        obj["reclaimPolicy"] = obj.get("reclaimPolicy") or "Delete"
        obj["volumeBindingMode"] = obj.get("volumeBindingMode") or "Immediate"


CORE_STRATEGIES: Mapping[str, Strategy] = {
    SECRETS: _secret,
    NAMESPACES: _namespace,
    PODS: _pod,
    DEFINITIONS: prepare_definition,
    EVENTS: _event,
    LEASES: _lease,
    "persistentvolumes": _volume,
    "persistentvolumeclaims": _claim,
    "storageclasses.storage.k8s.io": _storage_class,
    "deployments.apps": _replicated,
    "replicasets.apps": _replicated,
    "statefulsets.apps": _stateful_set,
}
