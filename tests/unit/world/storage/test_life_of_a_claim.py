from __future__ import annotations

import pytest

from tests.unit.world.manifests import claim, pod, using
from tests.unit.world.rig import Rig, at, objects, on_rig

ATTACHMENTS = ("volumeattachments", "storage.k8s.io")
DISK = "disk.simulated.machine.sapcloud.io"


def attached(rig: Rig) -> dict[str, str]:
    """Volume to Node, of those that are attached."""
    return {
        str(at(a, "spec", "source", "persistentVolumeName")): str(at(a, "spec", "nodeName"))
        for a in rig.all(*ATTACHMENTS)
        if at(a, "status", "attached")
    }


def on_node(rig: Rig, node: str) -> tuple[list[str], list[str]]:
    """The handles of the volumes attached, and in use."""
    found = rig.get("nodes", node)
    listed = [str(v["name"]) for v in objects(found, "status", "volumesAttached")]
    used = [str(v) for v in objects(found, "status", "volumesInUse")]
    return [n.rpartition("^")[2] for n in listed], [n.rpartition("^")[2] for n in used]


def volume_of(rig: Rig, name: str) -> str:
    return str(at(rig.get("persistentvolumeclaims", name), "spec", "volumeName"))


def phase(rig: Rig, plural: str, name: str) -> object:
    return at(rig.get(plural, name), "status", "phase")


async def boot(rig: Rig, *names: str, **spec: object) -> None:
    await rig.boot(*names, **spec)
    await rig.until(lambda: rig.ready(*names) and not any(rig.taints(n) for n in names))


def test_a_claim_is_bound_its_volume_attached_and_its_pod_started_and_all_ends_with_the_pod() -> (
    None
):
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        await rig.create(claim("data"))
        await rig.pass_time(5)
        assert phase(rig, "persistentvolumeclaims", "data") == "Pending"
        assert rig.names("persistentvolumes") == []
        await rig.create(pod("p", volumes=using("data")))
        waited = await rig.until(lambda: rig.running() == ["p"])
        assert waited == pytest.approx(3, abs=0.1)  # to attach, and to start
        disk = volume_of(rig, "data")
        assert phase(rig, "persistentvolumeclaims", "data") == "Bound"
        assert phase(rig, "persistentvolumes", disk) == "Bound"
        assert attached(rig) == {disk: "a"}
        assert on_node(rig, "a") == ([disk], [disk])

        await rig.delete("/api/v1/namespaces/default/pods/p")
        await rig.until(lambda: "p" not in rig.names("pods"))
        left = await rig.until(lambda: not rig.all(*ATTACHMENTS))
        assert left == pytest.approx(1, abs=0.1)
        assert on_node(rig, "a") == ([], [])
        assert phase(rig, "persistentvolumeclaims", "data") == "Bound"

        await rig.delete("/api/v1/namespaces/default/persistentvolumeclaims/data")
        await rig.until(lambda: rig.names("persistentvolumes") == [], within=1)

    on_rig(scenario)
