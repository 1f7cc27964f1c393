"""A manager as a process has it, on virtual time: what befalls it, and what it must not do.

Nothing of the manager is replaced but its transport and its provider. The oracle is the server's
own record of the leases: whatever writes, and whatever calls the cloud, does so while both name us
and were renewed within the renew deadline.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any, final

import orjson
from prometheus_client import CollectorRegistry

from mcm.api.crds import crd_manifests
from mcm.api.meta import JSONObject
from mcm.api.timestamps import micro_time, parse_rfc3339
from mcm.client.transport import Request, Response, StreamResponse
from mcm.clock import LoopClock
from mcm.driver import (
    CreateMachineRequest,
    CreateMachineResponse,
    DeleteMachineRequest,
    DeleteMachineResponse,
    Driver,
    ListMachinesRequest,
    ListMachinesResponse,
    ProviderContext,
    Service,
    UnsupportedDriver,
)
from mcm.manager import LEASE_NAMES, Manager
from mcm.options import Options, ProviderChoice
from mcm.sandbox import samples
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.cluster import create_all
from mcm.simulation.faults import FaultPlan
from mcm.simulation.transport import FaultyTransport

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
CLOCK = LoopClock(EPOCH)
OPTIONS = Options(provider=ProviderChoice("slow"))
ELECTION = OPTIONS.leader_election
RENEW_DEADLINE = ELECTION.renew_deadline.total_seconds()
CREATION = 600.0
"""Seconds a VM takes: whenever something befalls a leader, it has calls under way."""


def new_server() -> ApiServer:
    return ApiServer(clock=CLOCK, random=random.Random(1))


async def fill(server: ApiServer) -> None:
    """Create the kinds, and a fleet of three machines to be made."""
    await create_all(server, [*crd_manifests(), *samples.load()])


def leases(server: ApiServer) -> Mapping[str, JSONObject]:
    """Return the specs of the leases as the server has them, by name."""
    found: dict[str, JSONObject] = {}
    for lease in server.objects("coordination.k8s.io", "leases"):
        meta, spec = lease["metadata"], lease["spec"]
        assert isinstance(meta, dict) and isinstance(spec, dict)
        if meta["name"] in LEASE_NAMES:
            found[str(meta["name"])] = spec
    return found


def holders(server: ApiServer) -> list[str]:
    """Return who holds the leases, in their order; an empty word for nobody."""
    found = leases(server)
    return [str(found[n].get("holderIdentity") or "") if n in found else "" for n in LEASE_NAMES]


async def give_leases_to(server: ApiServer, holder: str, *names: str) -> None:
    """Let somebody hold leases who need not renew them for a day."""
    moment = micro_time(CLOCK.now())
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": 86400,
        "acquireTime": moment,
        "renewTime": moment,
    }
    manifest: JSONObject = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec}
    await create_all(
        server,
        [{**manifest, "metadata": {"name": name, "namespace": "default"}} for name in names],
    )


@final
class WatchedTransport:
    """Lets everything pass and looks at each write."""

    def __init__(self, inner: FaultyTransport, look: Callable[[Request], None]) -> None:
        self._inner = inner
        self._look = look

    async def request(self, request: Request) -> Response:
        if request.method != "GET":
            self._look(request)
        return await self._inner.request(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        return self._stream(request)

    @asynccontextmanager
    async def _stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        async with self._inner.stream(request) as response:
            yield response

    async def aclose(self) -> None:
        await self._inner.aclose()


@final
class SlowDriver(UnsupportedDriver):
    """A cloud that takes its time, and a service that runs until it is told to end."""

    def __init__(self, called: Callable[[], None]) -> None:
        self._called = called
        self.under_way = 0
        self.cancelled = 0
        self.serving = False

    async def create_machine(self, request: CreateMachineRequest) -> CreateMachineResponse:
        await self._take(CREATION)
        name = request.machine.metadata.name
        return CreateMachineResponse(f"slow:///{name}", name)

    async def delete_machine(self, request: DeleteMachineRequest) -> DeleteMachineResponse:
        await self._take(1.0)
        return DeleteMachineResponse()

    async def list_machines(self, request: ListMachinesRequest) -> ListMachinesResponse:
        await self._take(1.0)
        return ListMachinesResponse({})

    def services(self) -> Mapping[str, Service]:
        return {"poller": self._serve}

    async def _take(self, seconds: float) -> None:
        self._called()
        self.under_way += 1
        try:
            await CLOCK.sleep(seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.under_way -= 1

    async def _serve(self) -> None:
        self.serving = True
        try:
            await asyncio.Event().wait()
        finally:
            self.serving = False


@final
class ManagedProcess:
    """One manager on ``server``, running in a task of its own."""

    def __init__(self, server: ApiServer, identity: str = "me", *, seed: int = 1) -> None:
        self.server = server
        self.identity = identity
        self.faults = FaultPlan(random=random.Random(seed))
        self.trespasses: list[str] = []
        self.released: list[str] = []
        self.acts = 0
        self.driver = SlowDriver(lambda: self._acts("a call of the cloud"))
        self.stop = asyncio.Event()
        transport = WatchedTransport(FaultyTransport(server, self.faults), self._look)
        self.manager = Manager(
            OPTIONS,
            control=transport,
            target=transport,
            provider=self._provide,
            clock=CLOCK,
            randomness=random.Random(seed),
            registry=CollectorRegistry(),
            identity=identity,
        )
        self._others = asyncio.all_tasks()
        self.running = asyncio.create_task(self.manager.run(self.stop), name=f"manager {identity}")

    def _provide(self, context: ProviderContext) -> Driver:
        return self.driver

    @property
    def leads(self) -> bool:
        return self.driver.serving

    def task(self, name: str) -> asyncio.Task[Any]:
        """Return the running task of that name."""
        (found,) = (task for task in asyncio.all_tasks() if task.get_name() == name)
        return found

    async def ended(self, within: float) -> BaseException | None:
        """Return what it died of once it has ended; fail after ``within`` seconds."""
        before = CLOCK.monotonic()
        await asyncio.wait({self.running}, timeout=within + 0.001)
        assert self.running.done(), f"it still runs {CLOCK.monotonic() - before:.3f} s later"
        return asyncio.CancelledError() if self.running.cancelled() else self.running.exception()

    def check_nothing_is_left(self) -> None:
        """Neither a task, nor a call of the cloud, nor a trespass."""
        left = asyncio.all_tasks() - self._others - {asyncio.current_task()}
        assert not {task.get_name() for task in left}
        assert self.driver.under_way == 0 and not self.driver.serving
        assert self.trespasses == []

    async def kill(self) -> None:
        """End it as SIGKILL does: nothing it might still say reaches anybody."""
        self.faults.refuse()
        self.running.cancel()
        with suppress(asyncio.CancelledError):
            await self.running

    def _look(self, request: Request) -> None:
        if "/leases" not in request.path:
            self._acts(f"{request.method} {request.path}")
        elif request.method == "PUT" and not orjson.loads(request.body)["spec"]["holderIdentity"]:
            name = request.path.rpartition("/")[2]
            self.released.append(name)
            if self._held_for(name) is None:
                self.trespasses.append(f"released {name}, which was not ours")
            if self.driver.under_way or self.driver.serving:
                self.trespasses.append(f"released {name} under the work")

    def _acts(self, what: str) -> None:
        """Something is about to change the world: may it?"""
        self.acts += 1
        for name in LEASE_NAMES:
            age = self._held_for(name)
            if age is None or age > RENEW_DEADLINE:
                self.trespasses.append(f"at {CLOCK.monotonic():.3f} s {what}: {name} {age}")

    def _held_for(self, lease: str) -> float | None:
        """Return how long ago the server saw us renew ``lease``; None if it is not ours."""
        spec = leases(self.server).get(lease)
        if spec is None or spec.get("holderIdentity") != self.identity:
            return None
        return (CLOCK.now() - parse_rfc3339(str(spec["renewTime"]))).total_seconds()


async def steps(count: int) -> None:
    """Let the event loop turn ``count`` times without waiting for anything."""
    for _ in range(count):
        await CLOCK.sleep(0.0)


async def until(condition: Callable[[], bool], *, within: float = 60.0) -> float:
    """Let time pass until ``condition`` holds; return the seconds it took."""
    started = CLOCK.monotonic()
    while not condition():
        assert CLOCK.monotonic() - started < within, f"not within {within} s"
        await CLOCK.sleep(0.05)
    return CLOCK.monotonic() - started
