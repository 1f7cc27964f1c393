"""The composition root: one control cluster, one target, a driver, and the controllers between.

What runs when, and how it ends, is decided in :mod:`mcm.lifecycle`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar, final

from prometheus_client import CollectorRegistry

from mcm import __version__
from mcm.api.core import LEASES, NODES
from mcm.api.timestamps import rfc3339
from mcm.client.client import Client
from mcm.client.errors import ConfigurationError, ServerError, TransportError
from mcm.client.metrics import ClientMetrics
from mcm.client.transport import Lane, Transport
from mcm.client.verbs import ObjectWriter
from mcm.clock import Clock
from mcm.controllers import (
    deployment,
    machine,
    machineclass,
    machineset,
    node,
    overshooting,
    safety,
    secret,
)
from mcm.controllers.context import ControllerContext
from mcm.controllers.fleet_metrics import FleetMetrics
from mcm.controllers.provider import DriverMetrics, Provider
from mcm.controllers.runtime import Controller
from mcm.controllers.selection import Group
from mcm.controllers.write_guard import WriteGuard, author, progressed
from mcm.driver.absent import AbsentDriver
from mcm.driver.cloud_api import CloudApi
from mcm.driver.contract import Driver
from mcm.driver.definitions import definitions_of
from mcm.driver.discovery import ProviderContext, ProviderFactory
from mcm.driver.services import Service, services_of
from mcm.events import EventRecorder, EventType
from mcm.informers.factory import InformerFactory
from mcm.informers.writer import Writer
from mcm.leaderelection import AllLeases, LeaderElector
from mcm.lifecycle import Components, Kind, Lifecycle, Runner, TaskName, Work
from mcm.metrics import once_per_registry
from mcm.options import Options
from mcm.prerequisites.remedy import complaint
from mcm.prerequisites.served_kinds import (
    MACHINE_KINDS,
    ServedKind,
    not_served,
    of_definitions,
    of_resource,
)
from mcm.sharding.shard import JOINT_IDENTITY, SHARED_DUTIES
from mcm.sharding.sharding import Sharding
from mcm.sharding.shared_duties import SharedDuties, WithSharedDuties
from mcm.sharding.stamp import StampingWriter
from mcm.tracing import NO_TRACES, Tracer

R = TypeVar("R")

logger = logging.getLogger(__name__)

# The names the Go original's two processes contend for: holding both shuts both of them out.
LEASE_NAMES = ("machine-controller-manager", "machine-controller")
_LEASES = dict(zip(Group, LEASE_NAMES, strict=True))
_REACH_SERVER = 10.0
_BUILD: Mapping[str, Callable[[ControllerContext], Sequence[Controller]]] = {
    "machinedeployment": deployment.build,
    "machineset": machineset.build,
    "overshooting": overshooting.build,
    "machine": machine.build,
    "machineclass": machineclass.build,
    "secret": secret.build,
    "node": node.build,
    "orphan-vms": safety.build,
}


@final
class Manager:
    """Everything of one run. ``run`` may be called once.

    ``target`` is None without a target cluster, and ``control`` itself where both are one cluster.
    Neither transport is closed here: who opened it closes it.
    """

    def __init__(
        self,
        options: Options,
        *,
        control: Transport,
        target: Transport | None,
        provider: ProviderFactory,
        clock: Clock,
        randomness: random.Random,
        registry: CollectorRegistry,
        identity: str,
        tracer: Tracer = NO_TRACES,
    ) -> None:
        self._options = options
        self._clock = clock
        self._random = randomness
        self._registry = registry
        self._identity = identity
        self._tracer = tracer
        self._client_metrics = once_per_registry(registry, ClientMetrics)
        self._shard = options.sharding.shard
        self._leases_client = self._make_leases_client(control)
        self._electors = self._make_electors()
        self._leases = AllLeases(self._electors)
        self._fence = WithSharedDuties(self._leases)
        self._control = self._client(control, "control")
        shared = target is control
        self._target = (
            self._control if shared else (self._client(target, "target") if target else None)
        )
        self._control_informers = InformerFactory(
            self._control,
            clock=clock,
            namespace=options.clusters.namespace,
            registry=registry,
            name="control",
            randomness=randomness,
            guarded=self._guarded,
            author=author,
        )
        self._target_informers = (
            InformerFactory(
                self._target,
                clock=clock,
                registry=registry,
                name="target",
                randomness=randomness,
                guarded=partial(WriteGuard, clock=clock),
                author=author,
            )
            if self._target
            else None
        )
        self._events = EventRecorder(
            self._control,
            clock=clock,
            component="machine-controller-manager",
            host=identity,
            randomness=randomness,
            registry=registry,
        )
        self._driver = self._make_driver(provider)
        self._services = self._named_services()
        self._controllers = tuple(self._build_controllers(self._context()))
        self.fleet = FleetMetrics(self._control_informers, clock=clock, registry=registry)
        self._lifecycle = Lifecycle(
            Components(
                mirrors=[factory.name for factory in self._factories()],
                leases=self._leases.names,
                services=list(self._services),
                controllers=[controller.name for controller in self._controllers],
            )
        )
        self._runner = Runner(
            self._lifecycle,
            self._tasks(),
            lead=self._tell_who_leads,
            shut_down_queues=self._shut_down_queues,
            clock=clock,
        )

    @property
    def driver(self) -> Driver:
        return self._driver

    @property
    def control_informers(self) -> InformerFactory:
        return self._control_informers

    @property
    def target_informers(self) -> InformerFactory | None:
        return self._target_informers

    async def run(self, stop: asyncio.Event) -> None:
        """Work until ``stop`` is set; return when all is finished and the leases are released.

        Takes no longer than :data:`mcm.lifecycle.GRACE_PERIOD` for that; cancelled, far less.
        Raises ConfigurationError if a server cannot serve us, LeadershipLost if another took over,
        and whatever ended a controller, a mirror or a service. Leaves no task behind.
        """
        await self._runner.run(stop)

    def alive(self) -> Mapping[str, str]:
        """Return what can no longer recover by itself, by name: what ended though it must not, and
        reconciles that no bound will ever end. A restart would mend both."""
        problems = dict(self._lifecycle.failed)
        for controller in self._controllers:
            problems.update(controller.stuck())
        return problems

    def ready(self) -> Mapping[str, str]:
        """Return each mirror that is not synced, not watched or not heard from, and why."""
        problems: dict[str, str] = {}
        for factory in self._factories():
            problems.update(factory.unready())
        return problems

    def mirrored(self) -> Sequence[str]:
        """Return the names of all mirrors that :meth:`ready` judges."""
        return [name for factory in self._factories() for name in factory.mirrored()]

    def _factories(self) -> Iterator[InformerFactory]:
        yield self._control_informers
        if self._target_informers is not None:
            yield self._target_informers

    def _client(self, transport: Transport, name: str) -> Client:
        return Client(
            transport,
            clock=self._clock,
            name=name,
            user_agent=f"mcm/{__version__}",
            fence=self._fence.check,
            metrics=self._client_metrics,
            max_in_flight=self._options.api_requests.max_in_flight,
            qps=self._options.api_requests.qps,
            burst=self._options.api_requests.burst,
            random=self._random,
            tracer=self._tracer,
            progressed=progressed,
        )

    def _guarded(self, writer: Writer) -> ObjectWriter:
        guarded = WriteGuard(writer, clock=self._clock)
        return guarded if self._shard is None else StampingWriter(guarded, self._shard.name)

    def _make_leases_client(self, control: Transport) -> Client:
        election = self._options.leader_election
        return Client(
            control,
            clock=self._clock,
            user_agent=f"mcm-leader-election/{__version__}",
            metrics=self._client_metrics,
            lane=Lane.LEASE,
            timeout=max(1.0, election.renew_deadline.total_seconds() / 2),
            random=self._random,
        )

    def _make_electors(self) -> Sequence[LeaderElector]:
        """Those of all leases that are needed, in their order of precedence: a shard's own come
        first, so that only who acts for it joins the others in holding those of all shards."""
        if not self._options.leader_election.enabled:
            return ()
        names = [_LEASES[group] for group in self._options.controllers.groups]
        if self._shard is None:
            return [self._elector(name) for name in names]
        own = [
            self._elector(self._shard.lease(name), annotations=self._shard.lease_annotations)
            for name in names
        ]
        return own + [self._elector(name, joint=True) for name in names]

    def _elector(
        self, name: str, *, joint: bool = False, annotations: Mapping[str, str] | None = None
    ) -> LeaderElector:
        election = self._options.leader_election
        return LeaderElector(
            self._leases_client,
            name=name,
            namespace=self._options.clusters.namespace,
            identity=JOINT_IDENTITY if joint else self._identity,
            lease_duration=election.lease_duration.total_seconds(),
            renew_deadline=election.renew_deadline.total_seconds(),
            retry_period=election.retry_period.total_seconds(),
            clock=self._clock,
            randomness=self._random,
            registry=self._registry,
            joint=joint,
            annotations=annotations,
        )

    def _make_driver(self, provider: ProviderFactory) -> Driver:
        if Group.MACHINES not in self._options.controllers.groups:
            return AbsentDriver()  # no other controller calls a provider
        return provider(
            ProviderContext(
                control=self._control,
                target=self._target,
                namespace=self._options.clusters.namespace,
                clock=self._clock,
                random=self._random,
                simulate_cloud=self._options.provider.simulate_cloud,
                cloud_api=CloudApi(
                    self._options.provider.name,
                    registry=self._registry,
                    monotonic=self._clock.monotonic,
                ),
            )
        )

    def _named_services(self) -> Mapping[str, Service]:
        provider = self._options.provider.name
        brought = services_of(self._driver)
        if self._options.provider.simulate_cloud and not brought:
            raise ConfigurationError(
                f"--simulate-cloud: the provider {provider!r} brings no cloud to run"
            )
        named = {f"{provider}/{name}": service for name, service in brought.items()}
        return {"events": self._events.run, **named}

    def _context(self) -> ControllerContext:
        return ControllerContext(
            control=self._control,
            target=self._target,
            control_informers=self._control_informers,
            target_informers=self._target_informers,
            namespace=self._options.clusters.namespace,
            clock=self._clock,
            events=self._events,
            provider=Provider(
                self._driver,
                clock=self._clock,
                fence=self._fence,
                metrics=DriverMetrics.of(self._registry),
                tracer=self._tracer,
            ),
            options=self._options.settings,
            registry=self._registry,
            random=self._random,
            led_since=self._leases.led_since,
            tracer=self._tracer,
        )

    def _build_controllers(self, context: ControllerContext) -> Iterator[Controller]:
        made: list[Controller] = []
        for name, build in _BUILD.items():
            if name in self._options.controllers.names:
                made += build(context)
        yield from made
        if self._shard is None:
            return
        self._fence.duties = SharedDuties(self._elector(SHARED_DUTIES))
        sharding = Sharding.build(
            self._shard, context, made, self._fence.duties, lease=LEASE_NAMES[0]
        )
        self._services = {**self._services, **sharding.services}
        yield from sharding.controllers

    async def _check_servers(self) -> None:
        """Fail early, with the remedy, rather than retry for ever what cannot work."""
        wanted = list(MACHINE_KINDS)
        if Group.MACHINES in self._options.controllers.groups:
            wanted += of_definitions(definitions_of(self._driver))
        lacking = await self._reached(lambda: not_served(self._control, wanted))
        lacking_in_target: tuple[ServedKind, ...] = ()
        if (target := self._target) is not None:
            nodes = [of_resource(NODES)]
            lacking_in_target = await self._reached(lambda: not_served(target, nodes))
        if what := complaint(self._options, lacking, lacking_in_target):
            raise ConfigurationError(what)

    async def _reached(self, ask: Callable[[], Awaitable[R]]) -> R:
        deadline = self._clock.monotonic() + _REACH_SERVER
        while True:
            try:
                return await ask()
            except (TransportError, ServerError) as error:
                if self._clock.monotonic() >= deadline:
                    raise ConfigurationError(
                        f"gave up after {_REACH_SERVER:.0f} s: {error}"
                    ) from error
                logger.warning("waiting for the API server: %s", error)
            await self._clock.sleep(1.0)

    # ---- what the lifecycle runs ----------------------------------------------------------------

    def _tasks(self) -> Mapping[TaskName, Work]:
        """Return how to run each of the components."""
        tasks: dict[TaskName, Work] = {
            TaskName(Kind.CHECKS): self._check_servers,
            TaskName(Kind.SYNC): self._wait_synced,
        }
        for factory in self._factories():
            tasks[TaskName(Kind.MIRROR, factory.name)] = factory.run
        for lease in self._leases.names:
            tasks[TaskName(Kind.LEASE, lease)] = partial(self._hold, lease)
            tasks[TaskName(Kind.RELEASE, lease)] = partial(self._leases.release, lease)
        for name, service in self._services.items():
            tasks[TaskName(Kind.SERVICE, name)] = service
        for controller in self._controllers:
            tasks[TaskName(Kind.CONTROLLER, controller.name)] = controller.run
        return tasks

    async def _hold(self, lease: str) -> None:
        await self._leases.hold(lease, partial(self._runner.lease_won, lease))

    async def _wait_synced(self) -> None:
        for factory in self._factories():
            await factory.wait_synced()

    def _tell_who_leads(self) -> None:
        """Tell who leads, on the leases."""
        logger.info("leading: %d controllers", len(self._controllers))
        if (since := self._leases.led_since()) is not None:
            logger.info("timeouts of machines start no earlier than %s", rfc3339(since))
        note = f"{self._identity} became leader"
        for elector in self._electors:
            if elector.lease is not None:
                self._events.event(LEASES, elector.lease, EventType.NORMAL, "LeaderElection", note)

    def _shut_down_queues(self) -> None:
        for controller in self._controllers:
            controller.queue.shut_down()
