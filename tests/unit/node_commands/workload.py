"""Pods, budgets and volumes of a Node as manifests, and a kubelet that ends what is deleted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from mcm.api.core import POD_DISRUPTION_BUDGETS, PODS, VOLUME_ATTACHMENTS
from mcm.api.meta import JSONObject
from mcm.client.client import Client
from mcm.client.errors import Conflict, NotFound
from mcm.clock import Clock

HERE = "node-1"
DRIVER = "csi.example.com"
READY: JSONObject = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def owner(kind: str, name: str) -> JSONObject:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"{kind}-{name}-uid",
            "controller": True}  # fmt: skip


def pod(
    name: str,
    *,
    app: str = "web",
    of: str = "ReplicaSet",
    grace: int = 30,
    claim: str = "",
    labels: JSONObject | None = None,
    annotations: JSONObject | None = None,
    finalizers: Sequence[str] = (),
) -> JSONObject:
    """A running pod on the Node; ``of`` is the kind of its owner, empty: it has none."""
    metadata: JSONObject = {
        "name": name,
        "namespace": "ns",
        "labels": {"app": app, **(labels or {})},
        "annotations": annotations or {},
        "finalizers": list(finalizers),
    }
    if of:
        metadata["ownerReferences"] = [owner(of, app)]
    spec: JSONObject = {
        "nodeName": HERE,
        "containers": [{"name": "main", "image": "x"}],
        "terminationGracePeriodSeconds": grace,
    }
    if claim:
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": READY}


def budget(
    name: str, *, app: str = "web", allowed: int, healthy: int = 3, desired: int = 2
) -> JSONObject:
    """A budget whose status says so."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"minAvailable": desired, "selector": {"matchLabels": {"app": app}}},
        "status": {
            "observedGeneration": 1,
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": 3,
        },
    }


def volume(name: str) -> Sequence[JSONObject]:
    """A claim of that name, bound to a volume that is attached to the Node."""
    handle = f"handle-{name}"
    return (
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"pv-{name}"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "csi": {"driver": DRIVER, "volumeHandle": handle},
                "claimRef": {"namespace": "ns", "name": name},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "ns"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "volumeName": f"pv-{name}",
            },
            "status": {"phase": "Bound"},
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": {"name": f"csi-{name}"},
            "spec": {
                "attacher": DRIVER,
                "nodeName": HERE,
                "source": {"persistentVolumeName": f"pv-{name}"},
            },
            "status": {"attached": True},
        },
    )


class Cluster:
    """Kubelet, disruption controller and attach/detach controller, as slow as pods allow them."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self.detach_after = timedelta(0)
        self.stuck: set[str] = set()
        """Pods that do not end."""

    async def run(self) -> None:
        while True:
            await self._end_pods()
            await self._clock.sleep(0.5)

    async def _end_pods(self) -> None:
        now = self._clock.now()
        for found in (await self._client.list_page(PODS)).items:
            ends = found.metadata.deletion_timestamp
            if ends is None or ends > now or found.metadata.name in self.stuck:
                continue
            await self._client.delete(
                PODS, found.metadata.name, namespace="ns", grace_period_seconds=0
            )
            for mounted in found.spec.volumes:
                if mounted.persistent_volume_claim is not None:
                    await self._detach(mounted.persistent_volume_claim.claim_name)
            await self._restore(found.metadata.labels.get("app", ""), found.metadata.name)

    async def _detach(self, claim: str) -> None:
        try:
            await self._client.delete(VOLUME_ATTACHMENTS, f"csi-{claim}")
        except NotFound:
            return

    async def _restore(self, app: str, pod_name: str) -> None:
        """The pod's successor serves: its budget allows one more."""
        for found in (await self._client.list_page(POD_DISRUPTION_BUDGETS)).items:
            if (found.spec.selector and found.spec.selector.match_labels.get("app")) != app:
                continue
            status = {
                "disruptionsAllowed": found.status.disruptions_allowed + 1,
                "disruptedPods": {pod_name: None},
            }
            try:
                await self._client.patch(
                    POD_DISRUPTION_BUDGETS,
                    found.metadata.name,
                    {"status": status},
                    namespace="ns",
                    subresource="status",
                )
            except Conflict:
                continue
