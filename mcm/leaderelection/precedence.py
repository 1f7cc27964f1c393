"""Which of several leases one candidate may take now: all or none, in a fixed order.

Every candidate looks at all leases all the time, so that those of a dead holder run out at once and
not one after the other. It takes the first only while nobody else holds a later one, and each later
one only while all before it are its own. So two candidates never wait for each other, and nobody
sits on a lease that another could use: where two processes of the Go original hold one each, and
one of them goes, its stand-by gets that lease; we begin when both have gone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class LeaseView:
    """One lease as its elector knows it: ``free_in`` is :meth:`.election.Election.free_in`."""

    held: bool
    free_in: float


def obstructed_for(views: Sequence[LeaseView], rank: int) -> float:
    """Return for how many seconds the other leases keep us from number ``rank``, as far as is
    known: 0 if they do not, infinity if only a change can tell. ``views`` are in order."""
    if not all(view.held for view in views[:rank]):
        return math.inf
    return max((view.free_in for view in views[rank + 1 :] if not view.held), default=0.0)
