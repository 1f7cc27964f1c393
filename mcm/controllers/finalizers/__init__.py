"""Finalizers: putting ours on an object and taking it off, and keeping it there while in use.

:mod:`.changes` are the merge patches. :mod:`.in_use` keeps what others use (a class its machines, a
secret its classes) from being deleted under them, for any two kinds: one description of both gives
triggers, reconcile and workers. A finalizer goes only when it is certain that nobody uses the
object: while a user cannot be read, everything counts as used. Each write applies only to the
version seen. Knows no kind by name; owns no task and no connection.
"""

from __future__ import annotations

from mcm.controllers.finalizers.changes import finalizer_in_step, with_finalizer, without_finalizer
from mcm.controllers.finalizers.in_use import (
    InUse,
    InUseDecision,
    InUseReconciler,
    build_in_use,
    keeping,
    keys_of_user_change,
)

__all__ = [
    "InUse",
    "InUseDecision",
    "InUseReconciler",
    "build_in_use",
    "finalizer_in_step",
    "keeping",
    "keys_of_user_change",
    "with_finalizer",
    "without_finalizer",
]
