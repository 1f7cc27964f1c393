"""Between the form an object is kept in and the version it is asked for in.

Two cases exist. Versions of one custom resource differ in apiVersion alone (conversion strategy
None). Events are kept in the core form and served by events.k8s.io under new field names.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.store import Stored

EVENTS_GROUP = "events.k8s.io"

# core name → events.k8s.io name; all other fields keep theirs.
_EVENT_FIELDS: Mapping[str, str] = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
# The core group writes these out even where nobody set them, events.k8s.io does not.
_LEFT_OUT = frozenset({"reportingComponent", "reportingInstance"})
_CORE_FIELDS: Mapping[str, str] = {new: old for old, new in _EVENT_FIELDS.items()}


def served_body(info: ResourceInfo, body: JSONObject) -> JSONObject:
    """Return an object in the version of ``info``; the same dict if it is kept so."""
    if body["apiVersion"] == info.api_version:
        return body
    if not _is_event(info):
        return _converted(body, info.api_version, {})
    told = {name: value for name, value in body.items() if value or name not in _LEFT_OUT}
    return _converted(told, info.api_version, _EVENT_FIELDS)


def stored_body(info: ResourceInfo, body: JSONObject) -> JSONObject:
    """Return an object that was sent in the version of ``info`` in the form to keep."""
    if body["apiVersion"] == info.stored_api_version:
        return body
    return _converted(body, info.stored_api_version, _CORE_FIELDS if _is_event(info) else {})


def served_bytes(info: ResourceInfo, stored: Stored) -> bytes:
    """Return an object's encoding in the version of ``info``, made once."""
    if stored.api_version == info.api_version:
        return stored.encoded
    return stored.view(info.api_version, lambda s: orjson.dumps(served_body(info, s.body)))


def _is_event(info: ResourceInfo) -> bool:
    return info.group == EVENTS_GROUP


def _converted(body: JSONObject, api_version: str, names: Mapping[str, str]) -> JSONObject:
    renamed = {names.get(name, name): value for name, value in body.items()}
    renamed["apiVersion"] = api_version
    return renamed
