from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from mcm.api.core import EmptyDirVolumeSource, Volume
from mcm.api.meta import JSONObject
from mcm.drain.volumes import claims_of
from tests.unit.drain.volumes.small_cluster import CSI, THERE, SmallCluster

EBS = "ebs.csi.aws.com"
NOT_ATTACHED = "the volume is not attached to the Node"


@dataclass(frozen=True)
class Case:
    """A kind of volume, how it is attached, and what comes of it."""

    source: JSONObject | None = None
    modes: tuple[str, ...] = ("ReadWriteOnce",)
    attachment: str = ""
    """The attacher; empty: there is no VolumeAttachment."""
    attached: bool = True
    in_attached: tuple[str, ...] = ()
    in_use: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    tracked: str = ""
    """By which attacher; empty: not tracked."""
    why: str = ""
    labels: dict[str, str] = field(default_factory=dict)


AWS: JSONObject = {"awsElasticBlockStore": {"volumeID": "aws://z/vol-1"}}
FLEX: JSONObject = {"flexVolume": {"driver": "vendor/disk"}}
NFS: JSONObject = {"nfs": {"server": "s", "path": "/"}}

CASES = {
    "csi by attachment": Case(attachment=CSI, tracked=CSI),
    "csi being attached": Case(attachment=CSI, attached=False, tracked=CSI),
    "csi by node status": Case(in_attached=(f"kubernetes.io/csi/{CSI}^h-c",), tracked=CSI),
    "csi in use": Case(in_use=(f"kubernetes.io/csi/{CSI}^h-c",), tracked=CSI),
    "csi of a longer handle": Case(
        in_attached=(f"kubernetes.io/csi/{CSI}^h-c1",), why=NOT_ATTACHED
    ),
    "csi of another driver": Case(in_attached=("kubernetes.io/csi/x^h-c",), why=NOT_ATTACHED),
    "csi without attachments": Case(why=NOT_ATTACHED),
    "csi rwop": Case(modes=("ReadWriteOncePod",), attachment=CSI, tracked=CSI),
    "csi rwx": Case(
        modes=("ReadWriteMany",),
        attachment=CSI,
        why="the volume may be attached to several Nodes (ReadWriteMany)",
    ),
    "csi rox among others": Case(
        modes=("ReadWriteOnce", "ReadOnlyMany"),
        attachment=CSI,
        why="the volume may be attached to several Nodes (ReadOnlyMany)",
    ),
    "no modes at all": Case(modes=(), attachment=CSI, tracked=CSI),
    "in-tree, served in-tree": Case(
        source=AWS, in_attached=("kubernetes.io/aws-ebs/aws://z/vol-1",), tracked=EBS
    ),
    "in-tree, served by csi": Case(
        source=AWS, in_attached=(f"kubernetes.io/csi/{EBS}^vol-1",), tracked=EBS
    ),
    "in-tree, another volume": Case(
        source=AWS, in_attached=(f"kubernetes.io/csi/{EBS}^vol-10",), why=NOT_ATTACHED
    ),
    "in-tree by attachment": Case(source=AWS, attachment=EBS, tracked=EBS),
    "gce pd": Case(
        source={"gcePersistentDisk": {"pdName": "d"}},
        labels={"topology.kubernetes.io/zone": "z"},
        in_use=("kubernetes.io/csi/pd.csi.storage.gke.io^projects/UNSPECIFIED/zones/z/disks/d",),
        tracked="pd.csi.storage.gke.io",
    ),
    "nfs": Case(source=NFS, why=NOT_ATTACHED),
    "host path": Case(source={"hostPath": {"path": "/"}}, why=NOT_ATTACHED),
    "local": Case(source={"local": {"path": "/"}}, why=NOT_ATTACHED),
    "flex, told by the provider": Case(
        source=FLEX,
        ids=("disk-1",),
        in_attached=("flexvolume-vendor/disk-1",),
        tracked="flexVolume",
    ),
    "flex, another volume": Case(
        source=FLEX, ids=("disk-1",), in_attached=("flexvolume-vendor/disk-10",), why=NOT_ATTACHED
    ),
    "flex, nobody knows": Case(
        source=FLEX, in_attached=("flexvolume-vendor/disk-1",), why=NOT_ATTACHED
    ),
    "flex by attachment": Case(source=FLEX, attachment="vendor", tracked="vendor"),
    "spec of wrong types": Case(
        source={"csi": {"driver": 1, "volumeHandle": []}}, why=NOT_ATTACHED
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_which_volumes_are_tracked(case: Case) -> None:
    cluster = SmallCluster()
    volume = cluster.claim("c", source=case.source, modes=case.modes, labels=case.labels)
    if case.attachment:
        cluster.attach(volume, attacher=case.attachment, attached=case.attached)
    cluster.attach("pv-of-somebody-else", attacher="other")
    cluster.attached, cluster.in_use = set(case.in_attached), set(case.in_use)
    cluster.ids = {volume: case.ids}
    pod = cluster.pod("p", "c")
    (holding,) = cluster.view().holdings_of(pod)
    assert (holding.claim, holding.volume) == ("default/c", volume)
    assert (holding.attacher if holding.tracked else "") == case.tracked
    assert holding.untracked == case.why
    assert bool(cluster.view().exclusive_of(pod)) == bool(case.tracked)


def test_an_attachment_to_another_node_makes_no_volume_of_this_one() -> None:
    cluster = SmallCluster()
    cluster.attach(cluster.claim("c"), THERE)
    assert cluster.view().exclusive_of(cluster.pod("p", "c")) == ()


def test_an_attached_volume_is_tracked_though_its_object_is_not_seen() -> None:
    cluster = SmallCluster()
    volume = cluster.claim("c")
    del cluster.volumes[volume]
    cluster.attach(volume)
    (holding,) = cluster.view().exclusive_of(cluster.pod("p", "c"))
    assert (holding.volume, holding.attacher) == (volume, CSI)


@pytest.mark.parametrize(
    ("bound", "why"),
    [(None, "its claim does not exist"), ("", "its claim is not bound to a volume")],
)
def test_a_claim_without_a_volume_is_said_to_have_none(bound: str | None, why: str) -> None:
    cluster = SmallCluster()
    if bound is not None:
        cluster.claim("c")
        unbound = cluster.claims["c"].spec.__class__()
        cluster.claims["c"] = cluster.claims["c"].__class__(
            metadata=cluster.claims["c"].metadata, spec=unbound
        )
    (holding,) = cluster.view().holdings_of(cluster.pod("p", "c"))
    assert holding.untracked == why
    assert not holding.tracked


def test_a_finished_pod_holds_nothing() -> None:
    cluster = SmallCluster()
    cluster.attach(cluster.claim("c"))
    (holding,) = cluster.view().holdings_of(cluster.pod("p", "c", phase="Succeeded"))
    assert holding.untracked == "the pod has finished"


def test_a_claim_that_is_mounted_twice_counts_once() -> None:
    cluster = SmallCluster()
    cluster.attach(cluster.claim("c"))
    pod = cluster.pod("p", "c", "c")
    assert len(cluster.view().exclusive_of(pod)) == 1
    assert [use.key for use in claims_of(pod)] == ["default/c"]


def test_an_ephemeral_volume_is_the_claim_of_that_name_if_it_is_the_pods_own() -> None:
    cluster = SmallCluster()
    cluster.attach(cluster.claim("p-cache", owner_uid="uid-p"))
    cluster.attach(cluster.claim("q-cache", owner_uid="uid-of-the-q-before"))
    mine, others = (cluster.pod(name, ephemeral=("cache",)) for name in "pq")
    (holding,) = cluster.view().exclusive_of(mine)
    assert (holding.claim, holding.ephemeral) == ("default/p-cache", True)
    (holding,) = cluster.view().holdings_of(others)
    assert holding.untracked == "the claim of that name is not the pod's own"


def test_inline_volumes_and_directories_are_no_claims() -> None:
    cluster = SmallCluster()
    inline = Volume(name="secrets")
    pod = cluster.pod("p", volumes=(inline, Volume(name="tmp", empty_dir=EmptyDirVolumeSource())))
    assert cluster.view().holdings_of(pod) == ()


def test_attachments_of_inline_volumes_are_tolerated() -> None:
    cluster = SmallCluster()
    cluster.attach("")
    cluster.attach(cluster.claim("c"))
    assert len(cluster.view().exclusive_of(cluster.pod("p", "c"))) == 1
