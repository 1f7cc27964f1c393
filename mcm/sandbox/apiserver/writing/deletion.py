"""Deletion: preconditions, grace, finalizers, and what to do about dependents.

An object stays, marked, while it has finalizers or (a pod on a node) grace left; whoever removes
the last reason to stay removes the object. The propagation policy becomes a finalizer that the
garbage collector acts upon (:mod:`mcm.sandbox.apiserver.garbage.collector`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import cast, final

from mcm.api.meta import JSONObject
from mcm.api.timestamps import parse_rfc3339, rfc3339
from mcm.sandbox.apiserver.definitions.checking import terminating_status, with_cleanup
from mcm.sandbox.apiserver.errors import (
    bad_request,
    failed_precondition,
    forbidden,
    invalid_options,
    not_supported,
    wrong_value,
)
from mcm.sandbox.apiserver.kinds.builtin import DEFINITIONS, NAMESPACES, PODS
from mcm.sandbox.apiserver.reading.selection import parse_selection
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.requests.calls import Call, ServerState, is_dry_run
from mcm.sandbox.apiserver.requests.documents import decode_object
from mcm.sandbox.apiserver.store import Stored
from mcm.sandbox.apiserver.writing.create_update import (
    Written,
    bump_generation,
    find,
    is_finished,
)
from mcm.sandbox.apiserver.writing.metadata import drop_empty

ORPHAN_FINALIZER = "orphan"
FOREGROUND_FINALIZER = "foregroundDeletion"

_POLICY_FINALIZERS = {"Orphan": ORPHAN_FINALIZER, "Foreground": FOREGROUND_FINALIZER}
_POLICIES = ("Foreground", "Background", "Orphan")
_OPTIONS_KIND = "DeleteOptions"
_UNDELETABLE = frozenset({"default", "kube-system", "kube-public"})
_DEFAULT_GRACE = 30


@final
@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """``grace`` in seconds, None for the object's own; ``propagation`` empty for its default."""

    grace: int | None = None
    propagation: str = ""
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False


NO_OPTIONS = DeleteOptions()


def delete(state: ServerState, call: Call) -> Written:
    """Delete one object. Raises StatusError: 404, 403 for a permanent namespace, 409 for a failed
    precondition, 400 and 422 for bad options."""
    options = _options_of(call)
    return delete_object(state, call.info, find(state, call), options)


def delete_collection(state: ServerState, call: Call) -> list[Stored]:
    """Delete everything selected, each object on its own; return what was selected."""
    options = _options_of(call)
    selection = parse_selection(call.info, call.target.namespace, call.query)
    collection = state.store.collection(call.info.storage)
    selected = selection.current(collection)
    for stored in selected:
        # A deletion may cascade at once: look again.
        current = collection.get(stored.key)
        if current is not None:
            delete_object(state, call.info, current, options)
    return selected


def delete_object(
    state: ServerState, info: ResourceInfo, live: Stored, options: DeleteOptions
) -> Written:
    """Mark or remove an object; ``gone`` of the answer tells which."""
    check_delete_preconditions(info, live, options)
    if info.storage == NAMESPACES and live.name in _UNDELETABLE:
        raise forbidden(info, live.name, "this namespace may not be deleted")
    marked = _marked(state, info, live, options)
    gone = is_finished(info, marked)
    if options.dry_run:
        return Written(marked, None, gone=gone)
    if gone:
        state.store.delete(info.storage, live)
        # Only the graceful kind answers as if the object had been seen terminating.
        last = marked if info.storage == PODS else live.body
        return Written(last, None, gone=True)
    if marked == live.body:
        return Written(live.body, live)
    stored = state.store.replace(info.storage, live, marked)
    return Written(stored.body, stored)


def check_delete_preconditions(info: ResourceInfo, live: Stored, options: DeleteOptions) -> None:
    """Raise StatusError (409) unless the object is the one, and as, the deletion means it."""
    found = cast(str, live.metadata["resourceVersion"])
    if options.uid not in ("", live.uid):
        raise failed_precondition(info, live.name, "UID", wanted=options.uid, found=live.uid)
    if options.resource_version not in ("", found):
        raise failed_precondition(
            info, live.name, "ResourceVersion", wanted=options.resource_version, found=found
        )


