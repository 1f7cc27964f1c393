"""What a PersistentVolume is called in a Node's status, and by which driver it is attached.

``status.volumesAttached[].name`` and ``status.volumesInUse[]`` hold unique volume names:
``kubernetes.io/csi/<driver>^<handle>``, or ``<plugin>/<ID>`` of a plugin inside Kubernetes. Most of
these plugins are served by CSI drivers by now, under a handle made from the old ID by the rules of
Kubernetes' CSI translation; which of the two a cluster does is not ours to know, so both names are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, final

from mcm.api.core import PersistentVolume

_UNSPECIFIED = "UNSPECIFIED"
_ZONE_LABELS: Final = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_NEVER_ATTACHED: Final = frozenset(
    {"nfs", "hostPath", "local", "glusterfs", "cephfs", "quobyte", "flocker", "storageos"}
)
"""Sources of which no Node's status ever speaks: they are mounted, not attached."""


@final
@dataclass(frozen=True, slots=True)
class Identity:
    """``names``: as they may stand in a Node's status; empty: they cannot be computed.

    ``attacher`` is who attaches the volume, as far as the volume alone tells. ``kind`` is the
    member of its spec that says what it is, as ``csi`` or ``nfs``.
    """

    attacher: str = ""
    names: tuple[str, ...] = ()
    kind: str = ""

    @property
    def is_attachable(self) -> bool:
        return self.kind not in _NEVER_ATTACHED

    @property
    def must_be_asked_for(self) -> bool:
        """Only the provider can say what the volume is called, if anybody can."""
        return not self.names and bool(self.kind) and self.is_attachable


@final
@dataclass(frozen=True, slots=True)
class _InTree:
    """A plugin inside Kubernetes and the CSI driver that serves its volumes by now."""

    plugin: str
    member: str
    """Where in its source the ID stands."""
    driver: str
    handle: Callable[[str, PersistentVolume], str]
    """The driver's handle for the ID; empty if only the driver knows."""


def identity_of(volume: PersistentVolume) -> Identity:
    """Tell what the volume is called, from its spec alone. A spec of wrong types has no name."""
    csi = volume.spec.get("csi")
    if isinstance(csi, dict):
        driver, handle = _text(csi, "driver"), _text(csi, "volumeHandle")
        names = (csi_name(driver, handle),) if driver and handle else ()
        return Identity(driver, names, "csi")
    for kind, plugin in _IN_TREE.items():
        source = volume.spec.get(kind)
        if isinstance(source, dict):
            return _identity_in_tree(kind, plugin, source, volume)
    return Identity(kind=_kind_of(volume.spec))


def csi_name(driver: str, handle: str) -> str:
    """Return the unique volume name of a CSI volume."""
    return f"kubernetes.io/csi/{driver}^{handle}"


def is_name_for(name: str, volume_id: str) -> bool:
    """Tell whether the unique volume name ``name`` means what a provider calls ``volume_id``.

    Providers answer with the whole name or with its end: what follows the ``^`` of a CSI volume,
    or its last segments. ``vol-1`` means neither ``vol-10`` nor ``my-vol-1``.
    """
    return bool(volume_id) and (
        name == volume_id or name.endswith((f"^{volume_id}", f"/{volume_id}"))
    )


def _identity_in_tree(
    kind: str, plugin: _InTree, source: Mapping[str, object], volume: PersistentVolume
) -> Identity:
    volume_id = _text(source, plugin.member)
    if not volume_id:
        return Identity(plugin.driver, (), kind)
    handle = plugin.handle(volume_id, volume)
    migrated = (csi_name(plugin.driver, handle),) if handle else ()
    return Identity(plugin.driver, (f"{plugin.plugin}/{volume_id}", *migrated), kind)


def _kind_of(spec: Mapping[str, object]) -> str:
    """Return the source's member: the one that is no setting and holds an object."""
    known = (*_NEVER_ATTACHED, *(k for k, v in spec.items() if isinstance(v, dict)))
    settings = {"capacity", "claimRef", "nodeAffinity"}
    return next((k for k in known if k not in settings and isinstance(spec.get(k), dict)), "")


def _text(source: Mapping[str, object], member: str) -> str:
    value = source.get(member)
    return value if isinstance(value, str) else ""


# ---- the driver's handle for an ID of the older kind --------------------------------------------


def _same(volume_id: str, _volume: PersistentVolume) -> str:
    return volume_id


def _ebs_handle(volume_id: str, _volume: PersistentVolume) -> str:
    """``aws://eu-west-1a/vol-1`` and ``aws:///vol-1`` are ``vol-1`` to the driver."""
    return volume_id.rpartition("/")[2] if volume_id.startswith("aws://") else volume_id


def _pd_handle(name: str, volume: PersistentVolume) -> str:
    zones = next((z for label in _ZONE_LABELS if (z := volume.metadata.labels.get(label))), "")
    if "__" in zones:  # replicated over zones of one region
        region = zones.split("__")[0].rpartition("-")[0]
        return f"projects/{_UNSPECIFIED}/regions/{region}/disks/{name}"
    return f"projects/{_UNSPECIFIED}/zones/{zones or _UNSPECIFIED}/disks/{name}"


def _unknown(_volume_id: str, _volume: PersistentVolume) -> str:
    return ""


_IN_TREE: Final[Mapping[str, _InTree]] = {
    "awsElasticBlockStore": _InTree(
        "kubernetes.io/aws-ebs", "volumeID", "ebs.csi.aws.com", _ebs_handle
    ),
    "gcePersistentDisk": _InTree(
        "kubernetes.io/gce-pd", "pdName", "pd.csi.storage.gke.io", _pd_handle
    ),
    "azureDisk": _InTree("kubernetes.io/azure-disk", "diskURI", "disk.csi.azure.com", _same),
    # A share has a handle of five parts, and is mounted, not attached.
    "azureFile": _InTree("kubernetes.io/azure-file", "shareName", "file.csi.azure.com", _unknown),
    "cinder": _InTree("kubernetes.io/cinder", "volumeID", "cinder.csi.openstack.org", _same),
    "vsphereVolume": _InTree(
        "kubernetes.io/vsphere-volume", "volumePath", "csi.vsphere.vmware.com", _same
    ),
    "portworxVolume": _InTree(
        "kubernetes.io/portworx-volume", "volumeID", "pxd.portworx.com", _same
    ),
}
