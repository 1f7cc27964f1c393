"""One pass of a drain, decided: what to ask now, where every other pod stands, when to look again.

Pure: from a :class:`Situation` to a :class:`PassPlan`. A pass after a restart plans the same but
for what the record does not keep: then it may ask once more, of who has refused.
"""

from __future__ import annotations

from mcm.drain.plan.forced import plan_by_force
from mcm.drain.plan.gentle import plan_gently
from mcm.drain.plan.handovers import carried_on
from mcm.drain.plan.patience import GRACE_BUFFER, UNSEEN_FOR
from mcm.drain.plan.situation import PassPlan, Situation

__all__ = [
    "GRACE_BUFFER",
    "UNSEEN_FOR",
    "PassPlan",
    "Situation",
    "carried_on",
    "plan_by_force",
    "plan_gently",
]
