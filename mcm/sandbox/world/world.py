"""All that lives around the API server: a real cluster's controllers, cloud and kubelets."""

from __future__ import annotations

import asyncio
import random
from typing import final

from mcm.client.client import Client
from mcm.client.transport import Transport
from mcm.clock import Clock
from mcm.events import EventRecorder
from mcm.informers.factory import InformerFactory
from mcm.providers.simulated.cloud import SimulatedCloud
from mcm.sandbox.apiserver.garbage.collector import GarbageCollector
from mcm.sandbox.apiserver.garbage.namespaces import NamespaceController
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.loopback import LoopbackTransport
from mcm.sandbox.world.actor import Actor
from mcm.sandbox.world.binding import Binder
from mcm.sandbox.world.daemon_sets import DaemonSets
from mcm.sandbox.world.deployments import Deployments
from mcm.sandbox.world.disruption import Disruption
from mcm.sandbox.world.kinds import PODS, REPLICA_SETS
from mcm.sandbox.world.namespace_defaults import NamespaceDefaults
from mcm.sandbox.world.node_lifecycle import NodeLifecycle
from mcm.sandbox.world.owned_pods import BY_OWNER, index_pods, owner_uids
from mcm.sandbox.world.pod_garbage import PodGarbage
from mcm.sandbox.world.replica_sets import ReplicaSets
from mcm.sandbox.world.scheduler import Scheduler
from mcm.sandbox.world.stateful_sets.controller import StatefulSets
from mcm.sandbox.world.stateful_sets.kinds import CONTROLLER_REVISIONS
from mcm.sandbox.world.storage.attach_detach import AttachDetach
from mcm.sandbox.world.storage.attacher import Attacher
from mcm.sandbox.world.storage.claim_binder import ClaimBinder
from mcm.sandbox.world.storage.ephemeral_claims import EphemeralClaims
from mcm.sandbox.world.storage.indexes import index_storage
from mcm.sandbox.world.storage.volume_reclaimer import VolumeReclaimer


@final
class World:
    """Each actor has a client, and a user agent, of its own: the server counts who writes what.

    ``node_grace`` and ``heartbeat_interval`` are in seconds, ``kubelets`` is the kubelets' way to
    the server if it is not everybody's, ``root_ca`` the certificate (PEM) that signed the server's.
    With nothing to do, nobody but the kubelets writes, and those only their leases.
    """

    def __init__(
        self,
        server: ApiServer,
        *,
        clock: Clock,
        randomness: random.Random,
        node_grace: float = 20.0,
        heartbeat_interval: float = 5.0,
        namespace: str = "default",
        kubelets: Transport | None = None,
        root_ca: str = "",
    ) -> None:
        self._server = server
        self._clock = clock
        self._random = randomness
        self._mirror = InformerFactory(
            self._client("world"), clock=clock, name="world", randomness=self._seeded()
        )
        self._recorders: list[EventRecorder] = []
        self._actors = self._make_actors(node_grace)
        self._cloud = SimulatedCloud(
            self._client("simulated-cloud"),
            self._client("kubelet-simulated", kubelets),
            namespace=namespace,
            clock=clock,
            randomness=self._seeded(),
            heartbeat_interval=heartbeat_interval,
        )
        self._actors += self._make_storage()
        self._collectors = (
            GarbageCollector(server),
            NamespaceController(server),
            NamespaceDefaults(server, root_ca),
        )

    async def run(self) -> None:
        """Live until cancelled."""
        async with asyncio.TaskGroup() as group:
            for collector in self._collectors:
                group.create_task(collector.run())
            group.create_task(self._cloud.run())
            group.create_task(self._mirror.run())
            for recorder in self._recorders:
                group.create_task(recorder.run())
            await self._mirror.wait_synced()
            for actor in self._actors:
                group.create_task(actor.run(), name=actor.name)

    def _make_actors(self, node_grace: float) -> tuple[Actor, ...]:
        mirror, clock = self._mirror, self._clock
        index_pods(mirror.store(PODS))
        index_storage(mirror)
        mirror.store(REPLICA_SETS).add_index(BY_OWNER, owner_uids)
        mirror.store(CONTROLLER_REVISIONS).add_index(BY_OWNER, owner_uids)
        binder = Binder(LoopbackTransport(self._server), user_agent=Scheduler.name)
        return (
            NodeLifecycle(self._client(NodeLifecycle.name), mirror, clock=clock, grace=node_grace),
            Scheduler(self._client(Scheduler.name), binder, mirror, clock=clock),
            ReplicaSets(self._client(ReplicaSets.name), mirror, clock=clock),
            Deployments(self._client(Deployments.name), mirror, clock=clock),
            StatefulSets(self._client(StatefulSets.name), mirror, clock=clock),
            DaemonSets(self._client(DaemonSets.name), mirror, clock=clock),
            Disruption(self._client(Disruption.name), mirror, clock=clock),
            PodGarbage(self._client(PodGarbage.name), mirror, clock=clock),
        )

    def _make_storage(self) -> tuple[Actor, ...]:
        mirror, clock = self._mirror, self._clock
        binder, attach_detach = self._client(ClaimBinder.name), self._client(AttachDetach.name)
        return (
            ClaimBinder(binder, mirror, clock=clock, events=self._recorder(ClaimBinder.name)),
            VolumeReclaimer(self._client(VolumeReclaimer.name), mirror, clock=clock),
            EphemeralClaims(self._client(EphemeralClaims.name), mirror, clock=clock),
            AttachDetach(
                attach_detach, mirror, clock=clock, events=self._recorder(AttachDetach.name)
            ),
            Attacher(self._client(Attacher.name), mirror, clock=clock),
        )

    def _recorder(self, component: str) -> EventRecorder:
        recorder = EventRecorder(
            self._client(component),
            clock=self._clock,
            component=component,
            host="sandbox",
            randomness=self._seeded(),
        )
        self._recorders.append(recorder)
        return recorder

    def _client(self, user_agent: str, transport: Transport | None = None) -> Client:
        return Client(
            transport or LoopbackTransport(self._server),
            clock=self._clock,
            user_agent=user_agent,
            random=self._seeded(),
        )

    def _seeded(self) -> random.Random:
        return random.Random(self._random.random())
