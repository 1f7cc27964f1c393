from __future__ import annotations

import pytest

from tests.unit.world.manifests import claim, pod, storage_class, using, volume
from tests.unit.world.rig import Rig, at, conditions, objects, on_rig
from tests.unit.world.storage.scene import (
    ATTACHMENTS,
    CLAIM_PATH,
    DISK,
    POD_PATH,
    attached,
    boot,
    claim_phase,
    on_node,
    told,
    volume_of,
    volume_phase,
)


def test_a_volume_lives_as_long_as_its_claim_and_is_attached_as_long_as_its_pod_lives() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        await rig.create(claim("data"))
        await rig.pass_time(5)
        assert claim_phase(rig, "data") == "Pending"
        assert rig.names("persistentvolumes") == []
        await rig.create(pod("p", volumes=using("data")))
        waited = await rig.until(lambda: rig.running() == ["p"])
        assert waited == pytest.approx(3, abs=0.1)  # to attach, and to start
        disk = volume_of(rig, "data")
        assert (claim_phase(rig, "data"), volume_phase(rig, disk)) == ("Bound", "Bound")
        assert attached(rig) == {disk: "a"}
        assert on_node(rig, "a") == ([disk], [disk])

        await rig.delete(f"{POD_PATH}/p")
        await rig.until(lambda: "p" not in rig.names("pods"))
        left = await rig.until(lambda: not rig.all(*ATTACHMENTS))
        assert left == pytest.approx(1, abs=0.1)
        assert on_node(rig, "a") == ([], [])
        assert claim_phase(rig, "data") == "Bound"

        await rig.delete(f"{CLAIM_PATH}/data")
        await rig.until(lambda: rig.names("persistentvolumes") == [], within=1)

    on_rig(scenario)


def test_a_pod_is_shown_to_be_created_and_told_when_its_volume_is_attached() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        await rig.create(claim("data"), pod("p", volumes=using("data")))
        await rig.pass_time(1)
        waiting = rig.get("pods", "p")
        container = objects(waiting, "status", "containerStatuses")[0]
        assert at(container, "state", "waiting", "reason") == "ContainerCreating"
        assert at(waiting, "status", "phase") == "Pending"
        assert conditions(waiting)["PodScheduled"]["status"] == "True"
        assert attached(rig) == {volume_of(rig, "data"): "a?"}
        assert on_node(rig, "a") == ([], [])
        await rig.until(lambda: rig.running() == ["p"])
        succeeded = f'AttachVolume.Attach succeeded for volume "{volume_of(rig, "data")}"'
        assert told(rig, "p") == [("SuccessfulAttachVolume", succeeded)]
        assert [reason for reason, _ in told(rig, "data")] == ["ProvisioningSucceeded"]

    on_rig(scenario)


def test_what_is_made_for_a_claim_is_what_it_asked_for_in_the_zone_of_its_node() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a", zone="z1")
        await rig.create(claim("data", size="3Gi"), pod("p", volumes=using("data")))
        await rig.until(lambda: claim_phase(rig, "data") == "Bound")
        made = rig.get("persistentvolumes", volume_of(rig, "data"))
        assert at(made, "spec", "capacity") == {"storage": "3Gi"}
        assert at(made, "spec", "storageClassName") == "simulated-disk"
        assert at(made, "spec", "persistentVolumeReclaimPolicy") == "Delete"
        assert at(made, "spec", "csi", "driver") == DISK
        terms = objects(made, "spec", "nodeAffinity", "required", "nodeSelectorTerms")
        zones = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z1"]}
        assert terms == [{"matchExpressions": [zones]}]
        assert at(rig.get("persistentvolumeclaims", "data"), "status", "capacity") == {
            "storage": "3Gi"
        }

    on_rig(scenario)


def test_a_share_is_bound_at_once_and_holds_no_pod_on_any_node() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a", "b")
        await rig.create(
            claim("share", modes=("ReadWriteMany",), storageClassName="simulated-share")
        )
        await rig.until(lambda: claim_phase(rig, "share") == "Bound", within=1)
        await rig.create(*(pod(f"p{i}", volumes=using("share")) for i in range(4)))
        waited = await rig.until(lambda: len(rig.running()) == 4)
        assert waited == pytest.approx(1, abs=0.1)
        assert set(rig.placed().values()) == {"a", "b"}
        assert attached(rig) == {}
        assert on_node(rig, "a") == ([], [])

    on_rig(scenario)


def test_volumes_made_by_hand_are_given_to_the_claims_they_satisfy_and_kept() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        await rig.create(volume("big", size="9Gi"), volume("small", size="2Gi"))
        await rig.until(lambda: volume_phase(rig, "big") == "Available")
        await rig.create(claim("data", size="1Gi", storageClassName=""))
        await rig.until(lambda: volume_of(rig, "data") == "small", within=1)
        await rig.until(lambda: volume_phase(rig, "small") == "Bound", within=1)
        capacity = at(rig.get("persistentvolumeclaims", "data"), "status", "capacity")
        assert capacity == {"storage": "2Gi"}
        await rig.delete(f"{CLAIM_PATH}/data")
        await rig.until(lambda: volume_phase(rig, "small") == "Released", within=1)
        await rig.create(claim("data", size="1Gi", storageClassName=""))
        await rig.until(lambda: volume_of(rig, "data") == "big", within=1)
        assert volume_phase(rig, "small") == "Released"

    on_rig(scenario)


