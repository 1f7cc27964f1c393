"""Can we see? Where an API server is out of reach, what we hold of it may be long untrue.

Health limits run on what is observed. While a cluster is out of sight nobody is given up and
nothing is destroyed on our own motion; after a longer blindness the limits start anew, since nobody
knows how the machines fared meanwhile. No phase is invented for them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import final

from prometheus_client import CollectorRegistry, Gauge

from mcm.client.errors import KubeError, NotFound
from mcm.clock import Clock
from mcm.controllers.runtime import Outcome
from mcm.metrics import once_per_registry

logger = logging.getLogger(__name__)

PROBE_NAME = "mcm-api-health-probe"
"""The object asked for; that it does not exist is the answer wanted."""

Probe = Callable[[], Awaitable[object]]


@final
@dataclass(frozen=True, slots=True)
class Vision:
    """How well we can see. Health clocks start no earlier than ``clear_since`` (None: no bound)."""

    clear: bool = True
    clear_since: datetime | None = None


@final
class Eyesight:
    """The state machine: what the probes of one or two clusters say, and since when.

    ``blink`` is how many seconds without sight leave the clocks alone.
    """

    def __init__(self, *, blink: float) -> None:
        self._blink = blink
        self._blind_since: float | None = None
        self._vision = Vision()

    @property
    def vision(self) -> Vision:
        return self._vision

    def saw(self, *, now: datetime, monotonic: float) -> bool:
        """All clusters answered; tell whether clocks were restarted."""
        blind_since, self._blind_since = self._blind_since, None
        if blind_since is None or monotonic - blind_since < self._blink:
            self._vision = Vision(clear_since=self._vision.clear_since)
            return False
        self._vision = Vision(clear_since=now)
        return True

    def missed(self, *, monotonic: float) -> None:
        """A cluster did not answer. Destruction stops at once; only clocks allow for a blink."""
        if self._blind_since is None:
            self._blind_since = monotonic
        self._vision = Vision(clear=False, clear_since=self._vision.clear_since)


@final
class ApiHealth:
    """Probes the clusters; ``reconcile`` is the controller's body, with a single key.

    ``mirrors_troubled`` says what is wrong with the mirrors (empty: nothing), ``recovered`` is
    called when sight is back, for those whose clocks stood still.
    """

    def __init__(
        self,
        probes: Mapping[str, Probe],
        *,
        mirrors_troubled: Callable[[], Mapping[str, str]],
        recovered: Callable[[], None],
        timeout: float,
        period: float,
        clock: Clock,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self._probes = probes
        self._mirrors_troubled = mirrors_troubled
        self._recovered = recovered
        self._timeout = timeout
        self._period = period
        self._clock = clock
        self._eyes = Eyesight(blink=timeout)
        self._frozen = once_per_registry(registry, _frozen_gauge) if registry else None

    @property
    def vision(self) -> Vision:
        return self._eyes.vision

    async def reconcile(self, key: str) -> Outcome:
        """Look once; sooner again while something is wrong."""
        troubles = await self._look()
        was_clear = self._eyes.vision.clear
        monotonic = self._clock.monotonic()
        if troubles:
            self._eyes.missed(monotonic=monotonic)
            if was_clear:
                logger.warning("out of sight: destruction stops", extra={"troubles": troubles})
        else:
            restarted = self._eyes.saw(now=self._clock.now(), monotonic=monotonic)
            if not was_clear:
                logger.warning("in sight again", extra={"clocks_restarted": restarted})
                self._recovered()
        if self._frozen is not None:
            self._frozen.set(0 if self._eyes.vision.clear else 1)
        return Outcome(after=self._timeout / 5 if troubles else self._period, reason="api health")

    async def _look(self) -> Mapping[str, str]:
        names = tuple(self._probes)
        answers = await asyncio.gather(*(self._ask(self._probes[name]) for name in names))
        silent = {name: answer for name, answer in zip(names, answers, strict=True) if answer}
        return {**self._mirrors_troubled(), **silent}

    async def _ask(self, probe: Probe) -> str:
        try:
            async with asyncio.timeout(self._timeout):
                await probe()
        except NotFound:
            return ""
        except (KubeError, TimeoutError) as error:
            return f"{type(error).__name__}: {error}"
        return ""


def _frozen_gauge(registry: CollectorRegistry) -> Gauge:
    return Gauge(
        "mcm_machine_controller_frozen",
        "1 while an API server is out of sight and machines are not given up.",
        registry=registry,
    )
