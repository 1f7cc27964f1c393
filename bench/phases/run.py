"""Puts one manager with one fleet through all phases, at one server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from bench.clusters import namespaces, raw_rates
from bench.clusters.counting import CountingTransport
from bench.clusters.raw_rates import NotMeasured, RawRates
from bench.clusters.server import Cluster
from bench.instant import plug_in
from bench.instant.kubelets import Kubelets, node_name
from bench.instant.manifests import CLASSES
from bench.managers.command import Command
from bench.managers.process import ManagerProcess
from bench.managers.queues import QueueDepths
from bench.phases.fleet import WARM_UP, Fleet
from bench.phases.meter import Measured, Meter
from bench.phases.results import Run
from bench.phases.view import FleetView
from mcm.client.client import Client
from mcm.client.http import HTTPTransport
from mcm.clock import SystemClock
from tests.envtest.processes import free_ports

PHASES: Final = ("create", "roll", "scale up", "scale down", "kill", "delete")
_START_WITHIN: Final = 90.0

Condition = Callable[[], bool]


@final
@dataclass(frozen=True, slots=True)
class Load:
    """``machines`` in the fleet; of them, ``scaled`` are added and taken away again, and ``killed``
    lose their VM. ``phases`` are those to measure (create and delete are among them). ``raw`` is
    how many objects the raw rates are measured with; 0: not at all. ``patience``: seconds a phase
    may take."""

    machines: int
    scaled: int
    killed: int
    phases: Collection[str]
    raw: int
    connections: int
    patience: float


@dataclass(frozen=True, slots=True)
class _Step:
    name: str
    machines: int
    act: Callable[[], Awaitable[None]]
    done: Condition


async def run(cluster: Cluster, command: Command, load: Load, folder: Path) -> Run:
    """Measure; ``folder`` gets the manager's log and the plug-in.

    Raises what :mod:`.view`, :mod:`bench.managers.process` and the client do, with texts for users.
    """
    sent = CountingTransport(HTTPTransport(cluster.admin, clock=SystemClock()))
    client = Client(sent, clock=SystemClock(), user_agent="bench")
    namespace = namespaces.new_name()
    try:
        async with namespaces.prepared(client, namespace, clean=not cluster.ours):
            return await _Turn(cluster, command, load, folder, client, sent, namespace).run()
    finally:
        await client.aclose()


@final
class _Turn:
    """One run, once its namespace is there."""

    def __init__(
        self,
        cluster: Cluster,
        command: Command,
        load: Load,
        folder: Path,
        client: Client,
        sent: CountingTransport,
        namespace: str,
    ) -> None:
        self._cluster = cluster
        self._command = command
        self._load = load
        self._folder = folder
        self._client = client
        self._sent = sent
        self._namespace = namespace
        self._fleet = Fleet(client, namespace)
        self._view = FleetView(client, namespace)

    async def run(self) -> Run:
        remarks: list[str] = []
        rates = [await self._raw_rates(remarks)]
        async with self._watching() as kubelets, self._managing() as (manager, port):
            began = time.monotonic()
            await self._warm_up(manager)
            start = time.monotonic() - began, manager.usage().cpu_seconds
            measured = await self._phases(manager, port, kubelets)
            used = manager.usage()
        rates.append(await self._raw_rates(remarks))
        known = [each for each in rates if each is not None]
        rate = raw_rates.mean(known) if known else None
        phases = [each.rated(rate) for each in measured]
        return Run(
            manager=self._command.name,
            machines=self._load.machines,
            server=self._cluster.kind,
            server_version=self._cluster.version,
            start_seconds=round(start[0], 2),
            start_cpu_seconds=round(start[1], 2),
            phases=phases,
            cpu_seconds=round(used.cpu_seconds, 2),
            peak_resident_bytes=max(phase.peak_resident_bytes for phase in phases),
            raw_rates=rate,
            raw_rates_measured=known,
            remarks=remarks,
        )

    async def _raw_rates(self, remarks: list[str]) -> RawRates | None:
        if not self._load.raw:
            return None
        try:
            return await raw_rates.measure(
                self._cluster.kubeconfig,
                self._namespace,
                objects=self._load.raw,
                connections=self._load.connections,
            )
        except NotMeasured as error:
            remarks.append(str(error))
            return None

    @asynccontextmanager
    async def _watching(self) -> AsyncIterator[Kubelets]:
        """Mirror the fleet and let Nodes join, as long as the context lasts."""
        async with _tasks() as tasks:
            kubelets = Kubelets(self._client, fleet=self._namespace, tasks=tasks)
            self._view.machines.add_handler(kubelets.on_machine)
            running = [
                tasks.create_task(self._view.machines.run()),
                tasks.create_task(self._view.nodes.run()),
            ]
            await self._view.machines.wait_synced()
            await self._view.nodes.wait_synced()
            try:
                yield kubelets
            finally:
                for task in running:
                    task.cancel()

    @asynccontextmanager
    async def _managing(self) -> AsyncIterator[tuple[ManagerProcess, int]]:
        (port,) = free_ports(1)
        plug_in.write(self._folder / "plug-in")
        process = ManagerProcess(
            self._command.name,
            self._command.arguments(self._cluster.kubeconfig, self._namespace, port),
            env=plug_in.environment(self._folder / "plug-in"),
            log=self._folder / f"{self._command.name}.log",
        )
        try:
            yield process, port
            await process.stop()
        finally:
            process.kill()

    async def _warm_up(self, manager: ManagerProcess) -> None:
        """Have one machine made and deleted: whoever has done that leads, and is ready."""
        one = Fleet(self._client, self._namespace, WARM_UP)
        await one.create(1)
        await self._until(manager, lambda: self._view.running(WARM_UP) == 1, "the first machine")
        await one.delete()
        await self._until(manager, self._nothing_left, "the deletion of the first machine")

    async def _until(self, manager: ManagerProcess, condition: Condition, what: str) -> None:
        await self._view.until(condition, within=_START_WITHIN, check=manager.check, what=what)

    async def _phases(
        self, manager: ManagerProcess, port: int, kubelets: Kubelets
    ) -> list[Measured]:
        load = self._load
        period = max(0.5, load.machines / 1000)
        queues = QueueDepths(f"http://127.0.0.1:{port}/metrics", period=period)
        meter = Meter(self._client, self._sent, self._view, manager, queues)
        async with _tasks() as tasks:
            looking = tasks.create_task(queues.run())
            measured = [
                await meter.measure(
                    step.name, step.machines, step.act, step.done, within=load.patience
                )
                for step in self._steps(kubelets)
                if step.name in load.phases
            ]
            looking.cancel()
        return measured

    def _steps(self, kubelets: Kubelets) -> Iterable[_Step]:
        """All phases in their order; each begins with a fleet of ``machines`` that run."""
        load, fleet, view = self._load, self._fleet, self._view
        size, more = load.machines, load.machines + load.scaled

        def stands(count: int, machine_class: str = "") -> bool:
            running = view.running(fleet.name, machine_class)
            return running == view.total(fleet.name) == count == view.fleet_nodes

        victims: set[str] = set()

        async def kill() -> None:
            chosen = sorted(view.of(fleet.name), key=lambda each: each.metadata.name)[: load.killed]
            victims.update(each.metadata.name for each in chosen)
            await kubelets.kill([node_name(each) for each in chosen])

        def replaced() -> bool:
            return stands(size) and not any(m.metadata.name in victims for m in view.of(fleet.name))

        yield _Step("create", size, lambda: fleet.create(size), lambda: stands(size))
        yield _Step(
            "roll", size, lambda: fleet.roll_to(CLASSES[1]), lambda: stands(size, CLASSES[1])
        )
        yield _Step("scale up", load.scaled, lambda: fleet.scale(more), lambda: stands(more))
        yield _Step("scale down", load.scaled, lambda: fleet.scale(size), lambda: stands(size))
        yield _Step("kill", load.killed, kill, replaced)
        yield _Step("delete", size, fleet.delete, self._nothing_left)

    def _nothing_left(self) -> bool:
        return not len(self._view.machines.store) and not self._view.fleet_nodes


@asynccontextmanager
async def _tasks() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group whose failure is raised as the one error that it is."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as errors:
        error: BaseException = errors
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None
