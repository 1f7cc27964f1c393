"""Merge patches that apply to the object they were computed for, or not at all.

A patch without precondition would also hit an object which was deleted and made anew under the
same name. Where somebody else's write would have changed the decision, or a list is replaced whole
(finalizers, conditions, taints, owner references), the version seen is a precondition as well; the
server then answers Conflict, and the runtime reconciles again.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcm.api.meta import JSONObject, ObjectMeta


def for_this_object(meta: ObjectMeta, change: Mapping[str, object]) -> JSONObject:
    """Bind ``change`` to the UID of the object it is meant for."""
    return _bound(change, {"uid": meta.uid})


def for_this_version(meta: ObjectMeta, change: Mapping[str, object]) -> JSONObject:
    """Bind ``change`` to the UID and the resource version that were read."""
    return _bound(change, {"uid": meta.uid, "resourceVersion": meta.resource_version})


def _bound(change: Mapping[str, object], precondition: Mapping[str, str]) -> JSONObject:
    metadata = change.get("metadata")
    inner = metadata if isinstance(metadata, Mapping) else {}
    return {**change, "metadata": {**inner, **precondition}}
