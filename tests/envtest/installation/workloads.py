"""The controllers of a cluster that a chart needs, beside a server that has none."""

from __future__ import annotations

import asyncio
import random

from mcm.client.client import Client
from mcm.clock import SystemClock
from mcm.informers.factory import InformerFactory
from mcm.sandbox.world.actor import Actor
from mcm.sandbox.world.binding import Binder
from mcm.sandbox.world.deployments import Deployments
from mcm.sandbox.world.kinds import PODS, REPLICA_SETS
from mcm.sandbox.world.owned_pods import BY_OWNER, index_pods, owner_uids
from mcm.sandbox.world.replica_sets import ReplicaSets
from mcm.sandbox.world.scheduler import Scheduler
from mcm.sandbox.world.storage.indexes import index_storage
from tests.envtest.bench import Bench

_SWEEP_EVERY = 0.5


async def run_workloads(admin: Bench) -> None:
    """Deployments, ReplicaSets, scheduler and garbage collector, until cancelled."""
    clock = SystemClock()
    client = Client(admin.transport, clock=clock, user_agent="workloads")
    mirror = InformerFactory(client, clock=clock, name="workloads", randomness=random.Random(1))
    index_pods(mirror.store(PODS))
    index_storage(mirror)
    mirror.store(REPLICA_SETS).add_index(BY_OWNER, owner_uids)
    actors: tuple[Actor, ...] = (
        Deployments(client, mirror, clock=clock),
        ReplicaSets(client, mirror, clock=clock),
        Scheduler(client, Binder(admin.transport, user_agent=Scheduler.name), mirror, clock=clock),
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(mirror.run())
        await mirror.wait_synced()
        for actor in actors:
            group.create_task(actor.run())
        group.create_task(_collect(admin))


async def _collect(admin: Bench) -> None:
    """Delete ReplicaSets and pods of the bench's namespace whose owner is gone."""
    clock = SystemClock()
    sets, deployments = (admin.path(p, group="apps/v1") for p in ("replicasets", "deployments"))
    while True:
        for owners, owned in ((deployments, sets), (sets, admin.pods())):
            dependents = (await admin.get(owned))["items"]
            living = {each["metadata"]["uid"] for each in (await admin.get(owners))["items"]}
            for each in dependents:
                meta = each["metadata"]
                references = meta.get("ownerReferences", ())
                if any(ref["uid"] not in living for ref in references):
                    await admin.send("DELETE", f"{owned}/{meta['name']}")
        await clock.sleep(_SWEEP_EVERY)
