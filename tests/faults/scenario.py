"""One scenario: an informer mirrors machines through a faulty proxy while others change them."""

from __future__ import annotations

import asyncio
import random as randomness
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Self, final

from mcm.api.crds import crd_manifests
from mcm.api.machine import MACHINES, Machine
from mcm.api.meta import JSONObject
from mcm.client.client import Client
from mcm.client.connection import ConnectionSpec, StaticToken, TLSSpec
from mcm.client.http import HTTPTransport
from mcm.client.retry import RetryPolicy
from mcm.clock import Clock, SystemClock
from mcm.informers import Informer, InformerFactory, ReflectorOptions, Writer
from mcm.sandbox.apiserver.front.http import Certificates, serve_https
from mcm.sandbox.apiserver.server import ApiServer, ServerSettings
from mcm.sandbox.cluster import create_all
from mcm.simulation.faults import FaultPlan
from mcm.simulation.transport import FaultyTransport
from mcm.workqueue.backoff import Backoff
from tests.faults.chronicle import Chronicle, Replay
from tests.faults.harm import Exchange, Fate
from tests.faults.proxy import FaultyProxy
from tests.faults.weather import Weather
from tests.faults.wire import ReservedPort, Upstream
from tests.faults.workload import NAMESPACE, Workload

PATIENCE = 15.0
"""Seconds after the last fault in which the mirror must agree. What the client's own limits add up
to is below two (a silence, a request's timeout, a Retry-After); the rest is for a busy machine."""

_POLL = 0.01
_NAMESPACE: JSONObject = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": NAMESPACE},
}
_INDEXES: dict[str, Callable[[Machine], Iterable[str]]] = {
    "class": lambda machine: (machine.spec.class_.name,),
    "node": lambda machine: (machine.node_name,) if machine.node_name else (),
    "finalizer": lambda machine: machine.metadata.finalizers,
}


@final
@dataclass(frozen=True, slots=True)
class Security:
    """TLS settings made once for all scenarios."""

    certificates: Certificates
    serving: ssl.SSLContext
    trusting: ssl.SSLContext

    @classmethod
    def of(cls, certificates: Certificates) -> Self:
        trusting = ssl.create_default_context(cadata=certificates.ca.decode())
        return cls(certificates, certificates.server_context(), trusting)


@final
@dataclass(slots=True)
class Result:
    """``problems`` is empty if all is well; ``seconds`` is how long it took the mirror to agree
    once the faults had ended."""

    seed: int
    story: list[str]
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0
    writes: int = 0
    changes: int = 0
    exchanges: int = 0

    def told(self) -> str:
        return "\n  ".join([f"seed {self.seed}:", *self.story, *(f"!! {p}" for p in self.problems)])


async def run_scenario(seed: int, security: Security) -> Result:
    """Live through the scenario of a seed and say what came of it."""
    async with AsyncExitStack() as stack:
        scenario = _Scenario(seed, security)
        await scenario.set_up(stack)
        await scenario.storm()
        await scenario.calm()
        return scenario.result


@final
class _Front:
    """The server's door, on one port for all its lives."""

    def __init__(self, server: ApiServer, certificates: Certificates) -> None:
        self.port = ReservedPort()
        self._server = server
        self._certificates = certificates
        self._open = AsyncExitStack()

    async def start(self) -> None:
        served = serve_https(self._server, certificates=self._certificates, port=self.port.number)
        await self._open.enter_async_context(served)

    async def stop(self) -> None:
        await self._open.aclose()

    async def close(self) -> None:
        await self.stop()
        self.port.close()


