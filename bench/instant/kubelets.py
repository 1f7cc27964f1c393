"""Kubelets of VMs that take no time: a Machine with a provider ID gets a Ready Node."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Final, final

from bench.instant import manifests
from mcm.api.core import LEASES, NODES
from mcm.api.machine import Machine
from mcm.api.names import LABEL_NODE
from mcm.api.timestamps import micro_time
from mcm.client.client import Client
from mcm.client.errors import AlreadyExists, KubeError, NotFound
from mcm.client.requests import PatchType
from mcm.clock import SystemClock
from mcm.informers import Change

_BEATS_EVERY: Final = 10.0
_AT_ONCE: Final = 32


class KubeletFailed(Exception):
    """A Node could not join or be changed; the text says which and why."""


@final
class Kubelets:
    """Add :meth:`on_machine` to an informer of Machines. ``fleet`` marks the Nodes.

    A Node bears the name in the machine's ``node`` label, or the machine's own. Each machine joins
    once: a Node that somebody deleted does not come back.
    """

    def __init__(self, client: Client, *, fleet: str, tasks: asyncio.TaskGroup) -> None:
        self._client = client
        self._fleet = fleet
        self._tasks = tasks
        self._joined: set[str] = set()
        self._alive: set[str] = set()

    def on_machine(self, change: Change[Machine]) -> None:
        machine = change.new
        if machine is None:
            self._joined.discard(change.object.metadata.uid)
            self._alive.discard(node_name(change.object))
            return
        uid = machine.metadata.uid
        going = machine.metadata.deletion_timestamp is not None
        if not machine.spec.provider_id or going or uid in self._joined:
            return
        self._joined.add(uid)
        self._tasks.create_task(self._join(machine))

    async def beat(self) -> None:
        """Renew the leases of all Nodes every ten seconds, until cancelled."""
        while True:
            due = time.monotonic() + _BEATS_EVERY
            names = sorted(self._alive)
            for begin in range(0, len(names), _AT_ONCE):
                chosen = names[begin : begin + _AT_ONCE]
                await asyncio.gather(*(self._renew(name) for name in chosen))
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    async def kill(self, nodes: Iterable[str]) -> None:
        """Let the VMs of these Nodes die: their kubelets are Ready no more."""
        async with asyncio.TaskGroup() as group:
            for name in nodes:
                self._alive.discard(name)
                group.create_task(self._die(name))

    async def _join(self, machine: Machine) -> None:
        name = node_name(machine)
        try:
            node = manifests.node(name, machine.spec.provider_id, self._fleet)
            await self._client.create(NODES, node)
        except AlreadyExists:
            pass  # sent twice, as an answer was lost
        except KubeError as error:
            raise KubeletFailed(f"the Node {name} cannot join: {error}") from error
        if machine.metadata.uid in self._joined:  # else it went meanwhile
            self._alive.add(name)

    async def _renew(self, name: str) -> None:
        lease = manifests.lease(name, self._fleet, micro_time(SystemClock().now()))
        try:
            try:
                spec = {"spec": lease["spec"]}
                await self._client.patch(LEASES, name, spec, namespace=manifests.LEASES_OF_NODES)
            except NotFound:
                await self._client.create(LEASES, lease, namespace=manifests.LEASES_OF_NODES)
        except KubeError as error:
            raise KubeletFailed(f"the Node {name} cannot renew its lease: {error}") from error

    async def _die(self, name: str) -> None:
        try:
            await self._client.patch(
                NODES,
                name,
                manifests.dead_kubelet(),
                subresource="status",
                patch_type=PatchType.STRATEGIC,
            )
        except NotFound:
            return
        except KubeError as error:
            raise KubeletFailed(f"the Node {name} cannot be marked as dead: {error}") from error


def node_name(machine: Machine) -> str:
    """Return the name under which the machine's VM joins."""
    return machine.metadata.labels.get(LABEL_NODE) or machine.metadata.name
