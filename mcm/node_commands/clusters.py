"""The clusters that a command for Nodes talks to, and what they know of one Node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from mcm.api.core import NODES, Node
from mcm.api.machine import MACHINES, Machine
from mcm.api.names import LABEL_NODE
from mcm.client.client import Client
from mcm.client.errors import Forbidden, NotFound
from mcm.cluster_commands.connecting import read_all
from mcm.cluster_commands.running import Failed
from mcm.controllers.node_ownership import whose
from mcm.node_commands.node_name import Named


@final
@dataclass(frozen=True, slots=True)
class Clusters:
    """``target`` has the Nodes, ``control`` the machines; often they are one. Every call raises
    what the client raises.

    ``namespace`` is where machines are looked for; empty: wherever they may be read.
    ``usual_namespace`` is the one of whoever names none.
    """

    target: Client
    control: Client
    namespace: str
    usual_namespace: str

    async def name_of(self, named: Named) -> str:
        """Return the name of the Node that is meant. Raises Failed for a machine without one."""
        if not named.of_machine:
            return named.name
        machine = await self.control.get(
            MACHINES, named.name, namespace=self.namespace or self.usual_namespace
        )
        if not machine.node_name:
            raise Failed(f"machine {machine.metadata.key} has no node")
        return machine.node_name

    async def node(self, name: str) -> Node:
        return await self.target.get(NODES, name)

    async def machine_of(self, node: Node) -> Machine | None:
        """Return whose Node it is; None also where machines are unknown, or not ours to read."""
        return whose(node, await self._machines_on(node.metadata.name)).owner

    async def _machines_on(self, name: str) -> tuple[Machine, ...]:
        selector = f"{LABEL_NODE}={name}"
        for namespace in (self.namespace, self.namespace or self.usual_namespace):
            try:
                return await read_all(
                    self.control, MACHINES, namespace=namespace, label_selector=selector
                )
            except Forbidden:
                continue
            except NotFound:
                break
        return ()
