"""``--simulate-cloud``: a service of the provider boots what its driver creates, while we lead."""

from __future__ import annotations

import asyncio
import random

from prometheus_client import CollectorRegistry

from mcm.api.core import NODES
from mcm.api.meta import JSONObject
from mcm.manager import Manager
from mcm.options import Options, ProviderChoice
from mcm.providers.simulated import provider, virtual_machine
from mcm.sandbox.cluster import create_all
from mcm.sandbox.loopback import LoopbackTransport
from mcm.simulation.virtualtime import run_virtual
from tests.unit.manager.process import CLOCK, fill, new_server, until


def ready(node: JSONObject) -> bool:
    status = node.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    found = conditions if isinstance(conditions, list) else []
    return any(isinstance(c, dict) and (c["type"], c["status"]) == ("Ready", "True") for c in found)


def test_nodes_join_without_anybody_else_who_boots_them() -> None:
    async def scenario() -> None:
        server = new_server()
        await fill(server)
        await create_all(server, [virtual_machine.crd_manifest()])
        transport = LoopbackTransport(server)
        manager = Manager(
            Options(provider=ProviderChoice(simulate_cloud=True)),
            control=transport,
            target=transport,
            provider=provider,
            clock=CLOCK,
            randomness=random.Random(1),
            registry=CollectorRegistry(),
            identity="me",
        )
        stop = asyncio.Event()
        running = asyncio.create_task(manager.run(stop))
        await until(lambda: sum(map(ready, server.objects(NODES.group, NODES.plural))) == 3)
        stop.set()
        await running

    run_virtual(scenario)
