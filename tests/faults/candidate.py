"""A process that contends for a lease and, while it leads, writes its identity into a ConfigMap.

The fence is wired as in the manager: one client for the lease, another, fenced, for all else.
Arguments, as JSON: see :class:`Task`. It ends by SIGTERM, giving the lease up.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import count
from typing import final

import msgspec

from mcm.api.meta import ApiStruct, ObjectMeta, Resource
from mcm.client.client import Client
from mcm.client.connection import ConnectionSpec, StaticToken, TLSSpec
from mcm.client.errors import KubeError
from mcm.client.http import HTTPTransport
from mcm.client.transport import Lane, Transport
from mcm.clock import Clock, SystemClock
from mcm.leaderelection import LeaderElector, LeadershipLost

NAMESPACE = "default"
LEASE = "candidates"
COUNTER = "counter"
LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD = 1.5, 1.0, 0.2
WRITE_PERIOD = 0.12


class ConfigMap(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    data: dict[str, str] = {}


CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", ConfigMap)


class Task(msgspec.Struct, frozen=True):
    """What a candidate is told: who it is, which server, and how wrong its wall clock is."""

    name: str
    server: str
    ca: str
    token: str
    skew: float = 0.0


@final
class SkewedClock:
    """A machine whose wall clock is ``skew`` seconds wrong."""

    def __init__(self, skew: float) -> None:
        self._sound = SystemClock()
        self._skew = timedelta(seconds=skew)

    def now(self) -> datetime:
        return self._sound.now() + self._skew

    def monotonic(self) -> float:
        return self._sound.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._sound.sleep(seconds)


@final
class Candidate:
    """One identity's contention, and the clients it has."""

    def __init__(self, identity: str, transport: Transport, *, clock: Clock) -> None:
        self.identity = identity
        lease_client = Client(transport, clock=clock, lane=Lane.LEASE, timeout=1.0)
        self.elector = LeaderElector(
            lease_client,
            name=LEASE,
            namespace=NAMESPACE,
            identity=identity,
            clock=clock,
            lease_duration=LEASE_DURATION,
            renew_deadline=RENEW_DEADLINE,
            retry_period=RETRY_PERIOD,
        )
        self._client = Client(transport, clock=clock, fence=self.elector.fence)
        self._clock = clock
        self._numbers = count(1)

    async def write_for_ever(self, period: float = WRITE_PERIOD) -> None:
        while True:
            with suppress(KubeError):
                await self.write()
            await self._clock.sleep(period)

    async def write(self) -> None:
        """Write once. There is no precondition on purpose: nothing but the fence holds it back."""
        data = {"writer": self.identity, "number": str(next(self._numbers))}
        await self._client.patch(CONFIG_MAPS, COUNTER, {"data": data}, namespace=NAMESPACE)


async def contend(task: Task) -> None:
    """Contend, again and again: after a loss as somebody new, as a restarted process is."""
    clock = SkewedClock(task.skew)
    spec = ConnectionSpec(
        task.server,
        tls=TLSSpec(ca_data=task.ca.encode()),
        credentials=StaticToken(task.token),
    )
    transport = HTTPTransport(spec, clock=clock)
    try:
        for life in count(1):
            candidate = Candidate(f"{task.name}{life}", transport, clock=clock)
            with suppress(LeadershipLost):
                await candidate.elector.run(candidate.write_for_ever)
    finally:
        await transport.aclose()


async def _main() -> None:
    running = asyncio.ensure_future(contend(msgspec.json.decode(sys.argv[1], type=Task)))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    with suppress(asyncio.CancelledError):
        await running


if __name__ == "__main__":
    asyncio.run(_main())
