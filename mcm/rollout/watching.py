"""Follows a deployment, its sets and machines, by watches that outlive a server's restart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, final

from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES, MachineDeployment
from mcm.api.meta import KubeObject, Resource
from mcm.client.errors import Forbidden
from mcm.clock import Clock
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.informers import InformerFactory, ReflectorOptions
from mcm.rollout.cluster import Cluster
from mcm.rollout.observation import observed
from mcm.rollout.progress import Progress, progress_of

_OPTIONS: Final = ReflectorOptions(backoff_cap=5.0)
"""Somebody is waiting: begin with the newest state, and look soon whether a server is back."""
_BESIDE: Final[Sequence[Resource[KubeObject]]] = (MACHINE_SETS, MACHINES)


@final
class Watching:
    """One deployment by name. Whoever may not read sets or machines is told of neither."""

    def __init__(self, cluster: Cluster, name: str, *, clock: Clock, revision: int = 0) -> None:
        self._cluster = cluster
        self._name = name
        self._revision = revision
        self._factory = InformerFactory(
            cluster.client, clock=clock, namespace=cluster.namespace, options=_OPTIONS
        )
        self._changed = asyncio.Event()

    async def look(self) -> Progress:
        """Read once. Raises what the client raises."""
        deployment = await self._cluster.deployment(self._name)
        try:
            sets, machines = await self._cluster.sets(), await self._cluster.machines()
        except Forbidden:
            sets, machines = (), ()
        return progress_of(observed(deployment, sets, machines), revision=self._revision)

    async def follow(self, show: Callable[[Progress], None]) -> Progress:
        """Show each change until the rollout is over; return how it ended.

        Raises what the client raises before the first sight; later troubles are logged, and it goes
        on when the server is back.
        """
        await self._cluster.deployment(self._name)
        await self._begin_mirrors()
        async with asyncio.TaskGroup() as group:
            mirroring = group.create_task(self._factory.run(), name="mirrors")
            await self._factory.wait_synced()
            while True:
                self._changed.clear()
                progress = self._progress()
                show(progress)
                if progress.over:
                    break
                await self._changed.wait()
            mirroring.cancel()
        return progress

    async def _begin_mirrors(self) -> None:
        allowed: list[Resource[KubeObject]] = [MACHINE_DEPLOYMENTS]
        for resource in _BESIDE:
            try:
                await self._cluster.client.list_page(
                    resource, namespace=self._cluster.namespace, limit=1
                )
            except Forbidden:
                continue
            allowed.append(resource)
        for resource in allowed:
            self._factory.informer(resource).add_handler(lambda _: self._changed.set())

    def _progress(self) -> Progress:
        snapshot = self._snapshot()
        if snapshot is None:
            return Progress("", 0, failure=f'deployment "{self._name}" has been deleted')
        return progress_of(snapshot, revision=self._revision)

    def _snapshot(self) -> DeploymentSnapshot | None:
        deployment: MachineDeployment | None = self._factory.store(MACHINE_DEPLOYMENTS).get(
            f"{self._cluster.namespace}/{self._name}"
        )
        if deployment is None:
            return None
        known = {informer.resource.name for informer in self._factory.informers()}
        sets = self._factory.store(MACHINE_SETS).list() if MACHINE_SETS.name in known else ()
        machines = self._factory.store(MACHINES).list() if MACHINES.name in known else ()
        return observed(deployment, sets, machines)
