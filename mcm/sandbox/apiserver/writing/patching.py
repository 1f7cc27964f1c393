"""PATCH in its four kinds, each ending in :func:`update_object`.

A patch that sets resourceVersion or uid thereby sets a precondition, as the patched object carries
it: another version is a Conflict (409), but another uid is Invalid (422).
"""

from __future__ import annotations

from typing import cast

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.errors import (
    StatusCause,
    StatusError,
    apply_conflict,
    bad_request,
    conflict,
    invalid,
    invalid_options,
    not_found,
    required,
    unprocessable,
    unsupported_media_type,
    wrong_value,
)
from mcm.sandbox.apiserver.patches import (
    PatchError,
    apply_json_patch,
    apply_merge_patch,
    apply_strategic_patch,
)
from mcm.sandbox.apiserver.reading.conversion import served_body, stored_body
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.requests.calls import (
    Call,
    ServerState,
    WriteOptions,
    write_options,
)
from mcm.sandbox.apiserver.requests.documents import decode_document, decode_object
from mcm.sandbox.apiserver.requests.negotiation import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
)
from mcm.sandbox.apiserver.store import Stored
from mcm.sandbox.apiserver.writing.apply import ApplyConflict, FieldError, server_side_apply
from mcm.sandbox.apiserver.writing.create_update import (
    Written,
    create_object,
    find,
    incoming,
    key_of,
    update_object,
)
from mcm.sandbox.apiserver.writing.metadata import check_identity, metadata_of, text_of

_BUILTIN_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
_CUSTOM_TYPES = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)


def patch(state: ServerState, call: Call) -> Written:
    """Patch an object or its status; an apply creates what is not there.

    Raises StatusError: 400 and 422 for the patch, 404, 409, 415 for an unknown patch type.
    """
    if check_patch_type(call) == APPLY_PATCH:
        return _apply(state, call)
    options = write_options(call)
    if options.force:
        cause = StatusCause(
            "FieldValueForbidden", "Forbidden: may not be specified for non-apply patch", "force"
        )
        raise invalid_options("PatchOptions", cause)
    live = find(state, call)
    current = served_body(call.info, live.body)
    patched = patched_document(call, current)
    if patched is current:
        return Written(live.body, live)
    obj = _as_update(call, live, patched)
    return update_object(
        state, call.info, live, obj, subresource=call.target.subresource, options=options
    )


def _as_update(call: Call, live: Stored, patched: JSONObject) -> JSONObject:
    """Return a patched object in the form to keep, as an update wants it.

    Upstream compares the result with the live object, so another uid is Invalid where it would be
    a Conflict in a PUT; the status of a custom resource is taken without a look at the uid.
    """
    info, meta = call.info, metadata_of(patched)
    causes = [
        wrong_value(field, patched.get(field), f"must be {wanted}")
        for field, wanted in (("apiVersion", info.api_version), ("kind", info.kind))
        if patched.get(field) != wanted
    ]
    uid, version = text_of(meta, "uid"), text_of(meta, "resourceVersion")
    if uid not in ("", live.uid):
        if call.target.subresource and not info.builtin:
            patched = {**patched, "metadata": {**meta, "uid": live.uid}}
        elif version in ("", live.metadata["resourceVersion"]):
            causes.append(wrong_value("metadata.uid", uid, "field is immutable"))
    if causes:
        raise invalid(info, live.name, causes)
    return stored_body(info, patched)


def check_patch_type(call: Call) -> str:
    """Return the media type of a patch. Raises StatusError (415) if the kind does not take it."""
    media_type = call.media_type()
    accepted = _BUILTIN_TYPES if call.info.builtin else _CUSTOM_TYPES
    if media_type not in accepted:
        raise unsupported_media_type(accepted)
    return media_type


def patched_document(call: Call, current: JSONObject) -> JSONObject:
    """Apply a merge, JSON or strategic patch to ``current``; the same dict if it changes nothing.

    Raises StatusError (400, 413, 422).
    """
    try:
        return _patched(call, current)
    except PatchError as error:
        match error.code:
            case 400:
                raise bad_request(error.message) from None
            case 413:
                raise StatusError(413, "RequestEntityTooLarge", error.message) from None
            case _:
                raise unprocessable(error.message) from None


def _patched(call: Call, current: JSONObject) -> JSONObject:
    body = call.body
    match call.media_type():
        case "application/merge-patch+json":
            return apply_merge_patch(current, decode_object(body))
        case "application/json-patch+json":
            operations = decode_document(body)
            if not isinstance(operations, list):
                raise bad_request("a JSON patch must be a list of operations")
            return apply_json_patch(current, cast("list[object]", operations))
        case _:
            return apply_strategic_patch(current, decode_object(body), kind=call.info.kind)


# Server-side apply ------------------------------------------------------------------------------


def _apply(state: ServerState, call: Call) -> Written:
    options = write_options(call)
    if not call.query.get("fieldManager"):
        cause = required("fieldManager", "is required for apply patch")
        raise invalid_options("PatchOptions", cause)
    applied = _applied_configuration(call)
    target = call.target
    live = state.store.collection(call.info.storage).get(key_of(target.namespace, target.name))
    if live is None and target.subresource:
        raise not_found(call.info, target.name)
    merged = _merged(state, call, live, applied, options)
    if live is None:
        return _created(state, call, incoming(call.info, merged), options)
    if merged is served_body(call.info, live.body):
        return Written(live.body, live)
    obj = _as_update(call, live, merged)
    return update_object(
        state,
        call.info,
        live,
        obj,
        subresource=target.subresource,
        options=options,
        tracked=True,
    )


def _applied_configuration(call: Call) -> JSONObject:
    applied = decode_object(call.body)
    meta = metadata_of(applied)
    if meta.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    _check_type(call.info, applied)
    meta = {**meta, "name": text_of(meta, "name") or call.target.name}
    check_identity(call.info, call.target.name, call.target.namespace, meta)
    return {**applied, "metadata": meta}


def _check_type(info: ResourceInfo, applied: JSONObject) -> None:
    if (applied.get("apiVersion"), applied.get("kind")) != (info.api_version, info.kind):
        raise bad_request(
            f"invalid object type: {applied.get('apiVersion', '')}, Kind={applied.get('kind', '')}"
            f"; want {info.api_version}, Kind={info.kind}"
        )


def _merged(
    state: ServerState,
    call: Call,
    live: Stored | None,
    applied: JSONObject,
    options: WriteOptions,
) -> JSONObject:
    try:
        return server_side_apply(
            served_body(call.info, live.body) if live is not None else None,
            applied,
            manager=options.manager,
            force=options.force,
            now=state.stamp(),
            subresource=call.target.subresource,
            schema=call.info.schema,
        )
    except ApplyConflict as error:
        raise apply_conflict(str(error), error.causes) from None
    except FieldError as error:
        raise unprocessable(str(error)) from None


def _created(state: ServerState, call: Call, obj: JSONObject, options: WriteOptions) -> Written:
    uid = text_of(metadata_of(obj), "uid")
    if uid:
        raise conflict(
            call.info,
            call.target.name,
            f"uid mismatch: the provided object specified uid {uid}, "
            "and no existing object was found",
        )
    return create_object(
        state, call.info, obj, namespace=call.target.namespace, options=options, tracked=True
    )
