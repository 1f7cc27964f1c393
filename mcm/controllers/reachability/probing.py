"""Asking the API servers, and telling whoever waited once they answer again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import final

from prometheus_client import CollectorRegistry, Gauge

from mcm.client.errors import KubeError, NotFound
from mcm.clock import Clock
from mcm.controllers.reachability.state import Reachability, ReachabilityState, no_earlier_than
from mcm.controllers.runtime import Outcome
from mcm.metrics import once_per_registry

logger = logging.getLogger(__name__)

PROBE_NAME = "mcm-api-health-probe"
"""The object asked for; that it does not exist is the answer wanted."""

Probe = Callable[[], Awaitable[object]]


@final
class ReachabilityProbe:
    """Probes the clusters; ``reconcile`` is the controller's body, with a single key.

    ``mirrors_troubled`` says what is wrong with the mirrors (empty: nothing), ``recovered`` is
    called when all are reachable again, for those whose timeouts stood still. ``led_since`` tells
    when a time ended in which no process led, and so none observed.
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
        led_since: Callable[[], datetime | None] = lambda: None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self._probes = probes
        self._mirrors_troubled = mirrors_troubled
        self._recovered = recovered
        self._timeout = timeout
        self._period = period
        self._clock = clock
        self._led_since = led_since
        self._state = ReachabilityState(tolerance=timeout)
        self._frozen = once_per_registry(registry, _frozen_gauge) if registry else None

    @property
    def reachability(self) -> Reachability:
        return no_earlier_than(self._state.reachability, self._led_since())

    async def reconcile(self, key: str) -> Outcome:
        """Ask once; sooner again while something is wrong."""
        troubles = await self._ask_all()
        was_reachable = self.reachability.reachable
        monotonic = self._clock.monotonic()
        if troubles:
            only_target = all(name.partition("/")[0] == "target" for name in troubles)
            self._state.missed(monotonic=monotonic, only_target=only_target)
            if was_reachable:
                logger.warning(
                    "API server unreachable: machines are frozen", extra={"troubles": troubles}
                )
        else:
            restarted = self._state.answered(now=self._clock.now(), monotonic=monotonic)
            if not was_reachable:
                logger.warning("API servers reachable again", extra={"timeouts_reset": restarted})
                self._recovered()
        if self._frozen is not None:
            self._frozen.set(0 if self.reachability.reachable else 1)
        again = self._timeout / 5 if troubles else self._period
        return Outcome(after=again, reason="API server reachability")

    async def _ask_all(self) -> Mapping[str, str]:
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
        "1 while an API server is out of reach and machines are not given up.",
        registry=registry,
    )
