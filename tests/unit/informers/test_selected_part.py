"""An informer with a field selector mirrors a part of a collection, and hears what leaves it."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime

from mcm.api.core import NODES
from mcm.api.meta import JSONObject
from mcm.client.client import Client
from mcm.clock import LoopClock
from mcm.informers import Informer
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.cluster import create_all
from mcm.sandbox.loopback import LoopbackTransport
from mcm.simulation.virtualtime import run_virtual


def test_what_the_selector_selects_no_more_is_gone() -> None:
    async def scenario() -> None:
        clock = LoopClock(datetime(2026, 1, 1, tzinfo=UTC))
        server = ApiServer(clock=clock, random=random.Random(1))
        client = Client(LoopbackTransport(server), clock=clock)
        nodes: list[JSONObject] = [
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {}}
            for name in ("one", "two")
        ]
        await create_all(server, nodes)
        informer = Informer(client, NODES, clock=clock, field_selector="spec.unschedulable=true")
        mirroring = asyncio.create_task(informer.run())
        await informer.wait_synced()
        assert not informer.store.list()
        cordon, uncordon = ({"spec": {"unschedulable": cordoned}} for cordoned in (True, False))
        await client.patch(NODES, "two", cordon)
        await clock.sleep(1)
        assert [node.metadata.name for node in informer.store.list()] == ["two"]
        await client.patch(NODES, "two", uncordon)
        await clock.sleep(1)
        assert not informer.store.list()
        mirroring.cancel()

    run_virtual(scenario)
