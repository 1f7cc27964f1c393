"""Volumes of a rig as tests look at them."""

from __future__ import annotations

from tests.unit.world.rig import Rig, at, objects

ATTACHMENTS = ("volumeattachments", "storage.k8s.io")
DISK = "disk.simulated.machine.sapcloud.io"
POD_PATH = "/api/v1/namespaces/default/pods"
CLAIM_PATH = "/api/v1/namespaces/default/persistentvolumeclaims"


def attached(rig: Rig) -> dict[str, str]:
    """Volume to Node, of the attachments that are there; a mark shows those not attached."""
    return {
        str(at(a, "spec", "source", "persistentVolumeName")): str(at(a, "spec", "nodeName"))
        + ("" if at(a, "status", "attached") else "?")
        for a in rig.all(*ATTACHMENTS)
    }


def on_node(rig: Rig, node: str) -> tuple[list[str], list[str]]:
    """The handles of a Node's volumes: those attached, those in use."""
    found = rig.get("nodes", node)
    listed = [str(v["name"]) for v in objects(found, "status", "volumesAttached")]
    used = at(found, "status", "volumesInUse")
    names = used if isinstance(used, list) else []
    return [n.rpartition("^")[2] for n in listed], [str(n).rpartition("^")[2] for n in names]


def volume_of(rig: Rig, claim: str) -> str:
    return str(at(rig.get("persistentvolumeclaims", claim), "spec", "volumeName") or "")


def claim_phase(rig: Rig, name: str) -> object:
    return at(rig.get("persistentvolumeclaims", name), "status", "phase")


def volume_phase(rig: Rig, name: str) -> object:
    return at(rig.get("persistentvolumes", name), "status", "phase")


def told(rig: Rig, name: str) -> list[tuple[object, object]]:
    """The reasons and texts of the events of an object, in order."""
    about = [e for e in rig.all("events") if at(e, "involvedObject", "name") == name]
    return [(e.get("reason"), e.get("message")) for e in about]


async def boot(rig: Rig, *names: str, **spec: object) -> None:
    """Boot VMs until pods may run on their Nodes."""
    await rig.boot(*names, **spec)
    await rig.until(lambda: rig.ready(*names) and not any(rig.taints(n) for n in names))
