"""Several leases as one: contended for together, and one fence, as what acts needs them all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import NoReturn, final

from mcm.leaderelection.elector import LeaderElector
from mcm.leaderelection.precedence import LeaseView, obstructed_for


@final
class AllLeases:
    """A :class:`mcm.fence.Fence` that is open while every elector leads (and if there is none).

    The electors are in their order of precedence (:mod:`.precedence`), and contend for nothing but
    these leases.
    """

    def __init__(self, electors: Sequence[LeaderElector]) -> None:
        self._electors = tuple(electors)
        self._complete = False

    @property
    def names(self) -> tuple[str, ...]:
        """The leases, in their order of precedence."""
        return tuple(elector.name for elector in self._electors)

    def check(self) -> None:
        """Raise LeadershipLost for the first lease that is not ours."""
        for elector in self._electors:
            elector.fence()

    def time_left(self) -> float:
        """Return the seconds until the first lease must have been renewed."""
        return min((elector.time_left() for elector in self._electors), default=math.inf)

    def led_since(self) -> datetime | None:
        """Return when the last long break ended in which not all leases were held; None if none is
        known. To be asked while all are held."""
        moments = (elector.led_since for elector in self._electors)
        return max((moment for moment in moments if moment is not None), default=None)

    async def hold(self, name: str, won: Callable[[], None]) -> NoReturn:
        """Contend for one of the leases, call ``won``, and renew it until it is lost.

        To be called for all of them at once. As long as not all were held, a lease that stands in
        another's way is given up again; once they were, the loss of one is for good. Raises
        LeadershipLost. Does not release (:meth:`release`).
        """
        rank = self.names.index(name)
        await self._electors[rank].hold(
            won,
            obstructed=partial(self._obstructed, rank),
            changed=partial(self._changed, rank),
        )

    async def release(self, name: str) -> None:
        """Give one lease up if the record names us; a server that refuses is only logged."""
        await self._electors[self.names.index(name)].release()

    def _obstructed(self, rank: int) -> float:
        """Return for how many seconds the other leases forbid this one."""
        self._complete = self._complete or all(elector.is_leading for elector in self._electors)
        if self._complete:
            return 0.0  # work goes on under them: none is given up before that has ended
        views = [LeaseView(e.is_leading, e.free_in) for e in self._electors]
        return obstructed_for(views, rank)

    def _changed(self, rank: int) -> None:
        for other, elector in enumerate(self._electors):
            if other != rank:
                elector.look_now()
