"""Create, update and patch: from what a client sent to what is stored.

:func:`create_object` and :func:`update_object` hold the rules and are also what subresources and
the server's own controllers write through. A write that changes nothing is none: no revision, no
event. Objects are never changed in place; a new state shares what it did not change with the old.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast, final

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.errors import (
    StatusCause,
    StatusError,
    already_exists,
    bad_request,
    forbidden,
    invalid,
    not_found,
    other_uid,
    stale,
    version_required,
    wrong_value,
)
from mcm.sandbox.apiserver.kinds.builtin import DEFINITIONS, NAMESPACES, PODS
from mcm.sandbox.apiserver.reading.conversion import stored_body
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.requests.calls import (
    Call,
    ServerState,
    WriteOptions,
    decode_body,
    write_options,
)
from mcm.sandbox.apiserver.store import Stored
from mcm.sandbox.apiserver.writing.apply import track_update
from mcm.sandbox.apiserver.writing.conformance import conform
from mcm.sandbox.apiserver.writing.metadata import (
    check_identity,
    drop_empty,
    metadata_of,
    new_metadata,
    next_metadata,
    spec_changed,
    text_of,
)
from mcm.sandbox.apiserver.writing.strategies.prepare import prepare

_NAME_TRIES = 8
# Built-in kinds whose status strategy leaves all other metadata alone.
_STATUS_ALONE = frozenset({DEFINITIONS, "volumeattachments.storage.k8s.io"})


@final
@dataclass(slots=True)
class Written:
    """What a write answers: ``stored`` as it is kept; None where nothing is, after a dry run or
    if the write removed the object (``gone``)."""

    body: JSONObject
    stored: Stored | None
    status: int = 200
    gone: bool = False
    warnings: list[str] = field(default_factory=list)


def key_of(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def find(state: ServerState, call: Call) -> Stored:
    """Return the object a call names. Raises StatusError (404)."""
    target = call.target
    key = key_of(target.namespace, target.name)
    found = state.store.collection(target.info.storage).get(key)
    if found is None:
        raise not_found(target.info, target.name)
    return found


def incoming(info: ResourceInfo, body: JSONObject) -> JSONObject:
    """Return a sent object in the form to keep, apiVersion and kind first.

    A built-in kind may leave those two out. Raises StatusError (400, 422) if they are missing or
    another resource's.
    """
    version, kind = body.get("apiVersion"), body.get("kind")
    if not info.builtin and not (version and kind):
        missing = "apiVersion" if kind else "Kind"
        raise bad_request(
            f"the object provided is unrecognized (must be of type {info.kind}): "
            f"Object '{missing}' is missing"
        )
    if version and version != info.api_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match "
            f"the expected API version ({info.api_version})"
        )
    if kind and kind != info.kind:
        raise _other_kind(info, body, str(kind))
    obj = {"apiVersion": info.api_version, "kind": info.kind, **body}
    obj["apiVersion"], obj["kind"] = info.api_version, info.kind
    return stored_body(info, obj)


def _other_kind(info: ResourceInfo, body: JSONObject, kind: str) -> StatusError:
    if info.builtin:
        return bad_request(f"{kind} in version {info.version!r} cannot be handled as a {info.kind}")
    cause = wrong_value("kind", kind, f"must be {info.kind}")
    return invalid(replace(info, kind=kind), text_of(metadata_of(body), "name"), [cause])


# Create -----------------------------------------------------------------------------------------


def create(state: ServerState, call: Call) -> Written:
    options = write_options(call)
    obj = incoming(call.info, decode_body(call))
    return create_object(state, call.info, obj, namespace=call.target.namespace, options=options)


def create_object(
    state: ServerState,
    info: ResourceInfo,
    obj: JSONObject,
    *,
    namespace: str,
    options: WriteOptions,
    tracked: bool = False,
) -> Written:
    """Store a new object. ``tracked``: its managedFields are already right.

    Raises StatusError: 404 without its namespace, 403 in a terminating one, 409 if it exists,
    400 and 422 for what is wrong with it.
    """
    meta = _free_metadata(state, info, metadata_of(obj), namespace)
    obj = {**obj, "metadata": meta}
    _initial_status(info, obj)
    warnings: list[str] = []
    obj = conform(info, obj, None, validation=options.validation, warnings=warnings)
    prepare(state, info, obj, None)
    if state.settings.managed_fields and not tracked:
        obj["metadata"] = _first_owned(state, info, obj, options)
    if options.dry_run:
        return Written(obj, None, 201, warnings=warnings)
    # The store takes the metadata over, and nobody else may hold it.
    obj["metadata"] = dict(cast(JSONObject, obj["metadata"]))
    stored = state.store.create(info.storage, namespace, cast(str, meta["name"]), obj)
    return Written(stored.body, stored, 201, warnings=warnings)


def _free_metadata(
    state: ServerState, info: ResourceInfo, sent: JSONObject, namespace: str
) -> JSONObject:
    """Return the new object's metadata, with a generated name nobody has yet."""
    if info.namespaced:
        check_namespace(state, info, namespace, text_of(sent, "name"))
    objects = state.store.collection(info.storage).objects
    tries = 1 if text_of(sent, "name") else _NAME_TRIES
    name = ""
    for _ in range(tries):
        meta = new_metadata(state, info, sent, namespace=namespace)
        name = cast(str, meta["name"])
        if key_of(namespace, name) not in objects:
            return meta
    raise already_exists(info, name)


