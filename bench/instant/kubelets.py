"""Kubelets of VMs that take no time: a Machine with a provider ID gets a Ready Node."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import final

from bench.instant import manifests
from mcm.api.core import NODES
from mcm.api.machine import Machine
from mcm.api.names import LABEL_NODE
from mcm.client.client import Client
from mcm.client.errors import AlreadyExists, KubeError, NotFound
from mcm.client.requests import PatchType
from mcm.informers import Change


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

    def on_machine(self, change: Change[Machine]) -> None:
        machine = change.new
        if machine is None:
            self._joined.discard(change.object.metadata.uid)
            return
        uid = machine.metadata.uid
        going = machine.metadata.deletion_timestamp is not None
        if not machine.spec.provider_id or going or uid in self._joined:
            return
        self._joined.add(uid)
        self._tasks.create_task(self._join(node_name(machine), machine.spec.provider_id))

    async def kill(self, nodes: Iterable[str]) -> None:
        """Let the VMs of these Nodes die: their kubelets are Ready no more."""
        async with asyncio.TaskGroup() as group:
            for name in nodes:
                group.create_task(self._die(name))

    async def _join(self, name: str, provider_id: str) -> None:
        try:
            node = manifests.node(name, provider_id, self._fleet)
            await self._client.create(NODES, node)
        except AlreadyExists:
            return  # sent twice, as an answer was lost
        except KubeError as error:
            raise KubeletFailed(f"the Node {name} cannot join: {error}") from error

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
