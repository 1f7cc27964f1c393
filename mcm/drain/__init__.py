"""The drain engine: what to do about the pods of a node that is about to go.

A drain is a record, not a task: its start, absolute deadline and mode are the machine's, the pods
are the cluster's. :func:`plan` turns a :class:`Snapshot` into requests to make now and the time at
which to look again; :func:`execute` makes them. Neither waits for a pod. A pass may be cancelled at
any await and repeated by anyone: each request bears the pod's UID, and asking twice is harmless.

What is promised: DaemonSet and mirror pods stay, and what a label spares; the others leave wave by
wave (:mod:`mcm.drain.selection`), pods without volumes at once, those with volumes one after the
other, highest priority first; budgets are honoured until the mode says force
(a label, the deadline, or a Node dead for five minutes); a forced pass waits for nothing.
"""

from __future__ import annotations

from mcm.drain.budgets import BudgetView, Obstacle, ObstacleKind, is_misconfigured, view_for
from mcm.drain.execution import Action, Attempt, Attempts, Refusal, Verb, execute
from mcm.drain.marks import cordon_patch, terminating_patch
from mcm.drain.mode import Force, Mode, go_bool, mode_of
from mcm.drain.plan import Plan, Snapshot, plan, stuck
from mcm.drain.selection import Arrangement, WaveSettings, arrange, must_go

__all__ = [
    "Action",
    "Arrangement",
    "Attempt",
    "Attempts",
    "BudgetView",
    "Force",
    "Mode",
    "Obstacle",
    "ObstacleKind",
    "Plan",
    "Refusal",
    "Snapshot",
    "Verb",
    "WaveSettings",
    "arrange",
    "cordon_patch",
    "execute",
    "go_bool",
    "is_misconfigured",
    "mode_of",
    "must_go",
    "plan",
    "stuck",
    "terminating_patch",
    "view_for",
]
