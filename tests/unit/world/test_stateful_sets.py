"""StatefulSets that run: names, order, claims, updates, budgets."""

from __future__ import annotations

import pytest

from mcm.api.meta import JSONObject
from tests.unit.world.manifests import budget, claim, template, workload
from tests.unit.world.rig import Rig, at, name_of, on_rig

SETS = "/apis/apps/v1/namespaces/default/statefulsets"
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
NODES = ("a", "b", "c")
HASH = "controller-revision-hash"


def a_set(replicas: int = 3, **spec: object) -> JSONObject:
    made = workload("StatefulSet", replicas=replicas, serviceName="web")
    members = made["spec"]
    assert isinstance(members, dict)
    return {**made, "spec": {**members, **spec}}


async def with_nodes(rig: Rig) -> None:
    await rig.boot(*NODES)
    await rig.until(lambda: rig.ready(*NODES) and not any(rig.taints(n) for n in NODES))


async def with_set(rig: Rig, replicas: int = 3, **spec: object) -> None:
    await with_nodes(rig)
    await rig.create(a_set(replicas, **spec))
    await rig.until(lambda: rig.running() == [f"web-{n}" for n in range(replicas)])


def status(rig: Rig) -> dict[str, object]:
    found = at(rig.get("statefulsets", "web", "apps"), "status")
    assert isinstance(found, dict)
    return found


def uids(rig: Rig) -> dict[str, object]:
    return {name_of(p): at(p, "metadata", "uid") for p in rig.all("pods")}


def images(rig: Rig) -> dict[str, object]:
    found: dict[str, object] = {}
    for pod in rig.all("pods"):
        containers = at(pod, "spec", "containers")
        assert isinstance(containers, list)
        found[name_of(pod)] = containers[0]["image"]
    return found


def volumes_by_claim(rig: Rig) -> dict[str, object]:
    claims = rig.all("persistentvolumeclaims")
    return {name_of(c): at(c, "spec", "volumeName") for c in claims}


def rolled_out(rig: Rig) -> bool:
    """What ``kubectl rollout status`` waits for."""
    found = rig.get("statefulsets", "web", "apps")
    told = status(rig)
    observed = told.get("observedGeneration") == at(found, "metadata", "generation")
    updated = told.get("updateRevision") == told.get("currentRevision")
    return observed and updated and told.get("readyReplicas") == at(found, "spec", "replicas")


class Order:
    """Watches pods come and go, in the order in which that is seen."""

    def __init__(self, rig: Rig) -> None:
        self.told: list[str] = []
        self._rig = rig
        self._known: dict[str, object] = {}
        rig.server.store.subscribe(lambda _: self._look(), "pods")

    def _look(self) -> None:
        now = uids(self._rig)
        gone = [f"-{name}" for name in self._known if name not in now]
        made = [f"+{name}" for name, uid in now.items() if self._known.get(name) != uid]
        self.told += gone + made
        self._known = now


def test_pods_are_made_one_after_the_other_and_ended_the_other_way_round() -> None:
    async def scenario(rig: Rig) -> None:
        await with_nodes(rig)
        order = Order(rig)
        started = rig.now
        await rig.create(a_set(3))
        await rig.until(lambda: len(rig.running()) == 3)
        assert rig.now - started >= 3.0  # each takes a second to start
        assert order.told == ["+web-0", "+web-1", "+web-2"]
        await rig.patch(f"{SETS}/web", {"spec": {"replicas": 1}})
        await rig.until(lambda: rig.names("pods") == ["web-0"])
        assert order.told[3:] == ["-web-2", "-web-1"]
        labels = at(rig.get("pods", "web-0"), "metadata", "labels")
        assert isinstance(labels, dict)
        assert labels["statefulset.kubernetes.io/pod-name"] == "web-0"
        assert labels["apps.kubernetes.io/pod-index"] == "0"
        await rig.until(lambda: labels[HASH] == status(rig)["currentRevision"])
        assert status(rig)["replicas"] == status(rig)["availableReplicas"] == 1

    on_rig(scenario)


def test_in_parallel_they_are_made_at_once() -> None:
    async def scenario(rig: Rig) -> None:
        await with_nodes(rig)
        started = rig.now
        await rig.create(a_set(8, podManagementPolicy="Parallel"))
        await rig.until(lambda: len(rig.running()) == 8)
        assert rig.now - started < 2.0

    on_rig(scenario)


