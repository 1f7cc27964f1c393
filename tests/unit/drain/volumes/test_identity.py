from __future__ import annotations

import pytest

from mcm.api.core import PersistentVolume
from mcm.api.meta import JSONObject, ObjectMeta
from mcm.drain.volumes.identity import identity_of, is_name_for

ZONE = "topology.kubernetes.io/zone"
PD = "kubernetes.io/csi/pd.csi.storage.gke.io^"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"


def volume(source: JSONObject, **labels: str) -> PersistentVolume:
    spec: JSONObject = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "claimRef": {"name": "c"},
        "nodeAffinity": {"required": {}},
        "storageClassName": "fast",
        **source,
    }
    return PersistentVolume(metadata=ObjectMeta(name="pv", labels=labels), spec=spec)


IN_TREE_AND_MIGRATED = [
    (
        {"awsElasticBlockStore": {"volumeID": "aws://eu-west-1a/vol-1"}},
        {},
        "ebs.csi.aws.com",
        ["kubernetes.io/aws-ebs/aws://eu-west-1a/vol-1", "kubernetes.io/csi/ebs.csi.aws.com^vol-1"],
    ),
    (
        {"awsElasticBlockStore": {"volumeID": "aws:///vol-1"}},
        {},
        "ebs.csi.aws.com",
        ["kubernetes.io/aws-ebs/aws:///vol-1", "kubernetes.io/csi/ebs.csi.aws.com^vol-1"],
    ),
    (
        {"awsElasticBlockStore": {"volumeID": "vol-1"}},
        {},
        "ebs.csi.aws.com",
        ["kubernetes.io/aws-ebs/vol-1", "kubernetes.io/csi/ebs.csi.aws.com^vol-1"],
    ),
    (
        {"gcePersistentDisk": {"pdName": "d"}},
        {ZONE: "eu-west1-b"},
        "pd.csi.storage.gke.io",
        [
            "kubernetes.io/gce-pd/d",
            f"{PD}projects/UNSPECIFIED/zones/eu-west1-b/disks/d",
        ],
    ),
    (
        {"gcePersistentDisk": {"pdName": "d"}},
        {OLD_ZONE: "eu-west1-b__eu-west1-c", ZONE: "not-asked"},
        "pd.csi.storage.gke.io",
        [
            "kubernetes.io/gce-pd/d",
            f"{PD}projects/UNSPECIFIED/regions/eu-west1/disks/d",
        ],
    ),
    (
        {"gcePersistentDisk": {"pdName": "d"}},
        {},
        "pd.csi.storage.gke.io",
        [
            "kubernetes.io/gce-pd/d",
            f"{PD}projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
        ],
    ),
    (
        {"azureDisk": {"diskName": "d", "diskURI": "/subscriptions/s/disks/d"}},
        {},
        "disk.csi.azure.com",
        [
            "kubernetes.io/azure-disk//subscriptions/s/disks/d",
            "kubernetes.io/csi/disk.csi.azure.com^/subscriptions/s/disks/d",
        ],
    ),
    (
        {"azureFile": {"secretName": "s", "shareName": "share"}},
        {},
        "file.csi.azure.com",
        ["kubernetes.io/azure-file/share"],
    ),
    (
        {"cinder": {"volumeID": "c-1"}},
        {},
        "cinder.csi.openstack.org",
        ["kubernetes.io/cinder/c-1", "kubernetes.io/csi/cinder.csi.openstack.org^c-1"],
    ),
    (
        {"vsphereVolume": {"volumePath": "[ds] v/a.vmdk"}},
        {},
        "csi.vsphere.vmware.com",
        [
            "kubernetes.io/vsphere-volume/[ds] v/a.vmdk",
            "kubernetes.io/csi/csi.vsphere.vmware.com^[ds] v/a.vmdk",
        ],
    ),
    (
        {"portworxVolume": {"volumeID": "px"}},
        {},
        "pxd.portworx.com",
        ["kubernetes.io/portworx-volume/px", "kubernetes.io/csi/pxd.portworx.com^px"],
    ),
    (
        {"csi": {"driver": "d.example.com", "volumeHandle": "a^b/c"}},
        {},
        "d.example.com",
        ["kubernetes.io/csi/d.example.com^a^b/c"],
    ),
]


@pytest.mark.parametrize(("source", "labels", "attacher", "names"), IN_TREE_AND_MIGRATED)
def test_names_of_volumes_whose_kind_is_known(
    source: JSONObject, labels: dict[str, str], attacher: str, names: list[str]
) -> None:
    identity = identity_of(volume(source, **labels))
    assert (identity.attacher, list(identity.names)) == (attacher, names)
    assert not identity.must_be_asked_for


@pytest.mark.parametrize(
    ("source", "asked"),
    [
        ({"nfs": {"server": "s", "path": "/"}}, False),
        ({"hostPath": {"path": "/x"}}, False),
        ({"local": {"path": "/x"}}, False),
        ({"cephfs": {"monitors": []}}, False),
        ({"flexVolume": {"driver": "vendor/x"}}, True),
        ({"iscsi": {"iqn": "i"}}, True),
        ({"fc": {"lun": 1}}, True),
        ({"csi": {"driver": "d.example.com", "volumeHandle": 7}}, True),
        ({"csi": "nonsense"}, False),
        ({"awsElasticBlockStore": {"volumeID": None}}, True),
        ({}, False),
    ],
)
def test_names_of_others_only_the_provider_can_tell_if_they_are_attached_at_all(
    source: JSONObject, asked: bool
) -> None:
    identity = identity_of(volume(source))
    assert identity.names == ()
    assert identity.must_be_asked_for is asked


@pytest.mark.parametrize(
    ("name", "volume_id", "is_it"),
    [
        ("kubernetes.io/csi/ebs.csi.aws.com^vol-1", "vol-1", True),
        ("kubernetes.io/csi/ebs.csi.aws.com^vol-10", "vol-1", False),
        ("kubernetes.io/csi/ebs.csi.aws.com^my-vol-1", "vol-1", False),
        ("kubernetes.io/aws-ebs/aws://eu-west-1a/vol-1", "vol-1", True),
        ("kubernetes.io/aws-ebs/aws://eu-west-1a/vol-1", "aws://eu-west-1a/vol-1", True),
        ("kubernetes.io/aws-ebs/vol-1/snap", "vol-1", False),
        ("kubernetes.io/csi/x^vol-1", "kubernetes.io/csi/x^vol-1", True),
        ("kubernetes.io/csi/x^vol-1", "vol.1", False),
        ("kubernetes.io/csi/x^vol-1", ".*", False),
        ("kubernetes.io/csi/x^", "", False),
    ],
)
def test_a_providers_id_means_a_whole_name_or_its_last_segments(
    name: str, volume_id: str, is_it: bool
) -> None:
    assert is_name_for(name, volume_id) is is_it
