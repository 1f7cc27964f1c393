"""The rules of ``metadata``: what the server sets, keeps, and refuses."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import cast

from mcm.api.labels import is_label_key, is_label_value
from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.errors import (
    StatusCause,
    StatusError,
    bad_request,
    invalid,
    not_permitted,
    required,
    too_long,
    unreasoned,
    wrong_value,
)
from mcm.sandbox.apiserver.kinds.access import RBAC_GROUP
from mcm.sandbox.apiserver.kinds.builtin import NAMESPACES
from mcm.sandbox.apiserver.kinds.networking import SERVICES
from mcm.sandbox.apiserver.limits import LARGEST_ANNOTATIONS
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.requests.calls import ServerState
from mcm.sandbox.apiserver.store import Stored

# No vowels, no digits that look like letters: generated names form no words.
NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_LONGEST_BASE = 63 - _SUFFIX_LENGTH

_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_SERVICE_NAME = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
_NO_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    "'-' or '.', and must start and end with an alphanumeric character"
)
_NO_SERVICE_NAME = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character"
)

# Set by the server alone; what a client sends for these is not looked at.
_OWN_FIELDS = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)
# Left out when empty, as the typed metadata upstream is.
_OPTIONAL_FIELDS = ("labels", "annotations", "finalizers", "ownerReferences", "managedFields")


def metadata_of(body: JSONObject) -> JSONObject:
    """Return an object's metadata, empty if it has none. Raises StatusError (400)."""
    found = body.get("metadata")
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise bad_request("metadata must be an object")
    return cast(JSONObject, found)


def text_of(meta: JSONObject, name: str) -> str:
    """Return a text field of metadata, empty if absent. Raises StatusError (400)."""
    found = meta.get(name) or ""
    if not isinstance(found, str):
        raise bad_request(f"metadata.{name} must be a string")
    return found


# Creation ---------------------------------------------------------------------------------------


def new_metadata(
    state: ServerState, info: ResourceInfo, sent: JSONObject, *, namespace: str
) -> JSONObject:
    """Return the metadata of an object to create: named, stamped, checked.

    Raises StatusError: 400 for a namespace that is not the request's, 422 for a bad field.
    """
    if text_of(sent, "resourceVersion"):
        raise unreasoned("resourceVersion should not be set on objects to be created")
    meta = {k: v for k, v in sent.items() if k not in _OWN_FIELDS and k != "selfLink"}
    meta["name"] = text_of(sent, "name") or _generated_name(state, text_of(sent, "generateName"))
    _settle_namespace(info, meta, namespace)
    meta["uid"] = str(uuid.UUID(int=state.random.getrandbits(128), version=4))
    meta["creationTimestamp"] = state.stamp()
    if info.tracks_generation:
        meta["generation"] = 1
    drop_empty(meta)
    causes = [*_name_causes(info, cast(str, meta["name"])), *_content_causes(meta, {})]
    if causes:
        raise invalid(info, cast(str, meta["name"]), causes)
    return meta


def _generated_name(state: ServerState, base: str) -> str:
    if not base:
        return ""
    suffix = "".join(state.random.choices(NAME_ALPHABET, k=_SUFFIX_LENGTH))
    return base[:_LONGEST_BASE] + suffix


def _settle_namespace(info: ResourceInfo, meta: JSONObject, namespace: str) -> None:
    sent = text_of(meta, "namespace")
    if not info.namespaced:
        meta.pop("namespace", None)
        return
    if sent and sent != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    meta["namespace"] = namespace


def _name_causes(info: ResourceInfo, name: str) -> Iterator[StatusCause]:
    if not name:
        yield required("metadata.name", "name or generateName is required")
        return
    fault = _name_fault(info, name)
    if fault:
        yield wrong_value("metadata.name", name, fault)


def _name_fault(info: ResourceInfo, name: str) -> str:
    if info.group == RBAC_GROUP:
        # system:… is a name here; it only has to be one step of a path.
        held = next((text for text in ("/", "%") if text in name), "")
        if name in (".", ".."):
            return f"may not be '{name}'"
        return f"may not contain '{held}'" if held else ""
    if info.storage == NAMESPACES:
        return "" if _LABEL.fullmatch(name) else "must be a DNS-1123 label"
    if info.storage == SERVICES:
        return "" if _SERVICE_NAME.fullmatch(name) else _NO_SERVICE_NAME
    return "" if len(name) <= 253 and _SUBDOMAIN.fullmatch(name) else _NO_SUBDOMAIN


# Updates ----------------------------------------------------------------------------------------


