"""Several managers in one loop on one server, each as a process of its own, with a record of acts.

What acts is known by the reconcile it acts for: a write, or a call of a provider, is made in the
context of one (:func:`mcm.controllers.write_guard.author`). Looked at is the moment in which a
request leaves, and the one in which its answer is there.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self, final

from prometheus_client import CollectorRegistry

from mcm.api.core import LEASES
from mcm.api.meta import JSONObject
from mcm.api.timestamps import micro_time
from mcm.client.errors import KubeError
from mcm.client.transport import Request, Response, StreamResponse
from mcm.controllers.write_guard import author
from mcm.leaderelection import LeadershipLost
from mcm.manager import Manager
from mcm.options import Options
from mcm.providers import simulated
from mcm.simulation.faults import FaultPlan
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.transport import FaultyTransport


@final
@dataclass(slots=True)
class Act:
    """One request that changes something. ``by`` is the manager, ``reconcile`` what it was for."""

    by: str
    reconcile: str
    request: str
    began: float
    ended: float = float("inf")


@final
class _Recording:
    """A transport that notes every write of a reconcile."""

    def __init__(self, inner: FaultyTransport, managers: Managers, name: str) -> None:
        self._inner, self._managers, self._name = inner, managers, name

    async def request(self, request: Request) -> Response:
        reconcile = author()
        if request.method == "GET" or not reconcile:
            return await self._inner.request(request)
        act = self._managers.begun(self._name, reconcile, f"{request.method} {request.path}")
        try:
            return await self._inner.request(request)
        finally:
            act.ended = self._managers.sim.clock.monotonic()

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        return self._inner.stream(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


@final
class Process:
    """One manager. ``faults`` befall its requests alone."""

    def __init__(self, managers: Managers, name: str, options: Options) -> None:
        self.name, self.options = name, options
        self.faults = FaultPlan(random=random.Random(name))
        self.registry = CollectorRegistry()
        sim = managers.sim
        self.transport = _Recording(FaultyTransport(sim.server, self.faults), managers, name)
        has_target = options.clusters.has_target
        self.manager = Manager(
            options,
            control=self.transport,
            target=self.transport if has_target else None,
            provider=simulated.provider,
            clock=sim.clock,
            randomness=random.Random(name),
            registry=self.registry,
            identity=name,
        )
        self._stop = asyncio.Event()
        self.task = asyncio.create_task(self.manager.run(self._stop), name=name)

    async def stop(self) -> None:
        """As SIGTERM does."""
        self._stop.set()
        with suppress(LeadershipLost):
            await self.task

    async def kill(self) -> None:
        """As ``kill -9`` does: nothing is released, as no request reaches the server any more."""
        self.faults.refuse()
        self.task.cancel()
        await asyncio.wait({self.task})

    def value(self, metric: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(metric, labels)

    @property
    def mirrored(self) -> set[str]:
        """The resources that it mirrors."""
        factories = (self.manager.control_informers, self.manager.target_informers)
        return {i.resource.name for f in factories if f is not None for i in f.informers()}


@final
class Managers:
    """A world without a manager of its own, and those that a test starts."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.acts: list[Act] = []
        self.processes: list[Process] = []
        self.judge: Callable[[Act], str] = lambda _: ""
        """Says at each act what is wrong with it; empty: nothing."""
        self.offences: list[str] = []

    @classmethod
    @asynccontextmanager
    async def open(cls, *, seed: int = 0) -> AsyncIterator[Self]:
        async with AsyncExitStack() as stack:
            sim = await stack.enter_async_context(Simulation(seed=seed))
            await sim.stop_manager()
            managers = cls(sim)
            stack.push_async_callback(managers._end)
            yield managers

    def start(self, name: str, options: Options) -> Process:
        process = Process(self, name, options)
        self.processes.append(process)
        return process

    def begun(self, by: str, reconcile: str, request: str) -> Act:
        act = Act(by, reconcile, request, self.sim.clock.monotonic())
        self.acts.append(act)
        if offence := self.judge(act):
            self.offences.append(f"{act.began:.3f} {by} for {reconcile}: {request}: {offence}")
        return act

    def acting(self) -> set[str]:
        """Return which managers did anything up to now."""
        return {act.by for act in self.acts}

    def controllers_of(self, name: str) -> set[str]:
        """Return the controllers of one manager that did anything."""
        return {act.reconcile.split(" ")[0] for act in self.acts if act.by == name}

    def overlaps(self) -> list[tuple[Act, Act]]:
        """Return the acts of different managers for the same key that were under way at once, or in
        turns: whoever has acted is followed by another, but does not come back before that one
        has ended."""
        found, last = [], dict[str, Act]()
        for act in self.acts:
            before = last.get(act.reconcile)
            if before is not None and before.by != act.by and before.ended > act.began:
                found.append((before, act))
            last[act.reconcile] = act
        return found

    async def hold_lease(self, name: str, holder: str = "a-go-process", **spec: object) -> None:
        """Let somebody hold a lease who need not renew it for a day."""
        moment = micro_time(self.sim.clock.now())
        body: JSONObject = {
            "metadata": {"name": name, "namespace": "default"},
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": 86400,
                "acquireTime": moment,
                "renewTime": moment,
                **spec,
            },
        }
        with suppress(KubeError):
            await self.sim.client.delete(LEASES, name, namespace="default")
        await self.sim.apply([body])

    async def let_go(self, name: str) -> None:
        await self.sim.client.delete(LEASES, name, namespace="default")

    def leases(self) -> list[JSONObject]:
        return self.sim.objects(LEASES)

    def holder(self, name: str) -> str:
        for lease in self.sim.objects(LEASES):
            if name_of(lease) == name and namespace_of(lease) == "default":
                spec: Any = lease["spec"]
                return str(spec.get("holderIdentity") or "")
        return ""

    async def _end(self) -> None:
        for process in self.processes:
            if not process.task.done():
                await process.stop()
            elif not process.task.cancelled():
                error = process.task.exception()
                if error is not None and not isinstance(error, LeadershipLost):
                    raise error


def namespace_of(obj: JSONObject) -> str:
    meta: Any = obj["metadata"]
    return str(meta.get("namespace", ""))
