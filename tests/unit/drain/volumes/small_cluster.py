"""A cluster of claims, volumes, attachments and pods, to be changed step by step and looked at."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from mcm.api.core import (
    AttachedVolume,
    ClaimVolumeSource,
    Node,
    NodeStatus,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    Volume,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeAttachmentStatus,
    VolumeError,
)
from mcm.api.meta import JSONObject, ObjectMeta, OwnerReference
from mcm.drain.request import Limits
from mcm.drain.volumes import Handover, NodeVolumes, advanced, node_volumes, opened

HERE = "node-a"
THERE = "node-b"
START = datetime(2026, 1, 1, 12, tzinfo=UTC)
CSI = "csi.example.com"


class SmallCluster:
    """Whatever a test changes, the next look sees."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.claims: dict[str, PersistentVolumeClaim] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.attachments: dict[tuple[str, str], VolumeAttachment] = {}
        self.attached: set[str] = set()
        self.in_use: set[str] = set()
        self.ids: dict[str, tuple[str, ...]] = {}
        self.stale = ""
        self.now = START
        self.limits = Limits()

    def pod(
        self,
        name: str,
        *claims: str,
        node: str = HERE,
        uid: str = "",
        owner: str = "StatefulSet",
        phase: str = "Running",
        grace: int | None = 30,
        ends: datetime | None = None,
        ephemeral: Iterable[str] = (),
        unscheduled: str = "",
        volumes: tuple[Volume, ...] = (),
    ) -> Pod:
        pod = Pod(
            metadata=ObjectMeta(
                name=name,
                namespace="default",
                uid=uid or f"uid-{name}",
                deletion_timestamp=ends,
                owner_references=(_owner(owner),) if owner else (),
            ),
            spec=PodSpec(
                node_name=node,
                termination_grace_period_seconds=grace,
                volumes=(
                    *(
                        Volume(name=c, persistent_volume_claim=ClaimVolumeSource(claim_name=c))
                        for c in claims
                    ),
                    *(Volume(name=e, ephemeral={}) for e in ephemeral),
                    *volumes,
                ),
            ),
            status=PodStatus(
                phase=phase,
                conditions=(
                    (PodCondition(type="PodScheduled", status="False", reason=unscheduled),)
                    if unscheduled
                    else ()
                ),
            ),
        )
        self.pods[pod.metadata.uid] = pod
        return pod

    def claim(
        self,
        name: str,
        *,
        volume: str = "",
        source: JSONObject | None = None,
        modes: tuple[str, ...] = ("ReadWriteOnce",),
        owner_uid: str = "",
        labels: dict[str, str] | None = None,
    ) -> str:
        """Make a claim bound to a volume of its own; return the volume's name."""
        volume = volume or f"pv-{name}"
        self.claims[name] = PersistentVolumeClaim(
            metadata=ObjectMeta(
                name=name,
                namespace="default",
                owner_references=(_owner("Pod", owner_uid),) if owner_uid else (),
            ),
            spec=PersistentVolumeClaimSpec(volume_name=volume),
        )
        spec: JSONObject = {"accessModes": list(modes), "capacity": {"storage": "1Gi"}}
        spec["claimRef"] = {"namespace": "default", "name": name}
        spec |= source or {"csi": {"driver": CSI, "volumeHandle": f"h-{name}"}}
        self.volumes[volume] = PersistentVolume(
            metadata=ObjectMeta(name=volume, uid=f"uid-{volume}", labels=labels or {}), spec=spec
        )
        return volume

    def attach(
        self,
        volume: str,
        node: str = HERE,
        *,
        attached: bool = True,
        attacher: str = CSI,
        error: str = "",
        leaving: bool = False,
    ) -> None:
        failure = VolumeError(message=error) if error else None
        self.attachments[volume, node] = VolumeAttachment(
            metadata=ObjectMeta(
                name=f"{volume}-{node}", deletion_timestamp=self.now if leaving else None
            ),
            spec=VolumeAttachmentSpec(
                attacher=attacher,
                node_name=node,
                source=VolumeAttachmentSource(persistent_volume_name=volume),
            ),
            status=VolumeAttachmentStatus(
                attached=attached,
                attach_error=failure if node != HERE else None,
                detach_error=failure if node == HERE else None,
            ),
        )

    def detach(self, volume: str, node: str = HERE) -> None:
        del self.attachments[volume, node]

    def stateful(self, name: str, *, attacher: str = CSI) -> Pod:
        """A pod with one claim of its own, attached here."""
        self.attach(self.claim(f"data-{name}"), attacher=attacher)
        return self.pod(name, f"data-{name}")

    def stateful_left(self, name: str) -> str:
        """The volume of such a pod, which nobody saw: attached here, and no pod uses it."""
        volume = self.claim(f"data-{name}")
        self.attach(volume)
        return volume

    def end(self, pod: Pod) -> None:
        del self.pods[pod.metadata.uid]

    def successor(self, of: Pod, *, node: str = "", phase: str = "Pending", **more: str) -> Pod:
        """The same name and claims, another UID."""
        claims = [
            v.persistent_volume_claim.claim_name
            for v in of.spec.volumes
            if v.persistent_volume_claim
        ]
        uid = f"{of.metadata.uid}-next"
        return self.pod(of.metadata.name, *claims, node=node, uid=uid, phase=phase, **more)  # type: ignore[arg-type]

    @property
    def node(self) -> Node:
        return Node(
            metadata=ObjectMeta(name=HERE),
            status=NodeStatus(
                volumes_attached=tuple(AttachedVolume(name=n) for n in sorted(self.attached)),
                volumes_in_use=tuple(sorted(self.in_use)),
            ),
        )

    def view(self) -> NodeVolumes:
        return node_volumes(
            HERE,
            self.node,
            self.pods.values(),
            self.claims.values(),
            self.volumes.values(),
            self.attachments.values(),
            ids=self.ids,
            stale=self.stale,
        )

    def ask(self, pod: Pod) -> Handover:
        handover = opened(pod, self.view(), self.now)
        assert handover is not None
        return self.look(handover)

    def look(self, handover: Handover, *, after: float = 0.0) -> Handover:
        self.now += timedelta(seconds=after)
        return advanced(handover, self.view(), self.limits, self.now)


def _owner(kind: str, uid: str = "owner-uid") -> OwnerReference:
    return OwnerReference(api_version="apps/v1", kind=kind, name="owner", uid=uid, controller=True)