def check_namespace(state: ServerState, info: ResourceInfo, namespace: str, name: str) -> None:
    """Raise StatusError where nothing can be created: 404 without the namespace, 403 if it ends."""
    found = state.store.collection(NAMESPACES).get(namespace)
    if found is None:
        namespaces = cast(ResourceInfo, state.registry.find("", "v1", NAMESPACES))
        raise not_found(namespaces, namespace)
    if found.terminating:
        why = (
            f"unable to create new content in namespace {namespace} because it is being terminated"
        )
        cause = StatusCause(
            "NamespaceTerminating",
            f"namespace {namespace} is being terminated",
            "metadata.namespace",
        )
        raise forbidden(info, name, why, causes=(cause,))


def _initial_status(info: ResourceInfo, obj: JSONObject) -> None:
    if not info.has_status:
        return
    if not info.builtin:
        obj.pop("status", None)
    elif info.initial_status is not None:
        obj["status"] = info.initial_status


# Update -----------------------------------------------------------------------------------------


def update(state: ServerState, call: Call) -> Written:
    """PUT of an object, its status or its finalizers."""
    info, target = call.info, call.target
    options = write_options(call)
    obj = incoming(info, decode_body(call))
    check_identity(info, target.name, target.namespace, metadata_of(obj))
    live = state.store.collection(info.storage).get(key_of(target.namespace, target.name))
    if live is None:
        if info.create_on_update and not target.subresource:
            return create_object(state, info, obj, namespace=target.namespace, options=options)
        raise not_found(info, target.name)
    if not info.unconditional_update and not text_of(metadata_of(obj), "resourceVersion"):
        raise version_required(info, target.name)
    return update_object(state, info, live, obj, subresource=target.subresource, options=options)


def update_object(
    state: ServerState,
    info: ResourceInfo,
    live: Stored,
    obj: JSONObject,
    *,
    subresource: str = "",
    options: WriteOptions,
    tracked: bool = False,
) -> Written:
    """Store the next state of ``live``, as far as the subresource lets ``obj`` say it.

    The resourceVersion and uid in ``obj`` are preconditions. An object whose last finalizer goes
    while it is being deleted is removed. Raises StatusError: 409 if a precondition fails, 400 and
    422 for what is wrong with it.
    """
    sent = metadata_of(obj)
    check_preconditions(
        info, live, uid=text_of(sent, "uid"), version=text_of(sent, "resourceVersion")
    )
    new = _next_state(info, live, obj, sent, subresource)
    warnings: list[str] = []
    new = conform(info, new, live, validation=options.validation, warnings=warnings)
    if not subresource:
        prepare(state, info, new, live)
    if not tracked:
        _keep_owners(state, live, new)
    if new == live.body:
        return Written(live.body, live, warnings=warnings)
    if info.tracks_generation and spec_changed(info, live.body, new):
        bump_generation(cast(JSONObject, new["metadata"]))
    if state.settings.managed_fields and not tracked:
        new = _owned(state, info, live, new, options, subresource)
    return _committed(state, info, live, new, options=options, warnings=warnings)


