"""The changes that put a finalizer on an object or take it off; others' finalizers stay."""

from __future__ import annotations

from mcm.api.meta import JSONObject, ObjectMeta
from mcm.controllers.preconditions import for_this_version


def with_finalizer(meta: ObjectMeta, finalizer: str) -> JSONObject | None:
    """Return the change that adds ``finalizer``; None if it is there."""
    if finalizer in meta.finalizers:
        return None
    return {"metadata": {"finalizers": sorted({*meta.finalizers, finalizer})}}


def without_finalizer(meta: ObjectMeta, finalizer: str) -> JSONObject | None:
    """Return the change that removes ``finalizer``; None if it is not there."""
    if finalizer not in meta.finalizers:
        return None
    return {"metadata": {"finalizers": [f for f in meta.finalizers if f != finalizer]}}


def finalizer_in_step(meta: ObjectMeta, finalizer: str, *, used: bool) -> JSONObject | None:
    """Return the patch that keeps a used object or lets an unused one go; None if it is so.

    An object on its way out takes no new finalizer: the API server would refuse it.
    """
    if not used:
        change = without_finalizer(meta, finalizer)
    elif meta.deletion_timestamp is None:
        change = with_finalizer(meta, finalizer)
    else:
        change = None
    return None if change is None else for_this_version(meta, change)