def test_a_pod_is_made_anew_when_the_old_one_is_gone_and_finds_its_volume() -> None:
    async def scenario(rig: Rig) -> None:
        await with_set(rig, 2, volumeClaimTemplates=[claim("data")])
        volumes = {
            name_of(c): at(c, "spec", "volumeName") for c in rig.all("persistentvolumeclaims")
        }
        assert sorted(volumes) == ["data-web-0", "data-web-1"]
        old, node = uids(rig)["web-1"], rig.placed()["web-1"]
        order = Order(rig)
        await rig.cordon(node)
        assert await rig.evict("web-1") == 201
        await rig.until(lambda: uids(rig).get("web-1") not in (None, old))
        await rig.until(lambda: rig.running() == ["web-0", "web-1"])
        assert rig.placed()["web-1"] != node
        assert order.told[-2:] == ["-web-1", "+web-1"]
        assert volumes_by_claim(rig) == volumes
        (attached,) = (
            a
            for a in rig.all("volumeattachments", "storage.k8s.io")
            if at(a, "spec", "source", "persistentVolumeName") == volumes["data-web-1"]
        )
        assert at(attached, "spec", "nodeName") == rig.placed()["web-1"]

    on_rig(scenario)


def test_claims_are_kept_when_the_set_shrinks_and_when_it_goes() -> None:
    async def scenario(rig: Rig) -> None:
        await with_set(rig, 2, volumeClaimTemplates=[claim("data")])
        await rig.patch(f"{SETS}/web", {"spec": {"replicas": 0}})
        await rig.until(lambda: rig.names("pods") == [])
        assert rig.names("persistentvolumeclaims") == ["data-web-0", "data-web-1"]
        await rig.delete(f"{SETS}/web")
        await rig.until(lambda: rig.names("statefulsets", "apps") == [])
        await rig.until(lambda: rig.names("controllerrevisions", "apps") == [])
        await rig.pass_time(10)
        assert rig.names("persistentvolumeclaims") == ["data-web-0", "data-web-1"]

    on_rig(scenario)


def test_a_claim_on_its_way_out_is_waited_for_and_made_anew() -> None:
    async def scenario(rig: Rig) -> None:
        await with_nodes(rig)
        held = claim("data-web-0")
        meta = held["metadata"]
        assert isinstance(meta, dict)
        meta["finalizers"] = ["example.com/hold"]
        await rig.create(held)
        await rig.delete(f"{CLAIMS}/data-web-0")
        await rig.create(a_set(1, volumeClaimTemplates=[claim("data")]))
        await rig.pass_time(10)
        assert rig.names("pods") == []
        await rig.patch(f"{CLAIMS}/data-web-0", {"metadata": {"finalizers": None}})
        await rig.until(lambda: rig.running() == ["web-0"])

    on_rig(scenario)


def test_pods_go_with_their_set_and_no_pod_of_another_is_taken() -> None:
    async def scenario(rig: Rig) -> None:
        await with_nodes(rig)
        stranger: JSONObject = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web-1", "namespace": "default", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        await rig.create(stranger)
        await rig.create(a_set(3))
        await rig.pass_time(20)
        assert rig.names("pods") == ["web-0", "web-1"]
        await rig.delete(f"{PODS}/web-1")
        await rig.until(lambda: rig.running() == ["web-0", "web-1", "web-2"])
        await rig.delete(f"{SETS}/web")
        await rig.until(lambda: rig.names("pods") == [])

    on_rig(scenario)


# Updates ----------------------------------------------------------------------------------------


def test_an_update_goes_down_and_is_done_when_all_serve() -> None:
    async def scenario(rig: Rig) -> None:
        await with_set(rig)
        await rig.until(lambda: rolled_out(rig))
        before = status(rig)["currentRevision"]
        order = Order(rig)
        await rig.patch(f"{SETS}/web", {"spec": {"template": template(image="app:2")}})
        await rig.until(lambda: status(rig)["updateRevision"] != before)
        assert status(rig)["currentRevision"] == before
        await rig.until(lambda: rolled_out(rig))
        assert set(images(rig).values()) == {"app:2"}
        assert order.told[-6:] == ["-web-2", "+web-2", "-web-1", "+web-1", "-web-0", "+web-0"]
        assert len(rig.names("controllerrevisions", "apps")) == 2
        await rig.patch(f"{SETS}/web", {"spec": {"template": template(image="app:1")}})
        await rig.until(lambda: status(rig)["currentRevision"] == before)
        numbers = {name_of(r): r["revision"] for r in rig.all("controllerrevisions", "apps")}
        assert sorted(numbers.values(), key=str) == [2, 3] and numbers[str(before)] == 3

    on_rig(scenario)


