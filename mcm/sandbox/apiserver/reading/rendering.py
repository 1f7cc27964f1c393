"""From objects to answers, in the version and form the client asked for.

The plain form of a kept object is bytes that exist already; lists join them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import cast

import orjson

from mcm.api.meta import JSONObject
from mcm.client.transport import Response, StreamResponse
from mcm.sandbox.apiserver.errors import bad_request
from mcm.sandbox.apiserver.reading.conversion import served_body, served_bytes
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.requests.calls import Call, ServerState
from mcm.sandbox.apiserver.requests.negotiation import Form
from mcm.sandbox.apiserver.store import Stored
from mcm.sandbox.apiserver.tables import render_table
from mcm.sandbox.apiserver.writing.create_update import Written

JSON_HEADERS: Mapping[str, str] = MappingProxyType({"content-type": "application/json"})

_META_VERSION = "meta.k8s.io/v1"
_INCLUDE_OBJECT = ("Metadata", "Object", "None")


def json_response(document: object, *, status: int = 200) -> Response:
    return Response(status, JSON_HEADERS, orjson.dumps(document))


def text_response(text: str, *, status: int = 200) -> Response:
    return Response(status, {"content-type": "text/plain; charset=utf-8"}, text.encode())


def object_response(state: ServerState, call: Call, stored: Stored) -> Response:
    """Answer with one object as it is kept."""
    if call.form is Form.PLAIN:
        return Response(200, JSON_HEADERS, served_bytes(call.info, stored))
    return json_response(rendered(state, call, stored.body))


def write_response(state: ServerState, call: Call, written: Written) -> Response:
    """Answer a write with the object's new state, and warnings in headers."""
    if call.form is Form.PLAIN and written.stored is not None:
        body = served_bytes(call.info, written.stored)
    else:
        body = orjson.dumps(rendered(state, call, written.body))
    return Response(written.status, _headers(written.warnings), body)


def success(details: JSONObject | None = None, *, status: int = 200) -> Response:
    """Answer with a Status that says Success and nothing else."""
    document: JSONObject = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
    }
    if details is not None:
        document["details"] = details
    else:
        document["code"] = status
    return json_response(document, status=status)


def deleted_details(info: ResourceInfo, body: JSONObject) -> JSONObject:
    meta = cast(JSONObject, body["metadata"])
    details: JSONObject = {"name": meta["name"]}
    if info.group:
        details["group"] = info.group
    return {**details, "kind": info.plural, "uid": meta["uid"]}


def _headers(warnings: Iterable[str]) -> Mapping[str, str]:
    listed = [f'299 - "{_quoted(text)}"' for text in warnings]
    return {**JSON_HEADERS, "warning": ", ".join(listed)} if listed else JSON_HEADERS


def warned(answer: Response | StreamResponse, warnings: Sequence[str]) -> Response | StreamResponse:
    """Return the answer to a change with the warnings of who was asked about it."""
    if not warnings or not isinstance(answer, Response):
        return answer
    before = answer.headers.get("warning")
    listed = [*([before] if before else ()), _headers(warnings)["warning"]]
    headers = {**answer.headers, "warning": ", ".join(listed)}
    return Response(answer.status, headers, answer.body)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


# Forms ------------------------------------------------------------------------------------------


def rendered(state: ServerState, call: Call, body: JSONObject) -> JSONObject:
    """Return one object in the form and version of the call."""
    served = served_body(call.info, body)
    match call.form:
        case Form.PLAIN:
            return served
        case Form.METADATA:
            return partial_metadata(served)
        case Form.TABLE:
            version = cast(JSONObject, served["metadata"]).get("resourceVersion", "")
            return table(state, call, [served], {"resourceVersion": version})


def partial_metadata(body: JSONObject) -> JSONObject:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": _META_VERSION,
        "metadata": body["metadata"],
    }


def table(
    state: ServerState, call: Call, bodies: list[JSONObject], list_meta: JSONObject
) -> JSONObject:
    """Return objects (in the served version) as a Table. Raises StatusError (400)."""
    include = call.query.get("includeObject", "") or "Metadata"
    if include not in _INCLUDE_OBJECT:
        raise bad_request(f"unrecognized includeObject value: {include!r}")
    return render_table(
        call.info, bodies, now=state.now(), list_meta=list_meta, include_object=include
    )


def list_response(
    state: ServerState, call: Call, items: Sequence[Stored], list_meta: JSONObject
) -> Response:
    """Answer with many objects; ``list_meta`` is the list's metadata."""
    info = call.info
    match call.form:
        case Form.PLAIN:
            return Response(200, JSON_HEADERS, list_bytes(info, items, list_meta))
        case Form.TABLE:
            bodies = [served_body(info, stored.body) for stored in items]
            return json_response(table(state, call, bodies, list_meta))
        case Form.METADATA:
            return json_response(
                {
                    "kind": "PartialObjectMetadataList",
                    "apiVersion": _META_VERSION,
                    "metadata": list_meta,
                    "items": [partial_metadata(stored.body) for stored in items],
                }
            )


def _list_items(info: ResourceInfo, items: Iterable[Stored]) -> list[bytes]:
    """Items of built-in lists do not repeat the kind that the list has, as upstream."""
    encoded = [served_bytes(info, stored) for stored in items]
    if not info.builtin:
        return encoded
    head = orjson.dumps({"apiVersion": info.api_version, "kind": info.kind})[:-1] + b","
    return [b"{" + item[len(head) :] if item.startswith(head) else item for item in encoded]


def list_bytes(info: ResourceInfo, items: Iterable[Stored], list_meta: JSONObject) -> bytes:
    head = orjson.dumps(
        {"kind": info.list_kind, "apiVersion": info.api_version, "metadata": list_meta}
    )
    body = b",".join(_list_items(info, items))
    return b"".join((head[:-1], b',"items":[', body, b"]}"))
