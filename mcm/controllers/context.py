"""What every controller is built from: one object per process and set of clusters."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, final

from prometheus_client import CollectorRegistry

from mcm.api.meta import T
from mcm.client.verbs import ObjectClient
from mcm.clock import Clock
from mcm.controllers.loop_turns import LoopTurns
from mcm.controllers.runtime import Controller, Outcome
from mcm.controllers.runtime_metrics import ControllerMetrics
from mcm.controllers.settings import ControllerSettings
from mcm.events import EventSink, EventType
from mcm.metrics import once_per_registry
from mcm.tracing import NO_TRACES, Tracer
from mcm.workqueue import QueueMetrics, WorkQueue

if TYPE_CHECKING:
    from mcm.controllers.provider import Provider
    from mcm.informers.factory import InformerFactory
    from mcm.informers.informer import Informer


@final
@dataclass(frozen=True, kw_only=True)
class ControllerContext:
    """Passed to the ``build(ctx)`` of each controller package, which makes queues, registers
    handlers and returns its controllers; nothing runs before the caller runs them.

    *control* is the cluster that holds the machine objects, *target* the one the machines join
    (None: no target cluster, then there are no nodes to look at). ``random`` is the only source of
    chance, so that a simulation can seed it. ``led_since`` tells when a time ended in which nobody
    led (:mod:`mcm.leaderelection.continuity`).
    """

    control: ObjectClient
    target: ObjectClient | None
    control_informers: InformerFactory
    target_informers: InformerFactory | None
    namespace: str
    clock: Clock
    events: EventSink
    provider: Provider
    options: ControllerSettings
    registry: CollectorRegistry
    random: random.Random
    led_since: Callable[[], datetime | None] = lambda: None
    tracer: Tracer = NO_TRACES

    @cached_property
    def turns(self) -> LoopTurns:
        """What all controllers of this process keep to, so that the loop turns."""
        return LoopTurns(self.clock)

    def queue(self, name: str) -> WorkQueue[str]:
        """Return a new queue that reports under ``name``."""
        metrics = once_per_registry(self.registry, QueueMetrics)
        return WorkQueue(name, clock=self.clock, metrics=metrics)

    def controller(
        self,
        name: str,
        queue: WorkQueue[str],
        reconcile: Callable[[str], Awaitable[Outcome]],
        *,
        workers: int,
        regards: Informer[T] | None = None,
    ) -> Controller:
        """Return a new controller that reports under ``name``. ``regards`` mirrors what its keys
        are keys of: on those objects people are told what a reconcile cannot tell itself."""
        made = Controller(
            name,
            queue,
            reconcile,
            workers=workers,
            clock=self.clock,
            metrics=once_per_registry(self.registry, ControllerMetrics),
            warn=self._warn_on(regards) if regards is not None else None,
            tracer=self.tracer,
            turns=self.turns,
        )
        if regards is not None:
            made.regards, made.known_keys = regards.resource.plural, regards.store.keys
        return made

    def _warn_on(self, informer: Informer[T]) -> Callable[[str, str, str], None]:
        def warn(key: str, reason: str, note: str) -> None:
            obj = informer.store.get(key)
            if obj is not None:
                self.events.event(informer.resource, obj, EventType.WARNING, reason, note)

        return warn