def _marked(
    state: ServerState, info: ResourceInfo, live: Stored, options: DeleteOptions
) -> JSONObject:
    """Return the object as being deleted; equal to the live one if nothing changes."""
    meta = dict(live.metadata)
    body: JSONObject = {**live.body, "metadata": meta}
    meta["finalizers"] = _finalizers(live, options.propagation)
    drop_empty(meta)
    grace = _grace(info, live, options.grace)
    if not live.terminating:
        meta["deletionTimestamp"] = rfc3339(state.now() + timedelta(seconds=grace))
        if info.storage == NAMESPACES:
            body["status"] = {**_status_of(body), "phase": "Terminating"}
        elif info.storage == DEFINITIONS:
            meta["finalizers"] = with_cleanup(live.finalizers)
            body["status"] = terminating_status(state, _status_of(body))
        else:
            meta["deletionGracePeriodSeconds"] = grace
            if meta.get("generation"):
                bump_generation(meta)
    elif grace < cast(int, meta.get("deletionGracePeriodSeconds") or 0):
        _shorten(meta, grace)
    return body


def _finalizers(live: Stored, propagation: str) -> list[str]:
    if not propagation:
        return live.finalizers
    policies = _POLICY_FINALIZERS.values()
    wanted = _POLICY_FINALIZERS.get(propagation)
    kept = [f for f in live.finalizers if f not in policies or f == wanted]
    return kept if wanted is None or wanted in kept else [*kept, wanted]


def _grace(info: ResourceInfo, live: Stored, wanted: int | None) -> int:
    """Only a pod that runs on a node is given time; the kubelet then removes it."""
    if info.storage != PODS:
        return 0
    spec = cast(JSONObject, live.body.get("spec") or {})
    status = cast(JSONObject, live.body.get("status") or {})
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    if wanted is not None:
        return max(0, wanted)
    own = spec.get("terminationGracePeriodSeconds")
    return _DEFAULT_GRACE if own is None else max(0, cast(int, own))


def _shorten(meta: JSONObject, grace: int) -> None:
    """Count the shorter grace from when the deletion began."""
    before = cast(int, meta["deletionGracePeriodSeconds"])
    deadline = parse_rfc3339(cast(str, meta["deletionTimestamp"]))
    meta["deletionTimestamp"] = rfc3339(deadline - timedelta(seconds=before - grace))
    meta["deletionGracePeriodSeconds"] = grace


def _status_of(body: JSONObject) -> JSONObject:
    return cast(JSONObject, body.get("status") or {})


# Options ----------------------------------------------------------------------------------------


def _options_of(call: Call) -> DeleteOptions:
    """Read the options from the body, else from the query; dryRun from either."""
    query = call.query
    if not call.body:
        options = _options_in_query(call)
    else:
        options = delete_options_of(decode_object(call.body))
    if query.get("dryRun"):
        options = replace(options, dry_run=is_dry_run(query["dryRun"], _OPTIONS_KIND))
    return options


def _options_in_query(call: Call) -> DeleteOptions:
    query = call.query
    return DeleteOptions(
        grace=call.number("gracePeriodSeconds"),
        propagation=_propagation(
            query.get("propagationPolicy", ""), query.get("orphanDependents", "").lower()
        ),
        uid=query.get("uid", ""),
        # For a collection it belongs to the list.
        resource_version=query.get("resourceVersion", "") if call.target.name else "",
    )


def delete_options_of(document: JSONObject) -> DeleteOptions:
    """Read a DeleteOptions document. Raises StatusError (400, 422)."""
    if document.get("kind", "DeleteOptions") != "DeleteOptions":
        raise bad_request(f"expected DeleteOptions, got {document.get('kind')}")
    grace = document.get("gracePeriodSeconds")
    if grace is not None and (not isinstance(grace, int) or isinstance(grace, bool)):
        raise bad_request("gracePeriodSeconds must be an integer")
    preconditions = cast(JSONObject, document.get("preconditions") or {})
    orphan = document.get("orphanDependents")
    dry_run = cast("list[str]", document.get("dryRun") or [])
    return DeleteOptions(
        grace=grace,
        propagation=_propagation(
            str(document.get("propagationPolicy") or ""),
            "" if orphan is None else str(orphan).lower(),
        ),
        uid=str(preconditions.get("uid") or ""),
        resource_version=str(preconditions.get("resourceVersion") or ""),
        dry_run=any(is_dry_run(directive, _OPTIONS_KIND) for directive in dry_run),
    )


def _propagation(policy: str, orphan: str) -> str:
    if policy and orphan:
        why = "orphanDependents and deletionPropagation cannot be both set"
        raise invalid_options(_OPTIONS_KIND, wrong_value("propagationPolicy", policy, why))
    if orphan:
        return "Orphan" if orphan in ("true", "1", "t") else "Background"
    if policy and policy not in _POLICIES:
        cause = not_supported("propagationPolicy", policy, (*_POLICIES, "nil"))
        raise invalid_options(_OPTIONS_KIND, cause)
    return policy
