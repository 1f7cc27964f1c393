"""Putting Deployments back that a drain had make a successor, ours or an earlier process's."""

from __future__ import annotations

import logging
from typing import Final, final

from mcm.client.errors import Forbidden, KubeError, NotFound
from mcm.controllers.context import ControllerContext
from mcm.controllers.runtime import DONE, Controller, Outcome
from mcm.drain.surge import Surges
from mcm.workqueue import INITIAL_PRIORITY, WorkQueue

log = logging.getLogger(__name__)

NAME: Final = "drainsurge"
ALL: Final = ""
"""The key under which all marked Deployments are looked for."""
_PERIOD: Final = 1800.0
"""Seconds between two looks for markers that others left: ours wake us by themselves."""
_WORKERS: Final = 2


@final
class SurgeSettling:
    """Keyed by Deployment, and by :data:`ALL`."""

    def __init__(self, surges: Surges, queue: WorkQueue[str]) -> None:
        self._surges = surges
        self._queue = queue

    async def reconcile(self, key: str) -> Outcome:
        """Look after one Deployment, or look for all of them."""
        if key == ALL:
            return await self._look_for_all()
        after = await self._surges.settle(key)
        return DONE if after is None else Outcome(after, "the pod is still to go")

    async def _look_for_all(self) -> Outcome:
        try:
            keys = await self._surges.find()
        except (Forbidden, NotFound) as error:
            # Who does not let us look at Deployments has no pod get a successor either.
            log.info("no Deployments can be looked at", extra={"error": _in_short(error)})
            keys = ()
        for key in keys:
            self._queue.add(key)
        return Outcome(_PERIOD, "until others may have left some")


def build(ctx: ControllerContext, queue: WorkQueue[str], surges: Surges) -> Controller:
    """Make the controller, and have it look for what earlier processes left."""
    queue.add(ALL, priority=INITIAL_PRIORITY)
    settling = SurgeSettling(surges, queue)
    return ctx.controller(NAME, queue, settling.reconcile, workers=_WORKERS)


def _in_short(error: KubeError) -> str:
    return str(error)[:200]