@final
class _Scenario:
    def __init__(self, seed: int, security: Security) -> None:
        self._chance = randomness.Random(f"{seed} scenario")
        self._own = self._chance.random() < 0.6
        self._clock: Clock = SystemClock()
        self._security = security
        self._began = self._clock.monotonic()
        self._weather = Weather(seed)
        self.result = Result(seed, [f"weather: {self._weather}"])
        self._server = ApiServer(
            clock=self._clock,
            random=randomness.Random(seed),
            settings=self._settings(),
            window=self._chance.choice((8, 64, 4096)),
        )
        self._front = _Front(self._server, security.certificates)
        self._encrypted = self._chance.random() < 0.3
        self._proxy = FaultyProxy(
            Upstream(self._front.port.number, security.trusting),
            fate_of=self._fate_of,
            random=randomness.Random(f"{seed} pieces"),
            tls=security.serving if self._encrypted else None,
        )
        self._chronicle = Chronicle(self._server)
        self._replay = Replay(self._chronicle)

    # ---- making it -----------------------------------------------------------------------------

    def _settings(self) -> ServerSettings:
        chance = self._chance
        return ServerSettings(
            bookmark_period=chance.choice((0.05, 0.1, 60.0)),
            fresh_wait=0.05,
            expired_watch_as_http=chance.random() < 0.5,
            managed_fields=False,
            raise_bugs=True,
            # Two lists in a row that lag behind an own delete bring the object back for a moment:
            # with such a server, writes are somebody else's here.
            read_lag=0 if self._own else chance.choice((0, 0, 3)),
            watch_buffer=chance.choice((16, 4096)),
        )

    def _options(self) -> ReflectorOptions:
        """The defaults' proportions, with about a hundred and fiftieth of their times. Not less: to
        open a watch takes a dozen turns of a loop that other scenarios share."""
        chance = self._chance
        return ReflectorOptions(
            page_size=chance.choice((3, 500)),
            streamed_lists=chance.random() < 0.4,
            shortest_watch=1,
            longest_watch=2,
            silence=0.5,
            backoff_base=0.005,
            backoff_cap=0.1,
            steady=0.15,
            brief=0.01,
        )

    async def set_up(self, stack: AsyncExitStack) -> None:
        """Start everything; the stack ends it."""
        await create_all(self._server, [*crd_manifests(), _NAMESPACE])
        stack.push_async_callback(self._front.close)
        await self._front.start()
        await stack.enter_async_context(self._proxy.running())
        client = self._client()
        stack.push_async_callback(client.aclose)
        factory = InformerFactory(
            client,
            clock=self._clock,
            namespace=NAMESPACE,
            options=self._options(),
            randomness=randomness.Random(self.result.seed),
        )
        self._informer: Informer[Machine] = factory.informer(MACHINES)
        for name, function in _INDEXES.items():
            self._informer.store.add_index(name, function)
        self._informer.add_handler(self._replay)
        self._workloads = [self._workload(n, factory) for n in range(self._chance.randint(1, 2))]
        await self._workloads[0].burst(self._chance.choice((0, 20)))
        await stack.enter_async_context(_background(factory.run()))

    def _client(self) -> Client:
        certificates = self._security.certificates
        spec = ConnectionSpec(
            self._proxy.url,
            tls=TLSSpec(ca_data=certificates.ca) if self._encrypted else TLSSpec(),
            credentials=StaticToken(certificates.token),
        )
        return Client(
            HTTPTransport(spec, clock=self._clock),
            clock=self._clock,
            timeout=0.6,
            budget=1.5,
            retry=RetryPolicy(retries=2, backoff=Backoff(0.005, 0.02), least_attempt=0.05),
            random=randomness.Random(self.result.seed),
        )

    def _workload(self, number: int, factory: InformerFactory) -> Workload:
        """Some of those who write feed their answers to the store, as our controllers do: ahead of
        the watch or behind it, and sometimes not at all, as the answer is lost."""
        chance = randomness.Random(f"{self.result.seed} workload {number}")
        faults = FaultPlan(random=chance)
        faults.delay(0.0, back=(0.0, 0.02), probability=0.5)
        faults.lose_answers(probability=0.05)
        client = Client(FaultyTransport(self._server, faults), clock=self._clock)
        own = self._own and chance.random() < 0.7
        verbs = Writer(client, factory.stores_holding) if own else client
        return Workload(verbs, clock=self._clock, random=chance)

    # ---- living it -----------------------------------------------------------------------------

    async def storm(self) -> None:
        """Write, break connections, and strike, all at once. What is to happen is counted, not
        timed: on a busy machine it takes longer, and is no less."""
        async with asyncio.TaskGroup() as group:
            for workload in self._workloads:
                group.create_task(workload.go_on(self._chance.randint(25, 50)))
            for _ in range(self._chance.randint(2, 6)):
                await self._clock.sleep(self._chance.uniform(0.01, 0.08))
                await self._strike()

    async def _strike(self) -> None:
        """Let something happen to all connections at once, or to the server itself."""
        match self._chance.randrange(7):
            case 0:
                await self._restart(compacted=False)
            case 1:
                await self._restart(compacted=True)
            case 2:
                self._server.store.compact()
                self._tell("history compacted")
            case 3 | 4:
                self._tell(f"cut {self._proxy.cut_all()} connections")
            case 5:
                self._proxy.refuse()
                self._tell(f"refusing; cut {self._proxy.cut_all()} connections")
                await self._clock.sleep(self._chance.uniform(0.0, 0.05))
                await self._proxy.accept()

    async def _restart(self, *, compacted: bool) -> None:
        await self._front.stop()
        if compacted:
            self._server.store.compact()
        await self._clock.sleep(self._chance.choice((0.0, 0.03)))
        await self._front.start()
        self._tell(f"server restarted{', history compacted' if compacted else ''}")

    async def calm(self) -> None:
        """End the faults, write a little more, and wait for the mirror."""
        self._proxy.calm = True
        self._tell("calm")
        since = self._clock.monotonic()
        for workload in self._workloads:
            await workload.burst(3)
        while not self._agrees() and self._clock.monotonic() < since + PATIENCE:
            await self._clock.sleep(_POLL)
        result, stats = self.result, self._informer.stats
        result.seconds = self._clock.monotonic() - since
        result.writes, result.changes = self._chronicle.writes, self._replay.changes
        result.exchanges = self._proxy.exchanges
        self._tell(f"agreed or given up after {result.seconds:.3f} s; {stats}")
        result.problems += self._problems()

    def _agrees(self) -> bool:
        mirrored = {
            m.metadata.key: m.metadata.resource_version for m in self._informer.store.list()
        }
        return self._informer.synced and mirrored == self._chronicle.versions()

    def _problems(self) -> list[str]:
        machines = self._chronicle.machines()
        mirrored = {m.metadata.key: m for m in self._informer.store.list()}
        found = list(self._replay.objections)
        found += [
            f"{key}: {_brief(mirrored.get(key))}, not {_brief(machines.get(key))}"
            for key in sorted(machines.keys() | mirrored.keys())
            if machines.get(key) != mirrored.get(key)
        ]
        if not self._replay.equals(machines):
            found.append("the handler's replay is not what the server has")
        found += [f"index {name} is wrong" for name in _INDEXES if not self._index_fits(name)]
        if self._informer.stats.handler_errors:
            found.append("the handler failed")
        if not self._replay.changes or self._chronicle.writes < 20:
            found.append("nothing to speak of has happened")
        if not self._informer.synced:
            found.append("never synced")
        return found

    def _index_fits(self, name: str) -> bool:
        wanted: dict[str, set[str]] = defaultdict(set)
        for key, machine in self._chronicle.machines().items():
            for value in _INDEXES[name](machine):
                wanted[value].add(key)
        store = self._informer.store
        held = {
            value: {machine.metadata.key for machine in store.by_index(name, value)}
            for value in store.index_values(name)
        }
        return held == wanted

    # ---- telling it ----------------------------------------------------------------------------

    def _fate_of(self, exchange: Exchange) -> Fate:
        fate = self._weather.fate_of(exchange)
        self._tell(f"#{exchange.number} {exchange.target.partition('?')[2]}: {fate}")
        return fate

    def _tell(self, what: str) -> None:
        self.result.story.append(f"{self._clock.monotonic() - self._began:.3f} {what}")


def _brief(machine: Machine | None) -> str:
    if machine is None:
        return "absent"
    return f"{machine.metadata.uid[:8]} at {machine.metadata.resource_version}"


@asynccontextmanager
async def _background(work: object) -> AsyncIterator[None]:
    """Do ``work`` while the context lasts; what it raises is raised at the end."""
    task = asyncio.ensure_future(work)  # type: ignore[call-overload]
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.result()
