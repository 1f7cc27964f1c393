"""What a cluster says of Nodes it no longer hears from, as kube-controller-manager would.

A Node whose lease is not renewed for ``grace`` seconds gets all its conditions Unknown, and is
tainted as unreachable; NotReady and unschedulable Nodes are tainted as well. Renewals are timed by
when they were seen, on our own clock: a kubelet's clock may be off.
"""

from __future__ import annotations

from datetime import datetime
from typing import final

from mcm.api.core import LEASES, Lease, Taint
from mcm.api.meta import JSONObject
from mcm.api.timestamps import rfc3339, whole_seconds
from mcm.client.client import Client
from mcm.client.errors import NotFound
from mcm.client.requests import PatchType
from mcm.clock import Clock
from mcm.controllers.runtime import DONE, Outcome
from mcm.informers.change import Change
from mcm.informers.factory import InformerFactory
from mcm.providers.simulated.kubelet import LEASE_NAMESPACE
from mcm.sandbox.world.actor import Actor
from mcm.sandbox.world.kinds import NODES, Node

_UNREACHABLE = "node.kubernetes.io/unreachable"
_NOT_READY = "node.kubernetes.io/not-ready"
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_OURS = frozenset({_UNREACHABLE, _NOT_READY, _UNSCHEDULABLE})
_EVICTS = "NoExecute"
_REPORTED = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_STOPPED = "Kubelet stopped posting node status."
_NEVER_POSTED = "Kubelet never posted node status."


@final
class NodeLifecycle(Actor):
    """Keyed by Node; a timer per Node is armed for the moment its ``grace`` (seconds) would end."""

    name = "node-lifecycle"

    def __init__(
        self, client: Client, mirror: InformerFactory, *, clock: Clock, grace: float
    ) -> None:
        super().__init__(client, mirror, clock=clock)
        self._grace = grace
        self._heard: dict[str, float] = {}
        self._nodes = mirror.store(NODES)
        mirror.informer(LEASES, namespace=LEASE_NAMESPACE).add_handler(self._on_lease)
        mirror.informer(NODES).add_handler(self._on_node)

    def _on_lease(self, change: Change[Lease]) -> None:
        if change.new is None:
            return
        name = change.new.metadata.name
        if name not in self._nodes:
            return  # a Node that comes later is heard of then
        silent = self._clock.monotonic() - self._heard.get(name, float("-inf")) >= self._grace
        self._heard[name] = self._clock.monotonic()
        if silent:
            self._queue.add(name)

    def _on_node(self, change: Change[Node]) -> None:
        name = change.object.metadata.name
        if change.new is None:
            self._heard.pop(name, None)
            return
        if kubelet_speaks(change):
            self._heard[name] = self._clock.monotonic()
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
        conditions = unknown_conditions(node, rfc3339(self._clock.now()))
        return await self._patch(node, {"status": {"conditions": conditions}}, "status")

    async def _taint(self, node: Node) -> None:
        taints = tainted(node, self._clock.now())
        if taints != node.spec.taints:
            manifests = [_manifest(t) for t in taints]
            await self._patch(node, {"spec": {"taints": manifests or None}}, "")

    async def _patch(self, node: Node, patch: JSONObject, subresource: str) -> Node | None:
        """The version is a precondition where a list is replaced that others write as well."""
        precondition = {"uid": node.metadata.uid}
        if not subresource:
            precondition["resourceVersion"] = node.metadata.resource_version
        try:
            return await self._writer.patch(
                NODES,
                node.metadata.name,
                {"metadata": precondition, **patch},
                subresource=subresource,
                patch_type=PatchType.STRATEGIC if subresource else PatchType.MERGE,
            )
        except NotFound:
            return None


def unknown_conditions(node: Node, now: str) -> list[JSONObject]:
    """Return the conditions of a Node whose kubelet is silent, for a strategic patch; a kubelet
    that never said anything is told from one that stopped."""
    shown = {c.type: c.status for c in node.status.conditions}
    return [
        {
            "type": type_,
            "status": "Unknown",
            "reason": "NodeStatusUnknown" if type_ in shown else "NodeStatusNeverUpdated",
            "message": _STOPPED if type_ in shown else _NEVER_POSTED,
            "lastTransitionTime": now,
        }
        for type_ in _REPORTED
        if shown.get(type_) != "Unknown"
    ]


def tainted(node: Node, now: datetime) -> tuple[Taint, ...]:
    """Return the taints the Node should have: others' as they are, ours as its state calls for."""
    wanted = wanted_taints(node)
    kept = tuple(t for t in node.spec.taints if t.key not in _OURS or (t.key, t.effect) in wanted)
    missing = wanted - {(t.key, t.effect) for t in kept}
    added = (
        Taint(key=key, effect=effect, time_added=whole_seconds(now) if effect == _EVICTS else None)
        for key, effect in sorted(missing)
    )
    return (*kept, *added)


def wanted_taints(node: Node) -> set[tuple[str, str]]:
    """Return the (key, effect) pairs that a Node's state calls for."""
    ready = _status_of(node, "Ready")
    wanted = set()
    if ready == "Unknown":
        wanted |= {(_UNREACHABLE, "NoSchedule"), (_UNREACHABLE, _EVICTS)}
    elif ready != "True":
        wanted |= {(_NOT_READY, "NoSchedule"), (_NOT_READY, _EVICTS)}
    if node.spec.unschedulable:
        wanted.add((_UNSCHEDULABLE, "NoSchedule"))
    return wanted


def kubelet_speaks(change: Change[Node]) -> bool:
    """Tell whether a kubelet that was silent has posted again: as good as a renewal of its lease,
    which may come later."""
    old, new = change.old, change.new
    if old is None or new is None:
        return False
    return _status_of(old, "Ready") == "Unknown" != _status_of(new, "Ready")


def _status_of(node: Node, condition: str) -> str:
    return next((c.status for c in node.status.conditions if c.type == condition), "")


def _manifest(taint: Taint) -> JSONObject:
    manifest: JSONObject = {"key": taint.key, "effect": taint.effect}
    if taint.value:
        manifest["value"] = taint.value
    if taint.time_added:
        manifest["timeAdded"] = rfc3339(taint.time_added)
    return manifest
