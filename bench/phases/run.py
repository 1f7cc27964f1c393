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
from bench.instant.kubelets import KubeletFailed, Kubelets, node_name
from bench.instant.manifests import CLASSES
from bench.managers.command import Command
from bench.managers.process import ManagerEnded, ManagerProcess
from bench.managers.queues import QueueDepths
from bench.phases.fleet import WARM_UP, Fleet
from bench.phases.meter import Measured, Meter
from bench.phases.results import Run
from bench.phases.view import FleetView, TooLate
from mcm.api.meta import JSONObject
from mcm.client.client import Client
from mcm.client.http import HTTPTransport
from mcm.clock import SystemClock
from tests.envtest.processes import free_ports

PHASES: Final = ("create", "roll", "scale up", "scale down", "kill", "delete")
_START_WITHIN: Final = 90.0
_FAILURES = (TooLate, ManagerEnded, KubeletFailed)

Condition = Callable[[], bool]


@final
@dataclass(frozen=True, slots=True)
class Load:
    """``machines`` in the fleet; of them, ``scaled`` are added and taken away again, and ``killed``
    lose their VM. ``phases`` are those to measure (create and delete are among them). ``raw`` is
    how many objects the raw rates are measured with; 0: not at all. ``patience``: seconds a phase
    may take. ``machine_class`` says what the classes have that another provider needs, and
    ``bootstrap_tokens`` whether each new machine is to have one made for it."""

    machines: int
    scaled: int
    killed: int
    phases: Collection[str]
    raw: int
    connections: int
    patience: float
    machine_class: JSONObject
    bootstrap_tokens: bool


@dataclass(frozen=True, slots=True)
class _Step:
    name: str
    machines: int
    act: Callable[[], Awaitable[None]]
    done: Condition


async def run(cluster: Cluster, command: Command, load: Load, folder: Path) -> Run:
    """Measure; ``folder`` gets the manager's log and the plug-in. A manager that fails, or does not
    get on, ends the run: the text and the phases before are in the result.

    Raises :mod:`mcm.client.errors` for a server that cannot be used.
    """
    sent = CountingTransport(HTTPTransport(cluster.admin, clock=SystemClock()))
    client = Client(sent, clock=SystemClock(), user_agent="bench")
    namespace = namespaces.new_name()
    try:
        async with namespaces.prepared(
            client,
            namespace,
            load.machine_class,
            bootstrap_tokens=load.bootstrap_tokens,
            clean=not cluster.ours,
        ):
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
        self._rates: list[RawRates] = []
        self._measured: list[Measured] = []
        self._start = self._start_cpu = self._cpu = 0.0
        self._remarks: list[str] = []
        self._failure = ""

    async def run(self) -> Run:
        await self._measure_raw_rates()
        try:
            async with self._watching() as kubelets, self._managing() as (manager, port):
                await self._warm_up(manager)
                await self._measure_phases(manager, port, kubelets)
                self._cpu = manager.usage().cpu_seconds
        except _FAILURES as error:
            self._failure = str(error)
        else:
            await self._measure_raw_rates()
        return self._told()

    def _told(self) -> Run:
        rates = raw_rates.mean(self._rates) if self._rates else None
        phases = [each.rated(rates) for each in self._measured]
        return Run(
            manager=self._command.name,
            machines=self._load.machines,
            server=self._cluster.kind,
            server_version=self._cluster.version,
            start_seconds=round(self._start, 2),
            start_cpu_seconds=round(self._start_cpu, 2),
            phases=phases,
            cpu_seconds=round(self._cpu, 2),
            peak_resident_bytes=max((phase.peak_resident_bytes for phase in phases), default=0),
            raw_rates=rates,
            raw_rates_measured=self._rates,
            remarks=self._remarks,
            failure=self._failure,
        )

    async def _measure_raw_rates(self) -> None:
        if not self._load.raw:
            return
        try:
            found = await raw_rates.measure(
                self._cluster.kubeconfig,
                self._namespace,
                objects=self._load.raw,
                connections=self._load.connections,
                servers=self._cluster.pids,
            )
        except NotMeasured as error:
            self._remarks.append(str(error))
        else:
            self._rates.append(found)

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
            if not self._cluster.ours:  # somebody may be there who doubts Nodes that are silent
                running.append(tasks.create_task(kubelets.beat()))
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
        began = time.monotonic()
        one = Fleet(self._client, self._namespace, WARM_UP)
        await one.create(1)
        await self._until(manager, lambda: self._view.running(WARM_UP) == 1, "the first machine")
        await one.delete()
        await self._until(manager, self._nothing_left, "the deletion of the first machine")
        self._start = time.monotonic() - began
        self._start_cpu = manager.usage().cpu_seconds

    async def _until(self, manager: ManagerProcess, condition: Condition, what: str) -> None:
        try:
            await self._view.until(condition, within=_START_WITHIN, check=manager.check, what=what)
        except TooLate as error:
            raise TooLate(f"{error}; the manager's last words:\n{manager.tail()}") from error

    async def _measure_phases(self, manager: ManagerProcess, port: int, kubelets: Kubelets) -> None:
        # A large fleet's metrics are many: to be looked at takes some 3 % of a core.
        period = max(1.0, self._load.machines / 500)
        queues = QueueDepths(f"http://127.0.0.1:{port}/metrics", period=period)
        meter = Meter(
            self._client, self._sent, self._view, manager, queues, servers=self._cluster.pids
        )
        async with _tasks() as tasks:
            looking = tasks.create_task(queues.run())
            try:
                for step in self._steps(kubelets):
                    if step.name in self._load.phases:
                        await self._measure(meter, step)
            finally:
                looking.cancel()

    async def _measure(self, meter: Meter, step: _Step) -> None:
        found = await meter.measure(
            step.name, step.machines, step.act, step.done, within=self._load.patience
        )
        self._measured.append(found)

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
