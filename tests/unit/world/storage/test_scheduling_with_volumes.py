from __future__ import annotations

from collections import Counter

from mcm.api.meta import JSONObject
from tests.unit.world.manifests import bare_node, claim, pod, storage_class, using, volume
from tests.unit.world.rig import Rig, conditions, on_rig
from tests.unit.world.storage.scene import (
    CLAIM_PATH,
    DISK,
    POD_PATH,
    attached,
    boot,
    claim_phase,
    volume_of,
)

ZONE = "topology.kubernetes.io/zone"


def why(rig: Rig, name: str = "p") -> str:
    """What a pod without a Node is told."""
    return str(conditions(rig.get("pods", name))["PodScheduled"]["message"])


def only(key: str, value: str) -> JSONObject:
    expression = {"key": key, "operator": "In", "values": [value]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def test_a_pod_waits_for_the_claims_that_do_not_wait_for_it() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a", "b")
        await rig.create(claim("data", storageClassName="by-hand"))
        await rig.create(pod("p", volumes=using("data")))
        await rig.pass_time(2)
        unbound = "pod has unbound immediate PersistentVolumeClaims"
        assert why(rig) == f"0/2 nodes are available: {unbound}."
        await rig.create(volume("v", storageClassName="by-hand"))
        await rig.until(lambda: rig.running() == ["p"], within=5)

    on_rig(scenario)


def test_a_pod_waits_for_a_claim_that_is_not_there_yet() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        await rig.create(pod("p", volumes=using("data")))
        await rig.pass_time(2)
        missing = 'persistentvolumeclaim "data" not found'
        assert why(rig) == f"0/1 nodes are available: {missing}."
        await rig.create(claim("data"))
        await rig.until(lambda: rig.running() == ["p"], within=5)

    on_rig(scenario)


def test_a_pod_is_told_what_is_lacking_next_and_nothing_twice() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        await rig.cordon("a")
        await rig.create(pod("p", volumes=using("data")))
        await rig.pass_time(1)
        assert 'persistentvolumeclaim "data" not found' in why(rig)
        await rig.create(claim("data"))
        await rig.pass_time(1)
        assert why(rig) == "0/1 nodes are available: 1 node(s) were unschedulable."
        await boot(rig, "b", capacity={"pods": "0"})
        await rig.cordon("b")
        await rig.pass_time(60)
        rig.server.requests.reset()
        await rig.create(bare_node("c") | {"spec": {"unschedulable": True}})
        await rig.pass_time(60)
        assert rig.server.requests.writes(resource="pods", agent="scheduler") == 0

    on_rig(scenario)


def test_a_claim_of_a_class_nobody_provisions_waits_for_a_volume_that_a_node_reaches() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        local = storage_class("local", binding="WaitForFirstConsumer")
        await rig.create({**local, "provisioner": "kubernetes.io/no-provisioner"})
        elsewhere = only("kubernetes.io/hostname", "z")
        await rig.create(
            volume("far", storageClassName="local", nodeAffinity=elsewhere),
            claim("data", storageClassName="local"),
            pod("p", volumes=using("data")),
        )
        await rig.pass_time(2)
        nothing = "1 node(s) didn't find available persistent volumes to bind"
        assert why(rig) == f"0/1 nodes are available: {nothing}."
        here = only("kubernetes.io/hostname", "a")
        await rig.create(volume("near", storageClassName="local", nodeAffinity=here))
        await rig.until(lambda: rig.running() == ["p"], within=5)
        assert volume_of(rig, "data") == "near"

    on_rig(scenario)


def test_a_pod_follows_its_volume_and_waits_for_a_node_in_its_zone() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a", zone="z1")
        await boot(rig, "b", zone="z2")
        await rig.create(claim("data"))
        await rig.create(pod("p", volumes=using("data"), nodeSelector={ZONE: "z2"}))
        await rig.until(lambda: rig.running() == ["p"])
        await rig.cordon("b")
        await rig.delete(f"{POD_PATH}/p")
        await rig.until(lambda: not rig.names("pods"))
        await rig.create(pod("p", volumes=using("data")))
        await rig.pass_time(2)
        assert why(rig) == (
            "0/2 nodes are available: 1 node(s) had volume node affinity conflict, "
            "1 node(s) were unschedulable."
        )
        await boot(rig, "c", zone="z2")
        await rig.until(lambda: rig.running() == ["p"])
        assert rig.placed() == {"p": "c"}

    on_rig(scenario)


def test_a_volume_labelled_with_a_zone_keeps_its_pods_there() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a", zone="z1")
        made = volume("v", storageClassName="x")
        made["metadata"] = {"name": "v", "labels": {ZONE: "z2__z3"}}
        await rig.create(made, claim("data", storageClassName="x"))
        await rig.create(pod("p", volumes=using("data")))
        await rig.until(lambda: claim_phase(rig, "data") == "Bound")
        await boot(rig, "b", zone="z3")
        await rig.until(lambda: rig.running() == ["p"])
        assert rig.placed() == {"p": "b"}

    on_rig(scenario)


def test_a_node_takes_no_more_volumes_than_it_says() -> None:
    async def scenario(rig: Rig) -> None:
        capacity = {"pods": "110", f"attachable-volumes-csi-{DISK}": "2"}
        await boot(rig, "a", "b", capacity=capacity)
        await rig.create(*(claim(f"c{i}") for i in range(5)))
        await rig.create(*(pod(f"p{i}", volumes=using(f"c{i}")) for i in range(5)))
        await rig.until(lambda: len(rig.running()) == 4)
        await rig.pass_time(5)
        assert Counter(rig.placed().values()) == {"a": 2, "b": 2, "": 1}
        (left,) = (name for name, node in rig.placed().items() if not node)
        assert why(rig, left) == "0/2 nodes are available: 2 node(s) exceed max volume count."
        await rig.create(pod("without"))
        await rig.until(lambda: "without" in rig.running(), within=3)
        await rig.delete(f"{POD_PATH}/{next(n for n in rig.running() if n != 'without')}")
        await rig.until(lambda: rig.placed()[left] != "", within=5)

    on_rig(scenario)


def test_a_claim_for_one_pod_alone_is_not_shared_even_on_its_node() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        await rig.create(claim("data", modes=("ReadWriteOncePod",)))
        await rig.create(pod("p", volumes=using("data")))
        await rig.until(lambda: rig.running() == ["p"])
        await rig.create(pod("q", volumes=using("data")))
        await rig.pass_time(5)
        assert "ReadWriteOncePod access mode" in why(rig, "q")
        await rig.delete(f"{POD_PATH}/p")
        await rig.until(lambda: rig.running() == ["q"], within=5)

    on_rig(scenario)


def test_of_two_pods_that_come_at_once_one_gets_the_claim_for_one_pod_alone() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a", "b")
        await rig.create(claim("data", modes=("ReadWriteOncePod",)))
        await rig.create(*(pod(f"p{i}", volumes=using("data")) for i in range(5)))
        await rig.pass_time(20)
        assert len(rig.running()) == 1
        assert Counter(bool(node) for node in rig.placed().values()) == {True: 1, False: 4}

    on_rig(scenario)


def test_a_pod_with_two_claims_gets_both_for_one_node() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a", zone="z1")
        await boot(rig, "b", zone="z2")
        await rig.create(claim("one"), claim("two"), pod("p", volumes=using("one", "two")))
        await rig.until(lambda: rig.running() == ["p"])
        node = rig.placed()["p"]
        assert attached(rig) == {volume_of(rig, "one"): node, volume_of(rig, "two"): node}

    on_rig(scenario)


def test_pods_that_wait_for_their_claims_are_spread_like_others() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a", "b", "c")
        await rig.create(*(claim(f"c{i}") for i in range(9)))
        await rig.create(*(pod(f"p{i}", volumes=using(f"c{i}")) for i in range(9)))
        await rig.until(lambda: len(rig.running()) == 9, within=5)
        assert Counter(rig.placed().values()) == {"a": 3, "b": 3, "c": 3}

    on_rig(scenario)


def test_a_node_that_is_gone_before_its_claims_are_bound_is_not_waited_for() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.create(storage_class("odd", binding="WaitForFirstConsumer", attachSeconds="?"))
        await rig.create(bare_node("a"), claim("data", storageClassName="odd"))
        await rig.create(pod("p", volumes=using("data")))
        await rig.pass_time(1)
        chosen = rig.get("persistentvolumeclaims", "data")["metadata"]
        assert isinstance(chosen, dict)
        assert chosen["annotations"] == {"volume.kubernetes.io/selected-node": "a"}
        await rig.delete("/api/v1/nodes/a")
        await rig.delete("/apis/storage.k8s.io/v1/storageclasses/odd")
        await rig.create(bare_node("b"))
        await rig.create(storage_class("odd", binding="WaitForFirstConsumer"))
        await rig.until(lambda: rig.placed() == {"p": "b"}, within=5)

    on_rig(scenario)


def test_a_claim_is_bound_for_another_node_if_the_chosen_one_is_gone() -> None:
    async def scenario(rig: Rig) -> None:
        await boot(rig, "a")
        chosen = {"volume.kubernetes.io/selected-node": "gone"}
        wanted = claim("data")
        wanted["metadata"] = {"name": "data", "namespace": "default", "annotations": chosen}
        await rig.create(wanted, pod("p", volumes=using("data")))
        await rig.until(lambda: rig.running() == ["p"], within=5)
        assert rig.placed() == {"p": "a"}

    on_rig(scenario)


def test_a_claim_that_is_deleted_before_it_is_bound_keeps_its_pod_waiting() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.create(claim("data"), pod("p", volumes=using("data")))
        await rig.pass_time(1)
        await rig.delete(f"{CLAIM_PATH}/data")
        await rig.create(bare_node("n"))
        await rig.pass_time(1)
        assert rig.placed() == {"p": ""}
        assert rig.names("persistentvolumes") == []

    on_rig(scenario)
