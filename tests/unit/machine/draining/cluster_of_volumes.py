"""Kubelets and attachers that a test plays: pods end, their volumes leave and arrive elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec

from mcm.api.core import PODS, Pod
from mcm.drain.volumes import claims_of
from tests.unit.machine.bench import NAMESPACE, Bench

_LOOK_EVERY = 0.05


@dataclass
class ClusterOfVolumes:
    """``ends``: how long a pod takes to end, by its name; else ``grace``. All in seconds.

    What happened when is in ``asked``, ``gone`` and ``attached``, by pod and by claim.
    """

    bench: Bench
    grace: float = 3.0
    detach: float = 0.6
    attach: float = 5.0
    ends: dict[str, float] = field(default_factory=dict)
    keeps_volumes: bool = False
    """They stay where they are: other pods use them."""
    asked: dict[str, float] = field(default_factory=dict)
    gone: dict[str, float] = field(default_factory=dict)
    attached: dict[str, float] = field(default_factory=dict)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ClusterOfVolumes]:
        async with asyncio.TaskGroup() as group:
            looking = group.create_task(self._look(group))
            yield self
            looking.cancel()

    async def _look(self, group: asyncio.TaskGroup) -> None:
        while True:
            for raw in self.bench.objects(PODS):
                pod = msgspec.convert(raw, Pod)
                name = pod.metadata.name
                if pod.metadata.deletion_timestamp is not None and name not in self.asked:
                    self.asked[name] = self.bench.clock.monotonic()
                    group.create_task(self._hand_over(pod))
            await self.bench.clock.sleep(_LOOK_EVERY)

    async def _hand_over(self, pod: Pod) -> None:
        bench, name = self.bench, pod.metadata.name
        await bench.clock.sleep(self.ends.get(name, self.grace))
        await bench.client.delete(PODS, name, namespace=NAMESPACE, grace_period_seconds=0)
        self.gone[name] = bench.clock.monotonic()
        for use in claims_of(pod) if not self.keeps_volumes else ():
            claim = use.key.partition("/")[2]
            await bench.clock.sleep(self.detach)
            await bench.detach(claim)
            await bench.clock.sleep(self.attach)
            await bench.attached_to(claim, "elsewhere")
            self.attached[claim] = bench.clock.monotonic()
