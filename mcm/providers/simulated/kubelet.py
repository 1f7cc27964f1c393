"""What a VM does in the cluster once it has booted: join, report conditions, send heartbeats.

One object serves all VMs: a kubelet here is a few method calls, not a process, so that ten thousand
of them fit in one event loop.
"""

from __future__ import annotations

import random
from typing import final

from mcm.api.core import LEASES, NODES, Node
from mcm.api.meta import JSONObject
from mcm.api.timestamps import micro_time
from mcm.client.client import Client
from mcm.client.errors import AlreadyExists, NotFound
from mcm.client.requests import PatchType
from mcm.clock import Clock
from mcm.informers.store import Store
from mcm.providers.simulated import node_objects
from mcm.providers.simulated.virtual_machine import VirtualMachine

LEASE_NAMESPACE = "kube-node-lease"
_LEASE_SECONDS = 40


@final
class Kubelets:
    """Speaks to the target cluster for every VM. Errors of the API are the caller's to retry."""

    def __init__(
        self,
        client: Client,
        nodes: Store[Node],
        *,
        clock: Clock,
        randomness: random.Random,
        heartbeat_interval: float,
    ) -> None:
        self._client = client
        self._nodes = nodes
        self._clock = clock
        self._random = randomness
        self._interval = heartbeat_interval

    async def register(self, vm: VirtualMachine) -> None:
        """Create the Node, NotReady; one that is there already is taken over as it is."""
        try:
            node = await self._client.create(
                NODES, node_objects.node_manifest(vm, self._clock.now())
            )
        except AlreadyExists:
            node = await self._client.get(NODES, vm.spec.node_name)
        self._nodes.observe(node)
        await self.heartbeat(vm)

    async def report(self, vm: VirtualMachine) -> None:
        """Write the Node's conditions if they are not what this VM's kubelet sees.

        A Node that is gone stays gone: a kubelet registers only when it starts.
        """
        node = self._nodes.get(vm.spec.node_name)
        if node is None:
            return
        changed = node_objects.changed_conditions(node, vm, self._clock.now())
        if not changed:
            return
        try:
            answer = await self._client.patch(
                NODES,
                node.metadata.name,
                {"metadata": {"uid": node.metadata.uid}, "status": {"conditions": changed}},
                subresource="status",
                patch_type=PatchType.STRATEGIC,
            )
        except NotFound:
            return
        self._nodes.observe(answer)

    async def heartbeat(self, vm: VirtualMachine) -> None:
        """Renew the Node's lease, creating it at first."""
        name = vm.spec.node_name
        renewed: JSONObject = {"renewTime": micro_time(self._clock.now())}
        try:
            await self._client.patch(LEASES, name, {"spec": renewed}, namespace=LEASE_NAMESPACE)
        except NotFound:
            body = _lease(name, renewed, owner=self._nodes.get(name))
            await self._client.create(LEASES, body, namespace=LEASE_NAMESPACE)

    def next_heartbeat(self) -> float:
        """Seconds to the next one, spread so that many kubelets do not beat in step."""
        return self._interval * self._random.uniform(0.8, 1.0)


def _lease(name: str, renewed: JSONObject, *, owner: Node | None) -> JSONObject:
    """It belongs to the Node, so that the garbage collector takes it away with it."""
    metadata: JSONObject = {"name": name, "namespace": LEASE_NAMESPACE}
    if owner is not None:
        reference = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": owner.metadata.uid}
        metadata["ownerReferences"] = [reference]
    spec: JSONObject = {
        "holderIdentity": name,
        "leaseDurationSeconds": _LEASE_SECONDS,
        **renewed,
    }
    return {"metadata": metadata, "spec": spec}
