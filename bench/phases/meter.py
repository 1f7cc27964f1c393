"""Measures one phase: what was asked of the server, what the manager used, how long it took."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, final

from bench.clusters.counting import CountingTransport
from bench.clusters.raw_rates import RawRates
from bench.clusters.requests import Counts, Kind, read_counts
from bench.managers.process import ManagerProcess
from bench.managers.queues import QueueDepths
from bench.managers.usage import Usage, usage_of
from bench.phases.reactions import ANSWERED_BY_ONE_WRITE, delays
from bench.phases.results import Phase
from bench.phases.view import FleetView
from mcm.client.client import Client

_QUIET_FOR: Final = 1.0
_QUIET_WITHIN: Final = 20.0
_LOOKS_EVERY: Final = 0.5


@final
@dataclass(frozen=True, slots=True)
class Moment:
    """What had been used and asked until then; ``counts`` without what the bench itself sent."""

    at: float
    usage: Usage
    cpu_seconds: Mapping[str, float]
    counts: Counts
    everything: Counts


@final
@dataclass(frozen=True, slots=True)
class Measured:
    """A phase before the raw rates are known. ``up_to_done``: all requests, the bench's too."""

    phase: Phase
    up_to_done: Mapping[Kind, int]

    def rated(self, rates: RawRates | None) -> Phase:
        """Return the phase with its efficiency."""
        if rates is None:
            return self.phase
        share = rates.seconds_for(self.up_to_done) / self.phase.seconds
        return replace(self.phase, efficiency=round(share, 3))


@final
class Meter:
    """Of one manager at one server that ``client`` reads, whose requests ``sent`` counts;
    ``servers`` are the server's processes, if they are known."""

    def __init__(
        self,
        client: Client,
        sent: CountingTransport,
        view: FleetView,
        manager: ManagerProcess,
        queues: QueueDepths,
        *,
        servers: Sequence[int],
    ) -> None:
        self._client = client
        self._sent = sent
        self._view = view
        self._manager = manager
        self._queues = queues
        self._servers = servers

    async def measure(
        self,
        name: str,
        machines: int,
        act: Callable[[], Awaitable[None]],
        done: Callable[[], bool],
        *,
        within: float,
    ) -> Measured:
        """Act, wait until it is done and nothing more is written, and tell what it cost."""
        self._manager.forget_peak()
        self._view.reactions.taken()
        before = await self._moment()
        began = time.monotonic()
        await act()
        await self._view.until(done, within=within, check=self._manager.check, what=name)
        over = time.monotonic()
        reached = await self._moment()
        quiet = await self._quiet(reached)
        return self._told(name, machines, began, over, before, reached, quiet)

    async def _quiet(self, latest: Moment) -> Moment:
        """Wait until the manager has written nothing for a second; leases and events aside."""
        deadline = time.monotonic() + _QUIET_WITHIN
        since = time.monotonic()
        while time.monotonic() < min(deadline, since + _QUIET_FOR):
            await asyncio.sleep(_LOOKS_EVERY)
            self._manager.check()
            found = await self._moment()
            if found.counts.own_writes() != latest.counts.own_writes():
                since = time.monotonic()
            latest = found
        return latest

    async def _moment(self) -> Moment:
        usage = self._manager.usage()
        cpu = {
            "manager": usage.cpu_seconds,
            "server": usage_of(self._servers).cpu_seconds,
            "bench": time.process_time(),
        }
        text = (await self._client.get_raw("/metrics")).decode()
        everything = read_counts(text)
        counts = everything.without(self._sent.sent)
        return Moment(time.monotonic(), usage, cpu, counts, everything)

    def _told(
        self,
        name: str,
        machines: int,
        began: float,
        over: float,
        before: Moment,
        reached: Moment,
        quiet: Moment,
    ) -> Measured:
        counts = quiet.counts.since(before.counts)
        everybodys = quiet.everything.since(before.everything).writes()
        own, events = sum(counts.own_writes().values()), sum(counts.events().values())
        writes = {str(kind): n for kind, n in sorted(counts.all.items()) if kind.writes}
        seconds = over - began
        at_the_server = {
            kind: n
            for kind, n in reached.everything.since(before.everything).all.items()
            if kind.writes or kind.verb == "GET"
        }
        written = sum(n for kind, n in at_the_server.items() if kind.writes)
        cpu = quiet.usage.cpu_seconds - before.usage.cpu_seconds
        reactions = self._view.reactions.taken()
        single = [s for what in ANSWERED_BY_ONE_WRITE for s in reactions.get(what, ())]
        found = ((what, delays(times)) for what, times in sorted(reactions.items()))
        phase = Phase(
            name=name,
            machines=machines,
            seconds=round(seconds, 3),
            writes=writes,
            reads={str(kind): n for kind, n in sorted(counts.own_reads().items())},
            own_writes=own,
            own_writes_a_machine=round(own / machines, 3),
            events_a_machine=round(events / machines, 3),
            all_writes_a_machine=round(sum(everybodys.values()) / machines, 3),
            refused=counts.own_refused(),
            requests=sum(at_the_server.values()),
            writes_a_second=round(written / seconds, 1),
            cpu_seconds=round(cpu, 2),
            cpu_milliseconds_a_machine=round(1000 * cpu / machines, 2),
            cpu_seconds_until_done={
                who: round(seconds - before.cpu_seconds[who], 2)
                for who, seconds in reached.cpu_seconds.items()
            },
            peak_resident_bytes=quiet.usage.peak_bytes,
            efficiency=None,
            event_to_write=delays(single),
            reactions={what: each for what, each in found if each is not None},
            queue_depth=self._queues.between(began, quiet.at),
        )
        return Measured(phase, at_the_server)
