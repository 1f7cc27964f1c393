"""The StorageClasses every sandbox begins with, and which class a claim means."""

from __future__ import annotations

from collections.abc import Iterable

from mcm.api.meta import JSONObject
from mcm.providers.simulated.volumes import ATTACH_REQUIRED
from mcm.sandbox.world.kinds import PersistentVolumeClaim, StorageClass

DISK_CLASS, DISK_DRIVER = "simulated-disk", "disk.simulated.machine.sapcloud.io"
SHARE_CLASS, SHARE_DRIVER = "simulated-share", "share.simulated.machine.sapcloud.io"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
_DEFAULT = "storageclass.kubernetes.io/is-default-class"


def class_manifests() -> list[JSONObject]:
    """Return the default class, of disks that one Node at a time may have, and one of shares."""
    return [
        _manifest(DISK_CLASS, DISK_DRIVER, binding=WAIT_FOR_FIRST_CONSUMER, default=True),
        _manifest(
            SHARE_CLASS, SHARE_DRIVER, binding="Immediate", parameters={ATTACH_REQUIRED: "false"}
        ),
    ]


def _manifest(
    name: str,
    driver: str,
    *,
    binding: str,
    default: bool = False,
    parameters: dict[str, str] | None = None,
) -> JSONObject:
    manifest: JSONObject = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": {_DEFAULT: "true"} if default else {}},
        "provisioner": driver,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": binding,
    }
    return {**manifest, "parameters": parameters} if parameters else manifest


def default_class(classes: Iterable[StorageClass]) -> StorageClass | None:
    """Return the newest of those marked as default, by name among equals; None if none is."""
    marked = [c for c in classes if c.metadata.annotations.get(_DEFAULT) == "true"]
    marked.sort(key=lambda c: c.metadata.name)
    return max(marked, key=_created, default=None)


def _created(storage_class: StorageClass) -> float:
    created = storage_class.metadata.creation_timestamp
    return created.timestamp() if created is not None else 0.0


def waits_for_consumer(storage_class: StorageClass | None) -> bool:
    return storage_class is not None and (
        storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    )


def provisions(storage_class: StorageClass | None) -> bool:
    """Tell whether volumes of this class are made on demand; else somebody must make them."""
    return storage_class is not None and storage_class.provisioner not in ("", NO_PROVISIONER)


def class_name(claim: PersistentVolumeClaim) -> str:
    return claim.spec.storage_class_name or ""
