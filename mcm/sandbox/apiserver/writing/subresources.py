"""The subresources that are objects of other kinds: Scale and Binding."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from mcm.api.meta import JSONObject, LabelSelector
from mcm.api.selectors import SelectorError, to_query
from mcm.client.transport import Response
from mcm.sandbox.apiserver.errors import (
    StatusCause,
    bad_request,
    conflict,
    internal,
    invalid,
    method_not_allowed,
    required,
    unsupported_media_type,
    wrong_value,
)
from mcm.sandbox.apiserver.reading.rendering import json_response, success
from mcm.sandbox.apiserver.registry import ResourceInfo, ScalePaths
from mcm.sandbox.apiserver.requests.calls import Call, ServerState, decode_body, write_options
from mcm.sandbox.apiserver.requests.negotiation import JSON_PATCH, MERGE_PATCH
from mcm.sandbox.apiserver.store import Stored
from mcm.sandbox.apiserver.writing.create_update import find, update_object
from mcm.sandbox.apiserver.writing.metadata import metadata_of, text_of
from mcm.sandbox.apiserver.writing.patching import patched_document

_SCALE_VERSION = "autoscaling/v1"

# Scale ------------------------------------------------------------------------------------------


def scale(state: ServerState, call: Call) -> Response:
    """GET, PUT or PATCH of ``/scale``, an autoscaling/v1 Scale.

    Raises StatusError: 404, 405, 409, 415, 422; 500 if the object has no such number.
    """
    if call.verb not in ("get", "update", "patch"):
        raise method_not_allowed()
    live = find(state, call)
    if call.verb == "get":
        paths = cast(ScalePaths, call.info.scale)
        if _number_at(live.body, paths.spec_replicas) is None:
            raise internal(f'the spec replicas field "{paths.spec_replicas}" does not exist')
        return json_response(scale_of(call.info, live.body))
    wanted = decode_body(call) if call.verb == "update" else _patched_scale(call, live)
    return json_response(_scaled(state, call, live, wanted))


def _patched_scale(call: Call, live: Stored) -> JSONObject:
    if call.media_type() not in (MERGE_PATCH, JSON_PATCH):
        raise unsupported_media_type((JSON_PATCH, MERGE_PATCH))
    return patched_document(call, scale_of(call.info, live.body))


def scale_of(info: ResourceInfo, body: JSONObject) -> JSONObject:
    """Return the Scale of an object; an absent number counts as zero."""
    paths = cast(ScalePaths, info.scale)
    replicas = _number_at(body, paths.spec_replicas) or 0
    status: JSONObject = {"replicas": _number_at(body, paths.status_replicas) or 0}
    selector = _selector_text(body, paths.label_selector)
    if selector:
        status["selector"] = selector
    meta = metadata_of(body)
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": _SCALE_VERSION,
        "metadata": {name: meta[name] for name in names if name in meta},
        "spec": {"replicas": replicas},
        "status": status,
    }


def _scaled(state: ServerState, call: Call, live: Stored, wanted: JSONObject) -> JSONObject:
    info = call.info
    replicas = _wanted_replicas(info, live.name, wanted)
    sent = metadata_of(wanted)
    meta = dict(live.metadata)
    # Without a version the write is unconditional, as for every Scale; a uid is not looked at.
    meta["resourceVersion"] = text_of(sent, "resourceVersion") or meta["resourceVersion"]
    path = _steps(cast(ScalePaths, info.scale).spec_replicas)
    obj = _with_value({**live.body, "metadata": meta}, path, replicas)
    written = update_object(state, info, live, obj, options=write_options(call))
    return scale_of(info, written.body)


def _wanted_replicas(info: ResourceInfo, name: str, wanted: JSONObject) -> int:
    kind, version = wanted.get("kind", "Scale"), wanted.get("apiVersion", _SCALE_VERSION)
    if (kind, version) != ("Scale", _SCALE_VERSION):
        raise bad_request(f"expected a {_SCALE_VERSION} Scale, got a {version} {kind}")
    if text_of(metadata_of(wanted), "name") not in ("", name):
        raise bad_request("the name of the Scale does not match the name on the URL")
    replicas = cast(JSONObject, wanted.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
        path = cast(ScalePaths, info.scale).spec_replicas
        cause = wrong_value(path, replicas, "should be a non-negative integer")
        raise invalid(info, name, [cause])
    return replicas


def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.strip(".").split("."))


def _value_at(body: JSONObject, path: str) -> object:
    found: object = body
    for step in _steps(path):
        found = found.get(step) if isinstance(found, dict) else None
    return found


def _number_at(body: JSONObject, path: str) -> int | None:
    found = _value_at(body, path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _with_value(body: JSONObject, path: tuple[str, ...], value: object) -> JSONObject:
    head, *rest = path
    if not rest:
        return {**body, head: value}
    child = body.get(head)
    inner = cast(JSONObject, child) if isinstance(child, dict) else {}
    return {**body, head: _with_value(inner, tuple(rest), value)}


def _selector_text(body: JSONObject, path: str) -> str:
    """Return a selector as text; a selector object may be a LabelSelector or a plain map."""
    found = _value_at(body, path) if path else None
    if isinstance(found, str):
        return found
    if not isinstance(found, dict):
        return ""
    labels = found.get("matchLabels") or {}
    try:
        # Expressions beside the labels are beyond what status.selector is used for here.
        return to_query(LabelSelector(match_labels=cast("dict[str, str]", labels)))
    except SelectorError:
        return ""


# Binding ----------------------------------------------------------------------------------------


def bind(state: ServerState, call: Call) -> Response:
    """POST of ``/binding``: put a pod on a node, once.

    Raises StatusError: 400, 404, 409 if it is on a node already or being deleted, 422.
    """
    if call.verb != "create":
        raise method_not_allowed()
    options = write_options(call)
    live = find(state, call)
    node = _target_node(call, decode_body(call))
    spec = cast(JSONObject, live.body["spec"])
    if live.terminating:
        raise conflict(call.info, live.name, f"pod {live.name} is being deleted, cannot be bound")
    if spec.get("nodeName"):
        why = f'pod {live.name} is already assigned to node "{spec["nodeName"]}"'
        raise conflict(call.info, live.name, why)
    body = {**live.body, "spec": {**spec, "nodeName": node}, "metadata": dict(live.metadata)}
    body["status"] = _scheduled(state, cast(JSONObject, live.body.get("status") or {}))
    if not options.dry_run:
        state.store.replace(call.info.storage, live, body)
    return success(status=201)


def _target_node(call: Call, binding: JSONObject) -> str:
    if binding.get("kind", "Binding") != "Binding":
        raise bad_request(f"expected a Binding, got a {binding.get('kind')}")
    target = cast(JSONObject, binding.get("target") or {})
    causes: list[StatusCause] = []
    if target.get("kind", "") not in ("", "Node"):
        causes.append(wrong_value("target.kind", target.get("kind"), "must be Node"))
    if not target.get("name"):
        causes.append(required("target.name"))
    if causes:
        raise invalid(replace(call.info, kind="Binding"), call.target.name, causes)
    return str(target["name"])


def _scheduled(state: ServerState, status: JSONObject) -> JSONObject:
    condition: JSONObject = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": state.stamp(),
    }
    before = cast("list[JSONObject]", status.get("conditions") or [])
    others = [c for c in before if c.get("type") != "PodScheduled"]
    return {**status, "conditions": [*others, condition]}