def test_a_volume_reserved_by_hand_goes_to_that_claim_alone() -> None:
    async def scenario(rig: Rig) -> None:
        ref = {"namespace": "default", "name": "mine"}
        await rig.create(volume("v", claimRef=ref), claim("other", storageClassName=""))
        await rig.pass_time(1)
        assert (claim_phase(rig, "other"), volume_phase(rig, "v")) == ("Pending", "Available")
        await rig.create(claim("mine", storageClassName=""))
        await rig.until(lambda: volume_phase(rig, "v") == "Bound", within=1)
        assert (volume_of(rig, "mine"), claim_phase(rig, "mine")) == ("v", "Bound")

    on_rig(scenario)


def test_a_claim_that_waits_for_its_pod_takes_a_free_volume_its_node_reaches() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a", zone="z1")
        await rig.create(
            storage_class("local", binding="WaitForFirstConsumer"),
            volume("far", storageClassName="local", nodeAffinity=_only_in("z2")),
            volume("near", storageClassName="local", nodeAffinity=_only_in("z1")),
            claim("data", storageClassName="local"),
        )
        await rig.pass_time(2)
        assert claim_phase(rig, "data") == "Pending"
        await rig.create(pod("p", volumes=using("data")))
        await rig.until(lambda: rig.running() == ["p"])
        assert volume_of(rig, "data") == "near"
        assert rig.names("persistentvolumes") == ["far", "near"]

    on_rig(scenario)


def test_a_pods_own_claim_is_made_for_it_and_goes_with_it_and_its_volume() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        wanted = claim("any")["spec"]
        source = {"volumeClaimTemplate": {"spec": wanted, "metadata": {"labels": {"x": "y"}}}}
        await rig.create(pod("p", volumes=[{"name": "scratch", "ephemeral": source}]))
        await rig.until(lambda: rig.running() == ["p"])
        own = rig.get("persistentvolumeclaims", "p-scratch")
        assert at(own, "metadata", "labels") == {"x": "y"}
        assert attached(rig) == {volume_of(rig, "p-scratch"): "a"}
        await rig.delete(f"{POD_PATH}/p")
        await rig.until(lambda: not rig.names("persistentvolumes"), within=10)
        assert rig.names("persistentvolumeclaims") == []
        assert attached(rig) == {}

    on_rig(scenario)


def test_a_claim_without_a_class_waits_for_a_default_one() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.delete("/apis/storage.k8s.io/v1/storageclasses/simulated-disk")
        await rig.create(claim("data"), storage_class("fast"))
        await rig.pass_time(3)
        assert claim_phase(rig, "data") == "Pending"
        marked = {"storageclass.kubernetes.io/is-default-class": "true"}
        path = "/apis/storage.k8s.io/v1/storageclasses/fast"
        await rig.patch(path, {"metadata": {"annotations": marked}})
        await rig.until(lambda: claim_phase(rig, "data") == "Bound", within=1)
        made = rig.get("persistentvolumes", volume_of(rig, "data"))
        assert at(made, "spec", "csi", "driver") == "fast.example.com"

    on_rig(scenario)


def test_a_claim_whose_class_cannot_be_read_is_told_why_it_gets_nothing() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.create(storage_class("odd", attachSeconds="soon"))
        await rig.create(claim("data", storageClassName="odd"))
        await rig.until(lambda: bool(told(rig, "data")), within=2)
        ((reason, text),) = told(rig, "data")
        assert reason == "ProvisioningFailed"
        assert 'StorageClass "odd"' in str(text)
        assert "attachSeconds is 'soon': want a number of seconds" in str(text)
        assert rig.names("persistentvolumes") == []

    on_rig(scenario)


def test_a_claim_whose_volume_is_taken_away_is_lost() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.create(volume("v"), claim("data", storageClassName=""))
        await rig.until(lambda: claim_phase(rig, "data") == "Bound", within=1)
        await rig.delete("/api/v1/persistentvolumes/v")
        await rig.until(lambda: claim_phase(rig, "data") == "Lost", within=1)
        await boot(rig, "a")
        await rig.create(pod("p", volumes=using("data")))
        await rig.pass_time(1)
        message = conditions(rig.get("pods", "p"))["PodScheduled"]["message"]
        assert 'persistentvolumeclaim "data" bound to non-existent persistentvolume "v"' in str(
            message
        )

    on_rig(scenario)


def _only_in(zone: str) -> dict[str, object]:
    expression = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
