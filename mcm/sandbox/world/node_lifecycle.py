"""What a cluster says of Nodes it no longer hears from, as kube-controller-manager would.

A Node whose lease is not renewed for ``grace`` seconds gets all its conditions Unknown, and is
tainted as unreachable; NotReady and unschedulable Nodes are tainted as well. Renewals are timed by
when they were seen, on our own clock: a kubelet's clock may be off.
"""

from __future__ import annotations

import asyncio
from typing import final

from mcm.api.core import LEASES, NODES, Lease, Node, Taint
from mcm.api.meta import JSONObject
from mcm.api.timestamps import rfc3339
from mcm.client.client import Client, PatchType
from mcm.client.errors import NotFound
from mcm.clock import Clock
from mcm.controllers.runtime import DONE, Controller, Outcome
from mcm.informers.change import Change
from mcm.informers.factory import InformerFactory
from mcm.providers.simulated.kubelet import LEASE_NAMESPACE
from mcm.workqueue import WorkQueue

_UNREACHABLE = "node.kubernetes.io/unreachable"
_NOT_READY = "node.kubernetes.io/not-ready"
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_OURS = frozenset({_UNREACHABLE, _NOT_READY, _UNSCHEDULABLE})
_MESSAGE = "Kubelet stopped posting node status."


@final
class NodeLifecycle:
    """One queue keyed by Node; a timer per Node is armed for the moment its grace would end."""

    def __init__(self, client: Client, *, clock: Clock, grace: float) -> None:
        self._client = client
        self._clock = clock
        self._grace = grace
        self._factory = InformerFactory(client, clock=clock, name="node-lifecycle")
        self._nodes = self._factory.store(NODES)
        leases = self._factory.informer(LEASES, namespace=LEASE_NAMESPACE)
        leases.add_handler(self._on_lease)
        self._factory.informer(NODES).add_handler(self._on_node)
        self._heard: dict[str, float] = {}
        self._queue: WorkQueue[str] = WorkQueue("node-lifecycle", clock=clock)
        self._controller = Controller(
            "node-lifecycle", self._queue, self._reconcile, workers=4, clock=clock
        )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._factory.run())
            await self._factory.wait_synced()
            group.create_task(self._controller.run())

    def _on_lease(self, change: Change[Lease]) -> None:
        if change.new is None:
            return
        name = change.new.metadata.name
        silent = self._clock.monotonic() - self._heard.get(name, float("-inf")) >= self._grace
        self._heard[name] = self._clock.monotonic()
        if silent:
            self._queue.add(name)

    def _on_node(self, change: Change[Node]) -> None:
        name = change.object.metadata.name
        if change.new is None:
            self._heard.pop(name, None)
            return
        self._heard.setdefault(name, self._clock.monotonic())
        self._queue.add(name)

    async def _reconcile(self, name: str) -> Outcome:
        node = self._nodes.get(name)
        if node is None:
            return DONE
        left = self._heard.get(name, self._clock.monotonic()) + self._grace
        left -= self._clock.monotonic()
        if left <= 0 and _status_of(node, "Ready") != "Unknown":
            node = await self._mark_unknown(node) or node
        await self._taint(node)
        if left <= 0:
            return DONE
        return Outcome(after=left, reason="grace of the node's lease")

    async def _mark_unknown(self, node: Node) -> Node | None:
        now = rfc3339(self._clock.now())
        conditions: list[JSONObject] = [
            {
                "type": condition.type,
                "status": "Unknown",
                "reason": "NodeStatusUnknown",
                "message": _MESSAGE,
                "lastTransitionTime": now,
            }
            for condition in node.status.conditions
            if condition.type in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
        ]
        return await self._patch(node, {"status": {"conditions": conditions}}, "status")

    async def _taint(self, node: Node) -> None:
        wanted = wanted_taints(node)
        kept = [t for t in node.spec.taints if t.key not in _OURS]
        have = {(t.key, t.effect) for t in node.spec.taints if t.key in _OURS}
        if have == wanted:
            return
        taints = [_manifest(t) for t in kept]
        taints += [{"key": key, "effect": effect} for key, effect in sorted(wanted)]
        await self._patch(node, {"spec": {"taints": taints or None}}, "")

    async def _patch(self, node: Node, patch: JSONObject, subresource: str) -> Node | None:
        """The version is a precondition where a list is replaced that others write as well."""
        precondition = {"uid": node.metadata.uid}
        if not subresource:
            precondition["resourceVersion"] = node.metadata.resource_version
        try:
            answer = await self._client.patch(
                NODES,
                node.metadata.name,
                {"metadata": precondition, **patch},
                subresource=subresource,
                patch_type=PatchType.STRATEGIC if subresource else PatchType.MERGE,
            )
        except NotFound:
            return None
        self._nodes.observe(answer)
        return answer


def wanted_taints(node: Node) -> set[tuple[str, str]]:
    """Return the (key, effect) pairs that a Node's state calls for."""
    ready = _status_of(node, "Ready")
    wanted = set()
    if ready == "Unknown":
        wanted |= {(_UNREACHABLE, "NoSchedule"), (_UNREACHABLE, "NoExecute")}
    elif ready != "True":
        wanted |= {(_NOT_READY, "NoSchedule"), (_NOT_READY, "NoExecute")}
    if node.spec.unschedulable:
        wanted.add((_UNSCHEDULABLE, "NoSchedule"))
    return wanted


def _status_of(node: Node, condition: str) -> str:
    return next((c.status for c in node.status.conditions if c.type == condition), "")


def _manifest(taint: Taint) -> JSONObject:
    manifest: JSONObject = {"key": taint.key, "effect": taint.effect}
    if taint.value:
        manifest["value"] = taint.value
    if taint.time_added:
        manifest["timeAdded"] = rfc3339(taint.time_added)
    return manifest