def test_below_a_partition_even_a_new_pod_keeps_the_old_template() -> None:
    async def scenario(rig: Rig) -> None:
        partition = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
        await with_set(rig, updateStrategy=partition)
        await rig.until(lambda: rolled_out(rig))
        await rig.patch(f"{SETS}/web", {"spec": {"template": template(image="app:2")}})
        expected = {"web-0": "app:1", "web-1": "app:1", "web-2": "app:2"}
        await rig.until(lambda: images(rig) == expected and len(rig.running()) == 3)
        old = uids(rig)["web-0"]
        await rig.delete(f"{PODS}/web-0")
        await rig.until(lambda: uids(rig).get("web-0") not in (None, old))
        await rig.until(lambda: len(rig.running()) == 3)
        assert images(rig) == expected
        whole: JSONObject = {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}
        await rig.patch(f"{SETS}/web", whole)
        await rig.until(lambda: rolled_out(rig))
        assert set(images(rig).values()) == {"app:2"}

    on_rig(scenario)


def test_on_delete_waits_for_somebody_to_delete() -> None:
    async def scenario(rig: Rig) -> None:
        await with_set(rig, 2, updateStrategy={"type": "OnDelete"})
        await rig.patch(f"{SETS}/web", {"spec": {"template": template(image="app:2")}})
        await rig.pass_time(10)
        assert set(images(rig).values()) == {"app:1"}
        await rig.delete(f"{PODS}/web-0")
        await rig.until(lambda: images(rig) == {"web-0": "app:2", "web-1": "app:1"})

    on_rig(scenario)


def test_only_so_many_old_templates_are_remembered() -> None:
    async def scenario(rig: Rig) -> None:
        await with_set(rig, 1, revisionHistoryLimit=1)
        for number in range(2, 6):
            image = f"app:{number}"
            await rig.patch(f"{SETS}/web", {"spec": {"template": template(image=image)}})
            await rig.until(lambda: rolled_out(rig) and images(rig) == {"web-0": image})  # noqa: B023
        await rig.until(lambda: len(rig.names("controllerrevisions", "apps")) == 2)

    on_rig(scenario)


# Others -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "allowed"), [({"maxUnavailable": 1}, 1), ({"minAvailable": "50%"}, 2)]
)
def test_a_budget_counts_what_the_set_wants(spec: dict[str, object], allowed: int) -> None:
    async def scenario(rig: Rig) -> None:
        await with_set(rig, 4)
        await rig.create(budget("web", **spec))

        def told(field: str) -> object:
            return at(rig.get("poddisruptionbudgets", "web", "policy"), "status", field)

        await rig.until(lambda: told("disruptionsAllowed") == allowed)
        assert told("expectedPods") == 4
        for node in NODES:
            await rig.cordon(node)
        assert await rig.evict("web-3") == 201
        await rig.pass_time(5)
        assert told("disruptionsAllowed") == allowed - 1
        await rig.patch("/api/v1/nodes/a", {"spec": {"unschedulable": False}})
        # The new pod bears the name of the evicted one, and is not taken for it.
        await rig.until(lambda: told("disruptionsAllowed") == allowed, within=10)
        await rig.patch(f"{SETS}/web", {"spec": {"replicas": 8}})
        await rig.until(lambda: told("expectedPods") == 8, within=20)

    on_rig(scenario)


def test_with_nothing_to_do_nothing_is_written() -> None:
    async def scenario(rig: Rig) -> None:
        await with_set(rig, 2, volumeClaimTemplates=[claim("data")])
        await rig.pass_time(5)
        rig.server.requests.reset()
        await rig.pass_time(120)
        assert set(rig.steady_writes()) <= {"kubelet-simulated patch leases.coordination.k8s.io"}

    on_rig(scenario)
