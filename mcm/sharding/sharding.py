"""One shard in one process: wires gate, marks, survey and shared duties to a manager's parts."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from mcm.api.core import LEASES, Lease
from mcm.client.errors import KubeError
from mcm.controllers.context import ControllerContext
from mcm.controllers.enqueue import enqueue, enqueue_changes
from mcm.controllers.runtime import Controller
from mcm.driver.services import Service
from mcm.metrics import once_per_registry
from mcm.sharding.gate import Gate
from mcm.sharding.hand_over import NAME, Marks, concerned_by, key_of
from mcm.sharding.metrics import ShardMetrics
from mcm.sharding.peers import Peers
from mcm.sharding.roots import DIVIDED, Roots
from mcm.sharding.shard import Shard
from mcm.sharding.shared_duties import SharedDuties
from mcm.sharding.survey import Survey
from mcm.workqueue import WorkQueue

log = logging.getLogger(__name__)

PERIOD: Final = 10.0
"""Seconds between two looks at the other shards' leases, and between two surveys."""
_PAGE: Final = 500
_WORKERS: Final = 10


@final
@dataclass(frozen=True)
class Sharding:
    """What a shard runs beside the controllers it shares out. Nothing runs yet."""

    controllers: Sequence[Controller]
    services: Mapping[str, Service]

    @classmethod
    def build(
        cls,
        us: Shard,
        ctx: ControllerContext,
        controllers: Sequence[Controller],
        duties: SharedDuties,
        *,
        lease: str,
    ) -> Sharding:
        """Stand before ``controllers``. ``lease`` is the base name of the shards' leases."""
        roots = Roots(ctx.control_informers)
        gate = Gate(us.name, roots, is_called=ctx.provider.is_called_for)
        gate.guard(controllers)
        duties.guard(controllers)
        peers = Peers(us.name, base=lease, period=PERIOD)
        metrics = once_per_registry(ctx.registry, ShardMetrics)
        metrics.info.labels(us.name, us.selector).set(1)
        queue = ctx.queue(NAME)
        marks = Marks(
            us, roots, gate, peers, reader=ctx.control,
            writer=ctx.control_informers.writer, clock=ctx.clock,
            handed_over=metrics.hand_overs.inc,
        )  # fmt: skip
        for resource in DIVIDED:
            informer = ctx.control_informers.informer(resource)
            enqueue_changes(queue, informer, concerned_by(resource.plural, roots))
            informer.add_handler(gate.marks_of(resource.plural))
        survey = Survey(us, roots, events=ctx.events, metrics=metrics, clock=ctx.clock)
        look = _Look(ctx, peers, survey, duties, roots, queue)
        made = ctx.controller(NAME, queue, marks.reconcile, workers=_WORKERS)
        return cls((made,), {"shared duties": duties.run, "shards": look.run})


@final
class _Look:
    """Reads the leases again and again, and what follows from them."""

    def __init__(
        self,
        ctx: ControllerContext,
        peers: Peers,
        survey: Survey,
        duties: SharedDuties,
        roots: Roots,
        queue: WorkQueue[str],
    ) -> None:
        self._ctx = ctx
        self._peers = peers
        self._survey = survey
        self._duties = duties
        self._roots = roots
        self._queue = queue

    async def run(self) -> None:
        """Look until cancelled. A server that does not answer is asked again."""
        clock, before = self._ctx.clock, object()
        while True:
            try:
                leases = await self._leases()
            except KubeError as error:
                log.warning("the other shards' leases cannot be read: %s", error)
            else:
                self._peers.look(leases, clock.monotonic())
                alive = self._peers.alive(clock.monotonic())
                if alive != before:
                    every = self._roots.every()
                    enqueue(self._queue, [key_of(p, obj.metadata.key) for p, obj in every])
                before = alive
                await self._survey.look(
                    known=self._peers.known,
                    alive=self._peers.not_gone(clock.monotonic()),
                    telling=self._duties.are_ours,
                )
            await clock.sleep(PERIOD)

    async def _leases(self) -> Sequence[Lease]:
        found: list[Lease] = []
        token = ""
        while True:
            page = await self._ctx.control.list_page(
                LEASES, namespace=self._ctx.namespace, limit=_PAGE, continue_token=token
            )
            found += page.items
            token = page.continue_token
            if not token:
                return found