def check_identity(info: ResourceInfo, name: str, namespace: str, sent: JSONObject) -> None:
    """Raise StatusError (400) unless metadata sent in a PUT or apply is about the object that the
    URL names."""
    found = text_of(sent, "name")
    if not found:
        raise bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if found != name:
        raise bad_request(
            f"the name of the object ({found}) does not match the name on the URL ({name})"
        )
    if info.namespaced and text_of(sent, "namespace") not in ("", namespace):
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def next_metadata(info: ResourceInfo, live: Stored, sent: JSONObject) -> JSONObject:
    """Return the metadata of an object's next state: what the client may set from ``sent``, the
    rest from ``live``. The result is a new dict without resourceVersion's new value.

    Raises StatusError: 400 for another name or namespace, 422 for a bad field.
    """
    current = live.metadata
    meta = dict(sent)
    check_identity(info, live.name, live.namespace, meta)
    meta["name"] = live.name
    meta["resourceVersion"] = current["resourceVersion"]
    if live.namespace:
        meta["namespace"] = live.namespace
    for field in _OWN_FIELDS:
        if field in current:
            meta[field] = current[field]
        else:
            meta.pop(field, None)
    meta.pop("selfLink", None)
    drop_empty(meta)
    causes = [
        *_deletion_causes(live, sent),
        *_content_causes(meta, current),
        *_finalizer_causes(live, meta),
    ]
    if causes:
        raise invalid(info, live.name, causes)
    return meta


def _deletion_causes(live: Stored, sent: JSONObject) -> Iterator[StatusCause]:
    """Deleting is a verb of its own."""
    when = sent.get("deletionTimestamp")
    if when is not None and when != live.metadata.get("deletionTimestamp"):
        yield wrong_value("metadata.deletionTimestamp", when, "field is immutable")


def _finalizer_causes(live: Stored, meta: JSONObject) -> Iterator[StatusCause]:
    if not live.terminating:
        return
    finalizers = cast("list[str]", meta.get("finalizers") or [])
    new = [f for f in finalizers if f not in live.finalizers]
    if new:
        yield not_permitted(
            "metadata.finalizers",
            "no new finalizers can be added if the object is being deleted, "
            f"found new finalizers {new}",
        )


def spec_changed(info: ResourceInfo, old: JSONObject, new: JSONObject) -> bool:
    """Tell whether a write moves the generation: for built-in kinds a change of the spec, for
    custom ones of anything but metadata and, where it is a subresource, the status."""
    if info.builtin:
        return old.get("spec") != new.get("spec")
    ignored = ("metadata", "status") if info.has_status else ("metadata",)
    names = old.keys() | new.keys()
    return any(old.get(n) != new.get(n) for n in names if n not in ignored)


# Both -------------------------------------------------------------------------------------------


def drop_empty(meta: JSONObject) -> None:
    """Remove optional fields that hold nothing, so that equal objects compare equal."""
    for field in _OPTIONAL_FIELDS:
        if field in meta and not meta[field]:
            del meta[field]


def _content_causes(meta: JSONObject, current: JSONObject) -> Iterator[StatusCause]:
    """Check the client's fields; those shared with the current state were checked before."""
    for field in ("labels", "annotations"):
        value = meta.get(field)
        if value is not None and value is not current.get(field):
            yield from _map_causes(field, value)
    finalizers = meta.get("finalizers")
    if finalizers is not None and finalizers is not current.get("finalizers"):
        yield from _finalizer_names(finalizers)
    owners = meta.get("ownerReferences")
    if owners is not None and owners is not current.get("ownerReferences"):
        yield from _owner_causes(owners)


def _map_causes(field: str, value: object) -> Iterator[StatusCause]:
    if not isinstance(value, dict):
        raise _malformed(f"metadata.{field}")
    for key, text in value.items():
        if not isinstance(text, str):
            raise _malformed(f"metadata.{field}.{key}")
        # Upper case is allowed in annotation keys upstream; label syntax is the stricter one.
        if not is_label_key(key if field == "labels" else key.lower()):
            yield wrong_value(f"metadata.{field}", key, "must be a qualified name")
        if field == "labels" and not is_label_value(text):
            yield wrong_value("metadata.labels", text, "must be a label value")
    if field == "annotations":
        size = sum(len(key.encode()) + len(text.encode()) for key, text in value.items())
        if size > LARGEST_ANNOTATIONS:
            yield too_long("metadata.annotations", LARGEST_ANNOTATIONS)


def _finalizer_names(value: object) -> Iterator[StatusCause]:
    if not isinstance(value, list) or not all(isinstance(f, str) for f in value):
        raise _malformed("metadata.finalizers")
    for name in value:
        if not is_label_key(name):
            yield wrong_value("metadata.finalizers", name, "must be a qualified name")


def _owner_causes(value: object) -> Iterator[StatusCause]:
    if not isinstance(value, list) or not all(isinstance(r, dict) for r in value):
        raise _malformed("metadata.ownerReferences")
    for reference in value:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not reference.get(field):
                yield wrong_value(
                    f"metadata.ownerReferences.{field}", "", f"{field} must not be empty"
                )
    if sum(r.get("controller") is True for r in value) > 1:
        yield wrong_value(
            "metadata.ownerReferences",
            [r.get("name") for r in value],
            "only one reference can have Controller set to true",
        )


def _malformed(field: str) -> StatusError:
    return bad_request(f"cannot decode the object: {field} has the wrong type")
