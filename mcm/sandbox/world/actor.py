"""What the controllers of the cluster have in common: a client of their own, a shared mirror."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import msgspec

from mcm.client.client import Client
from mcm.clock import Clock
from mcm.controllers.runtime import Controller, Outcome, TerminalError
from mcm.informers.factory import InformerFactory
from mcm.informers.writer import Writer
from mcm.workqueue import ExponentialLimiter, WorkQueue

_SOONEST_RETRY, _LATEST_RETRY = 0.05, 5.0


class Actor(ABC):
    """One queue of keys over ``mirror``, which all actors share and the world runs.

    ``client`` is the actor's own, so that the server counts who writes what. Subclasses add their
    handlers in ``__init__`` and reconcile one key at a time; they write through ``_writer`` only
    what differs from what they see, so an actor with nothing to do writes nothing.
    """

    name: ClassVar[str]
    workers: ClassVar[int] = 4

    def __init__(self, client: Client, mirror: InformerFactory, *, clock: Clock) -> None:
        self._client = client
        self._writer = Writer(client, mirror.stores_holding)
        self._clock = clock
        # An outage of the server must not keep the cluster idle for long after its end.
        limiter = ExponentialLimiter[str](base=_SOONEST_RETRY, cap=_LATEST_RETRY)
        self._queue: WorkQueue[str] = WorkQueue(self.name, clock=clock, limiter=limiter)
        self._controller = Controller(
            self.name, self._queue, self._guarded, workers=self.workers, clock=clock
        )

    async def run(self) -> None:
        """Act until cancelled; the mirror must be synced."""
        await self._controller.run()

    async def _guarded(self, key: str) -> Outcome:
        try:
            return await self._reconcile(key)
        except msgspec.ValidationError as error:
            # Somebody's template is not what its kind says: no retry makes it so.
            raise TerminalError(str(error)) from error

    @abstractmethod
    async def _reconcile(self, key: str) -> Outcome: ...
