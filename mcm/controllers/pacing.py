"""How often an owner is looked at whose many children change: no more often than it can afford.

A pass over an owner looks at all of its children. Were there one for each change of a child, N
changes would cost N² looks. So passes over a large owner keep a distance, in proportion to how many
children it has: the first change after a quiet time is looked at in the same moment, whatever comes
soon after a pass waits for the others. A small owner's never wait, and nothing waits longer than
:data:`LONGEST`. What people change on the owner itself is no matter for this.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, final

from mcm.clock import Clock
from mcm.controllers.runtime import Outcome

SMALL: Final = 64
"""So many children cost less than it takes to remember when they were looked at."""
PER_CHILD: Final = 0.0002
"""Seconds from one pass to the next, for each child: several times what a look at one takes."""
LONGEST: Final = 2.0
"""Seconds; what owners of 10,000 keep."""


def distance(children: int) -> float:
    """Return how many seconds lie between the beginnings of two passes over so many children."""
    return 0.0 if children <= SMALL else min(LONGEST, children * PER_CHILD)


@final
class Pacing:
    """The passes over owners of one kind. ``children`` tells how many the owner of a key has, and
    is cheap."""

    def __init__(self, clock: Clock, children: Callable[[str], int]) -> None:
        self._clock = clock
        self._children = children
        self._begun: dict[str, float] = {}

    def wait(self, key: str) -> float:
        """Return in how many seconds a change of the key's children is to be looked at."""
        begun = self._begun.get(key)
        if begun is None:
            return 0.0
        return max(0.0, begun + distance(self._children(key)) - self._clock.monotonic())

    def of(
        self, reconcile: Callable[[str], Awaitable[Outcome]]
    ) -> Callable[[str], Awaitable[Outcome]]:
        """Return ``reconcile``, whose passes count from now on."""

        async def paced(key: str) -> Outcome:
            if distance(self._children(key)):
                self._begun[key] = self._clock.monotonic()
            else:
                self._begun.pop(key, None)  # small, or gone
            return await reconcile(key)

        return paced
