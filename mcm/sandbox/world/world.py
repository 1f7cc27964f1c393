"""All that lives around the API server: a real cluster's controllers, cloud and kubelets."""

from __future__ import annotations

import asyncio
import random
from typing import final

from mcm.client.client import Client
from mcm.clock import Clock
from mcm.providers.simulated.cloud import SimulatedCloud
from mcm.sandbox.loopback import LoopbackTransport
from mcm.sandbox.server import ApiServer
from mcm.sandbox.world.node_lifecycle import NodeLifecycle


@final
class World:
    """Each actor has a client, and a user agent, of its own: the server counts who writes what.

    ``node_grace`` and ``heartbeat_interval`` are in seconds.
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
    ) -> None:
        self._server = server
        self._clock = clock
        self._actors = (
            NodeLifecycle(self._client("node-lifecycle"), clock=clock, grace=node_grace),
            SimulatedCloud(
                self._client("simulated-cloud"),
                self._client("kubelet-simulated"),
                namespace=namespace,
                clock=clock,
                randomness=randomness,
                heartbeat_interval=heartbeat_interval,
            ),
        )

    async def run(self) -> None:
        """Live until cancelled."""
        async with asyncio.TaskGroup() as group:
            for actor in self._actors:
                group.create_task(actor.run())

    def _client(self, user_agent: str) -> Client:
        return Client(LoopbackTransport(self._server), clock=self._clock, user_agent=user_agent)
