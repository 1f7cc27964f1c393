"""A whole fleet's life under virtual time: API server, world and manager in one loop, no sockets.

::

    async def main() -> None:
        async with Simulation(seed=7) as sim:
            await sim.apply(samples.load())
            await sim.until(lambda: sim.running() == 3, within=60)


    run_virtual(main)
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import final

from prometheus_client import CollectorRegistry

from mcm.api.core import NODES
from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject, Resource, T
from mcm.client.client import Client
from mcm.client.transport import Transport
from mcm.clock import LoopClock
from mcm.driver import ProviderFactory
from mcm.leaderelection import LeadershipLost
from mcm.manager import Manager
from mcm.options import Options
from mcm.providers import simulated
from mcm.providers.simulated import virtual_machine
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.cluster import create_all, first_objects
from mcm.sandbox.loopback import LoopbackTransport
from mcm.sandbox.world.world import World
from mcm.simulation.faults import FaultPlan
from mcm.simulation.transport import FaultyTransport

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
_LOOK_EVERY = 0.5


@final
class Simulation:
    """One seed, one history. ``faults`` befall the manager's requests, ``kubelet_faults`` those of
    the kubelets; those of the rest of the world nothing befalls.

    Enter it on a :class:`mcm.simulation.virtualtime.VirtualLoop`. ``client`` is the user's own.
    ``provider`` makes the driver; the VMs that join are those of the simulated cloud. ``epoch`` is
    when it begins. ``carried_by`` may put something between the manager and its transport.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        options: Options | None = None,
        node_grace: float = 40.0,
        heartbeat_interval: float = 10.0,
        provider: ProviderFactory = simulated.provider,
        epoch: datetime = EPOCH,
        carried_by: Callable[[Transport], Transport] = lambda transport: transport,
    ) -> None:
        self.random = random.Random(seed)
        self.clock = LoopClock(epoch)
        self.server = ApiServer(clock=self.clock, random=random.Random(self.random.random()))
        self.faults = FaultPlan(random=random.Random(self.random.random()))
        self.kubelet_faults = FaultPlan(random=random.Random(seed))
        self.client = self._client("user")
        self._options = options or Options()
        self._provider = provider
        self._carried_by = carried_by
        self._world = World(
            self.server,
            clock=self.clock,
            randomness=random.Random(self.random.random()),
            node_grace=node_grace,
            heartbeat_interval=heartbeat_interval,
            namespace=self._options.clusters.namespace,
            kubelets=FaultyTransport(self.server, self.kubelet_faults),
        )
        self.losses = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._stop = asyncio.Event()
        self.manager = self._make_manager()

    async def __aenter__(self) -> Simulation:
        await create_all(self.server, first_objects())
        self._tasks.append(asyncio.create_task(self._world.run()))
        self.start_manager()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop_manager()
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)

    # ---- the manager's process ------------------------------------------------------------------

    def start_manager(self) -> None:
        self._stop = asyncio.Event()
        self._managing = asyncio.create_task(self.manager.run(self._stop))

    async def stop_manager(self) -> None:
        """End it in order, as SIGTERM does; raises what it died of, but for a lost lease."""
        self._stop.set()
        with suppress(LeadershipLost):
            await self._managing

    async def crash_manager(self) -> None:
        """End it without a goodbye, and put a new one in its place, not yet started."""
        self._managing.cancel()
        await asyncio.wait({self._managing})
        self.manager = self._make_manager()

    # ---- what a test does and sees --------------------------------------------------------------

    async def apply(self, manifests: Iterable[JSONObject]) -> None:
        await create_all(self.server, manifests)

    async def until(self, condition: Callable[[], bool], *, within: float, what: str = "") -> float:
        """Let time pass until ``condition`` holds; return the seconds it took.

        Raises AssertionError after ``within`` seconds, or what the manager died of.
        """
        started = self.clock.monotonic()
        while not condition():
            await self._restart_after_loss()
            passed = self.clock.monotonic() - started
            assert passed < within, f"not within {within} s: {what or condition}\n{self.describe()}"
            await self.clock.sleep(_LOOK_EVERY)
        return self.clock.monotonic() - started

    async def pass_time(self, seconds: float) -> None:
        await self.clock.sleep(seconds)
        await self._restart_after_loss()

    async def _restart_after_loss(self) -> None:
        """A manager that lost its lease ends, and a new one is started, as a kubelet would do.

        Any other end is raised.
        """
        if not self._managing.done() or self._managing.cancelled() or self._stop.is_set():
            return
        try:
            await self._managing
        except LeadershipLost:
            self.losses += 1
            self.manager = self._make_manager()
            self.start_manager()
        else:
            raise AssertionError("the manager ended by itself")

    def objects(self, resource: Resource[T]) -> list[JSONObject]:
        """Return what the server stores now, without asking over the API."""
        return self.server.objects(resource.group, resource.plural)

    def on_change(self, resource: Resource[T], look: Callable[[], None]) -> None:
        """Call ``look`` after every committed change of ``resource``, before anybody else hears."""
        info = self.server.registry.find(resource.group, resource.version, resource.plural)
        assert info is not None, resource.name
        self.server.store.subscribe(lambda _: look(), info.storage)

    def phases(self) -> Counter[str]:
        return Counter(phase_of(m) for m in self.objects(MACHINES))

    def running(self) -> int:
        return self.phases()["Running"]

    def describe(self) -> str:
        """A few lines on where the fleet stands, for a failing assertion."""
        lines = [f"at {self.clock.monotonic():.1f} s, machines: {dict(self.phases())}"]
        lines += [_line(m) for m in self.objects(MACHINES)]
        for resource in (virtual_machine.VIRTUAL_MACHINES, NODES):
            names = (name_of(o) for o in self.objects(resource))
            lines.append(f"  {resource.plural}: {', '.join(sorted(names)) or 'none'}")
        return "\n".join(lines)

    def _client(self, user_agent: str) -> Client:
        return Client(LoopbackTransport(self.server), clock=self.clock, user_agent=user_agent)

    def _make_manager(self) -> Manager:
        transport = self._carried_by(FaultyTransport(self.server, self.faults))
        self.registry = CollectorRegistry()
        return Manager(
            self._options,
            control=transport,
            target=transport,
            provider=self._provider,
            clock=self.clock,
            randomness=random.Random(self.random.random()),
            registry=self.registry,
            identity=f"simulated-{self.random.getrandbits(32):08x}",
        )


def phase_of(machine: JSONObject) -> str:
    """Return a stored machine's phase, empty if it has none yet."""
    status = machine.get("status")
    current = status.get("currentStatus") if isinstance(status, dict) else None
    return str(current.get("phase", "")) if isinstance(current, dict) else ""


def name_of(obj: JSONObject) -> str:
    """Return a stored object's name."""
    meta = obj.get("metadata")
    return str(meta.get("name")) if isinstance(meta, dict) else "?"


def _line(machine: JSONObject) -> str:
    status = machine.get("status")
    operation = status.get("lastOperation") if isinstance(status, dict) else None
    text = operation.get("description") if isinstance(operation, dict) else ""
    return f"  {name_of(machine)}: {phase_of(machine) or 'new'}  {text}"
