"""Two processes and a fleet of fifty: the leader is killed while it makes, rolls, drains, deletes.

Whatever is counted is counted in what the server saw: each machine and each VM by its UID, each
change of leaders by the times in the leases.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import final

import pytest

from mcm.api.machine import MACHINES, Machine
from mcm.client.client import Client
from mcm.client.http import HTTPTransport
from mcm.clock import SystemClock
from mcm.informers import Change, InformerFactory
from mcm.options import LeaderElection
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES, VirtualMachine
from mcm.sandbox.apiserver.front.kubeconfig import write_kubeconfig
from tests.envtest.contract.objects import budget, pod
from tests.envtest.control_plane import ControlPlane
from tests.envtest.lifecycle.fleet import Fleet
from tests.envtest.lifecycle.running import simulated_cloud
from tests.envtest.lifecycle.test_killed_leader import lease_times
from tests.envtest.processes import free_ports
from tests.integration.replica import Replica

pytestmark = [pytest.mark.envtest, pytest.mark.timeout(400)]

SIZE = 50
PATIENCE = 150.0
"""Seconds that each stage may take on a busy machine; a quiet one needs a tenth of that."""
ELECTION = LeaderElection(
    lease_duration=timedelta(seconds=6),
    renew_deadline=timedelta(seconds=4),
    retry_period=timedelta(seconds=1),
)


async def test_whoever_follows_a_killed_leader_does_nothing_twice(
    control_plane: ControlPlane, fleet: Fleet, tmp_path: Path
) -> None:
    with pair_of_replicas(control_plane, fleet, tmp_path) as pair:
        async with (
            simulated_cloud(control_plane, fleet.admin.namespace),
            ledger(control_plane, fleet.admin.namespace) as seen,
        ):
            await pair.led()
            await fleet.create(replicas=SIZE)
            await roll_in_large_steps(fleet)
            await seen.until(lambda: len(seen.vms) > 0)
            await pair.kill_the_leader()
            assert not await fleet.runs(small=SIZE), "it was killed too late"
            await pair.follow()
            await fleet.until(lambda: fleet.runs(small=SIZE), within=PATIENCE, what="50 run")
            seen.is_made(SIZE)

            await pair.led()  # a stage is over sooner than a replica has started
            await fleet.roll_to("large")
            await seen.until(lambda: len(seen.vms) > SIZE)
            await pair.kill_the_leader()
            assert not await fleet.runs(large=SIZE), "it was killed too late"
            await pair.follow()
            await fleet.until(lambda: fleet.runs(large=SIZE), within=PATIENCE, what="50 replaced")
            seen.is_made(2 * SIZE)

            node, machine = await hold_up_a_drain(fleet)
            await pair.kill_the_leader()
            await pair.follow()
            await pair.led()
            assert machine in {m["metadata"]["name"] for m in await fleet.machines()}
            await fleet.allow_disruptions("web", 1)

            async def is_drained() -> bool:
                return node not in await fleet.nodes() and await fleet.runs(large=SIZE)

            await fleet.until(is_drained, within=PATIENCE, what="the drain goes on")
            seen.is_made(2 * SIZE + 1)

            await pair.led()
            await fleet.delete()
            await seen.until(lambda: len(seen.gone) > SIZE + 1)
            await pair.kill_the_leader()
            assert await fleet.vms() != [], "it was killed too late"
            await pair.follow()

            async def nothing_is_left() -> bool:
                return not (await fleet.machines() or await fleet.vms() or await fleet.nodes())

            await fleet.until(nothing_is_left, within=PATIENCE, what="nothing is left")
            await seen.until(lambda: len(seen.gone) == 2 * SIZE + 1)
            seen.is_made(2 * SIZE + 1)
    assert len(pair.waits) == 4
    # The promise is one duration and one retry period; the rest is what a busy machine adds.
    assert all(wait < 2 * ELECTION.lease_duration for wait in pair.waits), pair.waits


async def roll_in_large_steps(fleet: Fleet) -> None:
    rolling = {"maxSurge": SIZE // 2, "maxUnavailable": SIZE // 2}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    path = fleet.path("machinedeployments", "fleet")
    await fleet.admin.patch(path, {"spec": {"strategy": strategy}})


async def hold_up_a_drain(fleet: Fleet) -> tuple[str, str]:
    """Delete a machine with a pod that may not be evicted; return its node's name and its own once
    the node is cordoned."""
    admin, machine = fleet.admin, (await fleet.machines())[0]
    node = machine["metadata"]["labels"]["node"]
    await admin.create(admin.pods(), pod("web", {"app": "web"}, nodeName=node))
    await admin.create(
        admin.path("poddisruptionbudgets", group="policy/v1"), budget("web", {"app": "web"})
    )
    await fleet.allow_disruptions("web", 0)
    name = machine["metadata"]["name"]

    async def pod_runs() -> bool:
        found = await admin.get(admin.pods("web"))
        return bool(found["status"].get("phase") == "Running")

    await fleet.until(pod_runs, within=PATIENCE, what="the pod runs")
    await admin.delete(fleet.path("machines", name))

    async def is_cordoned() -> bool:
        found = await admin.get(f"/api/v1/nodes/{node}")
        return bool(found["spec"].get("unschedulable"))

    await fleet.until(is_cordoned, within=PATIENCE, what="the drain has begun")
    return node, name


@final
class Ledger:
    """All machines and VMs that ever were, by UID."""

    def __init__(self) -> None:
        self.machines: dict[str, str] = {}
        self.vms: dict[str, str] = {}
        """The machine's name by the VM's UID."""
        self.gone: set[str] = set()
        self._changed = asyncio.Event()

    def machine_changed(self, change: Change[Machine]) -> None:
        self.machines[change.object.metadata.uid] = change.object.metadata.name
        self._changed.set()

    def vm_changed(self, change: Change[VirtualMachine]) -> None:
        self.vms[change.object.metadata.uid] = change.object.spec.machine_name
        if change.new is None:
            self.gone.add(change.object.metadata.uid)
        self._changed.set()

    async def until(self, condition: object) -> None:
        assert callable(condition)
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    def is_made(self, number: int) -> None:
        """Assert that so many machines were made up to now, and one VM for each."""
        vms = defaultdict(set)
        for uid, name in self.vms.items():
            vms[name].add(uid)
        assert sorted(vms) == sorted(self.machines.values())
        assert len(self.machines) == len(set(self.machines.values())) == number
        assert [name for name, uids in vms.items() if len(uids) > 1] == []


@asynccontextmanager
async def ledger(plane: ControlPlane, namespace: str) -> AsyncIterator[Ledger]:
    clock, kept = SystemClock(), Ledger()
    transport = HTTPTransport(plane.spec(), clock=clock)
    client = Client(transport, clock=clock, user_agent="ledger")
    informers = InformerFactory(client, clock=clock, namespace=namespace)
    informers.informer(MACHINES).add_handler(kept.machine_changed)
    informers.informer(VIRTUAL_MACHINES).add_handler(kept.vm_changed)
    running = asyncio.create_task(informers.run())
    try:
        await informers.wait_synced()
        yield kept
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await transport.aclose()


@final
class Pair:
    """Two replicas at any time: one that is killed, or ends, is followed by a new one."""

    def __init__(self, fleet: Fleet, folder: Path, kubeconfig: Path, stack: ExitStack) -> None:
        self._fleet, self._folder, self._kubeconfig = fleet, folder, kubeconfig
        self._stack = stack
        self._numbers = count()
        self._replicas = [self._start(), self._start()]
        self.waits: list[timedelta] = []

    async def led(self) -> Replica:
        """Return the replica that leads, once there is one and the other one waits."""
        found: list[Replica] = []

        async def one_leads_and_one_waits() -> bool:
            self._replicas = [self._start() if r.ended else r for r in self._replicas]
            found[:] = [r for r in self._replicas if r.leads]
            return len(found) == 1 and all(r.waits for r in self._replicas if r not in found)

        await self._fleet.until(one_leads_and_one_waits, within=PATIENCE, what="one leads")
        return found[0]

    async def kill_the_leader(self) -> None:
        (await self.led()).kill()
        self._renewed = max((await lease_times(self._fleet, "renewTime")).values())

    async def follow(self) -> None:
        """Return when another one has taken the leases of the killed one."""

        async def has_changed_hands() -> bool:
            self._acquired = await lease_times(self._fleet, "acquireTime")
            return min(self._acquired.values()) > self._renewed

        await self._fleet.until(has_changed_hands, within=PATIENCE, what="another one leads")
        self.waits.append(max(self._acquired.values()) - self._renewed)

    _renewed: datetime
    _acquired: dict[str, datetime]

    def _start(self) -> Replica:
        (port,) = free_ports(1)
        folder = self._folder / f"replica-{next(self._numbers)}"
        folder.mkdir()
        return self._stack.enter_context(
            Replica(
                folder, self._kubeconfig, port=port, namespace=self._fleet.admin.namespace,
                election=ELECTION,
            )
        )  # fmt: skip


@contextmanager
def pair_of_replicas(plane: ControlPlane, fleet: Fleet, folder: Path) -> Iterator[Pair]:
    kubeconfig = folder / "kubeconfig.yaml"
    write_kubeconfig(kubeconfig, plane)
    with ExitStack() as stack:
        yield Pair(fleet, folder, kubeconfig, stack)