def check_preconditions(info: ResourceInfo, live: Stored, *, uid: str, version: str) -> None:
    """Raise StatusError (409) unless each one given is the live object's."""
    if uid and uid != live.uid:
        raise other_uid(info, live.name, wanted=uid, found=live.uid)
    if version and version != live.metadata["resourceVersion"]:
        raise stale(info, live.name)


def bump_generation(meta: JSONObject) -> None:
    meta["generation"] = cast(int, meta.get("generation") or 0) + 1


def is_finished(info: ResourceInfo, body: JSONObject) -> bool:
    """Tell whether an object being deleted has nothing left to wait for."""
    meta = cast(JSONObject, body["metadata"])
    if "deletionTimestamp" not in meta or meta.get("finalizers"):
        return False
    if info.storage == NAMESPACES:
        return not cast(JSONObject, body["spec"]).get("finalizers")
    return not meta.get("deletionGracePeriodSeconds")


def _next_state(
    info: ResourceInfo, live: Stored, obj: JSONObject, sent: JSONObject, subresource: str
) -> JSONObject:
    """Combine the live object with the part of ``obj`` that the subresource owns. The result and
    its metadata are new dicts."""
    meta = next_metadata(info, live, sent)
    if not subresource:
        new = {**obj, "metadata": meta}
        if info.has_status:
            _copy_field(live.body, new, "status")
        return new
    new = dict(live.body)
    new["metadata"] = _status_metadata(info, live, meta)
    _copy_field(obj, new, "spec" if subresource == "finalize" else "status")
    return new


def _status_metadata(info: ResourceInfo, live: Stored, meta: JSONObject) -> JSONObject:
    """Return the metadata that a write through a subresource makes: most built-in kinds take it
    all, custom ones and a few others nothing but the field owners."""
    if not info.builtin or info.storage in _STATUS_ALONE:
        result = dict(live.metadata)
        _copy_field(meta, result, "managedFields")
        return result
    if info.storage == PODS:
        _copy_field(live.metadata, meta, "ownerReferences")
    elif info.group == "apps":
        _copy_field(live.metadata, meta, "labels")
    return meta


def _copy_field(source: JSONObject, target: JSONObject, name: str) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def _keep_owners(state: ServerState, live: Stored, new: JSONObject) -> None:
    """A writer that says nothing of managedFields leaves them as they are."""
    meta = cast(JSONObject, new["metadata"])
    if "managedFields" not in meta or not state.settings.managed_fields:
        _copy_field(live.metadata, meta, "managedFields")


def _owned(
    state: ServerState,
    info: ResourceInfo,
    live: Stored | None,
    new: JSONObject,
    options: WriteOptions,
    subresource: str = "",
) -> JSONObject:
    return track_update(
        live.body if live is not None else None,
        new,
        manager=options.manager,
        now=state.stamp(),
        subresource=subresource,
        schema=info.schema,
    )


def _first_owned(
    state: ServerState, info: ResourceInfo, obj: JSONObject, options: WriteOptions
) -> JSONObject:
    """Return the metadata of a new object, owned by its creator; the status is nobody's yet."""
    if info.has_status:
        obj = {name: value for name, value in obj.items() if name != "status"}
    return cast(JSONObject, _owned(state, info, None, obj, options)["metadata"])


def _committed(
    state: ServerState,
    info: ResourceInfo,
    live: Stored,
    new: JSONObject,
    *,
    options: WriteOptions,
    warnings: list[str],
) -> Written:
    if options.dry_run:
        return Written(new, None, warnings=warnings)
    # The store takes the metadata over, and nobody else may hold it.
    meta = new["metadata"] = dict(cast(JSONObject, new["metadata"]))
    drop_empty(meta)
    if is_finished(info, new):
        state.store.delete(info.storage, live)
        return Written(new, None, gone=True, warnings=warnings)
    stored = state.store.replace(info.storage, live, new)
    return Written(stored.body, stored, warnings=warnings)
