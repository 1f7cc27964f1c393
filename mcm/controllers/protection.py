"""Finalizers that keep an object for as long as others use it."""

from __future__ import annotations

from mcm.api.meta import JSONObject, ObjectMeta
from mcm.controllers.preconditions import for_this_version, with_finalizer, without_finalizer


def protection_patch(meta: ObjectMeta, finalizer: str, *, used: bool) -> JSONObject | None:
    """Return the patch that protects a used object or releases an unused one; None if it is so.

    An object on its way out takes no new finalizer: the API server would refuse it.
    """
    if not used:
        change = without_finalizer(meta, finalizer)
    elif meta.deletion_timestamp is None:
        change = with_finalizer(meta, finalizer)
    else:
        change = None
    return None if change is None else for_this_version(meta, change)
