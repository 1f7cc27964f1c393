from __future__ import annotations

import pytest

from mcm.api.meta import JSONObject
from tests.unit.world.manifests import template, workload
from tests.unit.world.rig import Rig, at, conditions, name_of, on_rig

SETS = "/apis/apps/v1/namespaces/default/replicasets"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
NODES = ("a", "b", "c")


async def with_nodes(rig: Rig) -> None:
    await rig.boot(*NODES)
    await rig.until(lambda: rig.ready(*NODES) and not any(rig.taints(n) for n in NODES))


def deployment(rig: Rig, name: str = "web") -> JSONObject:
    return rig.get("deployments", name, "apps")


def rolled_out(rig: Rig, name: str = "web") -> bool:
    """What ``kubectl rollout status`` waits for."""
    found = deployment(rig, name)
    wanted = at(found, "spec", "replicas")
    counts = {n: at(found, "status", n) for n in ("replicas", "updatedReplicas")}
    observed = at(found, "status", "observedGeneration") == at(found, "metadata", "generation")
    available = at(found, "status", "availableReplicas")
    return observed and [*counts.values(), available] == [wanted] * 3


def images(rig: Rig) -> list[str]:
    """The images of the pods that are not on their way out."""
    found = []
    for pod in rig.all("pods"):
        if not at(pod, "metadata", "deletionTimestamp"):
            containers = at(pod, "spec", "containers")
            assert isinstance(containers, list)
            found.append(containers[0]["image"])
    return sorted(found)


def sizes(rig: Rig) -> dict[object, object]:
    """Revision to replicas of each ReplicaSet."""
    found = rig.all("replicasets", "apps")
    revision = "deployment.kubernetes.io/revision"
    return {at(s, "metadata", "annotations", revision): at(s, "spec", "replicas") for s in found}


# ReplicaSets ------------------------------------------------------------------------------------


def test_a_replica_set_keeps_its_number_of_pods() -> None:
    async def scenario(rig: Rig) -> None:
        await with_nodes(rig)
        await rig.create(workload("ReplicaSet", replicas=3))
        await rig.until(lambda: len(rig.running()) == 3)
        (first, *_) = rig.names("pods")
        assert first.startswith("web-")
        owner = at(rig.get("pods", first), "metadata", "ownerReferences")
        assert isinstance(owner, list)
        assert (owner[0]["kind"], owner[0]["name"], owner[0]["controller"]) == (
            "ReplicaSet",
            "web",
            True,
        )
        await rig.delete(f"/api/v1/namespaces/default/pods/{first}")
        await rig.until(lambda: first not in rig.names("pods") and len(rig.running()) == 3)
        await rig.patch(f"{SETS}/web", {"spec": {"replicas": 1}})
        await rig.until(lambda: len(rig.names("pods")) == 1)
        await rig.patch(f"{SETS}/web", {"spec": {"replicas": 0}})
        await rig.until(lambda: rig.names("pods") == [])

    on_rig(scenario)


def test_the_status_of_a_replica_set_counts_its_pods() -> None:
    async def scenario(rig: Rig) -> None:
        await with_nodes(rig)
        await rig.create(workload("ReplicaSet", replicas=2, minReadySeconds=10))
        await rig.until(lambda: len(rig.running()) == 2)
        await rig.pass_time(1)
        status = at(rig.get("replicasets", "web", "apps"), "status")
        assert isinstance(status, dict)
        assert (status["replicas"], status["readyReplicas"], status["availableReplicas"]) == (
            2,
            2,
            0,
        )
        assert status["observedGeneration"] == 1
        waited = await rig.until(
            lambda: at(rig.get("replicasets", "web", "apps"), "status", "availableReplicas") == 2
        )
        assert 7 < waited < 10

    on_rig(scenario)


def test_scaling_in_takes_pods_that_do_not_run_first() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a", capacity={"pods": "2"})
        await rig.until(lambda: rig.ready("a") and not rig.taints("a"))
        await rig.create(workload("ReplicaSet", replicas=4))
        await rig.until(lambda: len(rig.running()) == 2)
        running = rig.running()
        await rig.patch(f"{SETS}/web", {"spec": {"replicas": 2}})
        await rig.pass_time(5)
        assert rig.names("pods") == running

    on_rig(scenario)


def test_a_pod_that_has_failed_is_replaced_and_kept() -> None:
    async def scenario(rig: Rig) -> None:
        await with_nodes(rig)
        await rig.create(workload("ReplicaSet", replicas=1))
        await rig.until(lambda: len(rig.running()) == 1)
        (name,) = rig.names("pods")
        await rig.patch(
            f"/api/v1/namespaces/default/pods/{name}/status", {"status": {"phase": "Failed"}}
        )
        await rig.pass_time(5)
        assert len(rig.names("pods")) == 2 and name in rig.names("pods")

    on_rig(scenario)


def test_pods_go_with_their_set() -> None:
    async def scenario(rig: Rig) -> None:
        await with_nodes(rig)
        await rig.create(workload("ReplicaSet", replicas=3))
        await rig.until(lambda: len(rig.running()) == 3)
        await rig.delete(f"{SETS}/web")
        await rig.until(lambda: rig.names("pods") == [])
        await rig.pass_time(10)
        assert rig.names("pods") == rig.names("replicasets", "apps") == []

    on_rig(scenario)


# Deployments ------------------------------------------------------------------------------------


def test_a_deployment_makes_a_set_and_its_pods_and_says_when_it_is_done() -> None:
    async def scenario(rig: Rig) -> None:
        await with_nodes(rig)
        await rig.create(workload("Deployment", replicas=3))
        await rig.until(lambda: rolled_out(rig))
        (replica_set,) = rig.all("replicasets", "apps")
        labels = at(replica_set, "metadata", "labels")
        assert isinstance(labels, dict)
        assert name_of(replica_set) == f"web-{labels['pod-template-hash']}"
        assert labels["app"] == "web"
        assert at(replica_set, "spec", "selector", "matchLabels") == labels
        assert all(at(p, "metadata", "labels") == labels for p in rig.all("pods"))
        found = conditions(deployment(rig))
        assert found["Available"]["status"] == found["Progressing"]["status"] == "True"
        assert found["Progressing"]["reason"] == "NewReplicaSetAvailable"
        revision = at(
            deployment(rig), "metadata", "annotations", "deployment.kubernetes.io/revision"
        )
        assert revision == "1"

    on_rig(scenario)


def test_a_new_template_is_rolled_out_within_the_limits() -> None:
    async def scenario(rig: Rig) -> None:
        await with_nodes(rig)
        await rig.create(workload("Deployment", replicas=4))
        await rig.until(lambda: rolled_out(rig))
        await rig.patch(f"{DEPLOYMENTS}/web", {"spec": {"template": template(image="app:2")}})
        while not (rolled_out(rig) and images(rig) == ["app:2"] * 4):
            ready = [
                p
                for p in rig.all("pods")
                if conditions(p).get("Ready") and not at(p, "metadata", "deletionTimestamp")
            ]
            assert len(ready) >= 3
            assert len(images(rig)) <= 5
            await rig.pass_time(0.05)
            assert rig.now < 120
        assert sizes(rig) == {"1": 0, "2": 4}

    on_rig(scenario)


def test_an_old_template_taken_back_becomes_the_newest_revision() -> None:
    async def scenario(rig: Rig) -> None:
        await with_nodes(rig)
        await rig.create(workload("Deployment", replicas=2))
        await rig.until(lambda: rolled_out(rig))
        for image in ("app:2", "app:1"):
            await rig.patch(f"{DEPLOYMENTS}/web", {"spec": {"template": template(image=image)}})
            await rig.until(lambda: rolled_out(rig), within=60)
        assert images(rig) == ["app:1", "app:1"]
        assert sizes(rig) == {"2": 0, "3": 2}

    on_rig(scenario)


def test_a_recreation_never_runs_old_and_new_side_by_side() -> None:
    async def scenario(rig: Rig) -> None:
        await with_nodes(rig)
        await rig.create(workload("Deployment", replicas=3, strategy={"type": "Recreate"}))
        await rig.until(lambda: rolled_out(rig))
        await rig.patch(f"{DEPLOYMENTS}/web", {"spec": {"template": template(image="app:2")}})
        while not (rolled_out(rig) and images(rig) == ["app:2"] * 3):
            hashes = {at(p, "metadata", "labels", "pod-template-hash") for p in rig.all("pods")}
            assert len(hashes) <= 1
            await rig.pass_time(0.05)
            assert rig.now < 120

    on_rig(scenario)


def test_scaling_a_deployment_scales_its_set() -> None:
    async def scenario(rig: Rig) -> None:
        await with_nodes(rig)
        await rig.create(workload("Deployment", replicas=1))
        await rig.until(lambda: rolled_out(rig))
        for replicas in (5, 2, 0):
            await rig.patch(f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": replicas}})
            await rig.until(
                lambda count=replicas: rolled_out(rig) and len(rig.names("pods")) == count  # type: ignore[misc]
            )

    on_rig(scenario)


def test_a_paused_deployment_rolls_nothing_out_until_it_is_resumed() -> None:
    async def scenario(rig: Rig) -> None:
        await with_nodes(rig)
        await rig.create(workload("Deployment", replicas=2))
        await rig.until(lambda: rolled_out(rig))
        change = {"paused": True, "replicas": 3, "template": template(image="app:2")}
        await rig.patch(f"{DEPLOYMENTS}/web", {"spec": change})
        await rig.pass_time(10)
        assert images(rig) == ["app:1"] * 3
        await rig.patch(f"{DEPLOYMENTS}/web", {"spec": {"paused": False}})
        await rig.until(lambda: rolled_out(rig) and images(rig) == ["app:2"] * 3, within=60)

    on_rig(scenario)


def test_a_rollout_without_progress_fails_at_its_deadline_and_heals() -> None:
    async def scenario(rig: Rig) -> None:
        await with_nodes(rig)
        await rig.create(workload("Deployment", replicas=1, progressDeadlineSeconds=60))
        await rig.until(lambda: rolled_out(rig))
        stuck = template(image="app:2", nodeSelector={"zone": "none"})
        await rig.patch(f"{DEPLOYMENTS}/web", {"spec": {"template": stuck}})

        def progress() -> tuple[object, object]:
            found = conditions(deployment(rig))["Progressing"]
            return found["status"], found["reason"]

        waited = await rig.until(lambda: progress()[0] == "False", within=70)
        assert waited == pytest.approx(60, abs=2)
        assert progress() == ("False", "ProgressDeadlineExceeded")
        assert images(rig) == ["app:1", "app:2"]
        rig.server.requests.reset()
        await rig.pass_time(600)
        assert rig.server.requests.writes(agent="deployment-controller") == 0
        healed = {**template(image="app:2"), "spec": {"nodeSelector": None}}
        await rig.patch(f"{DEPLOYMENTS}/web", {"spec": {"template": healed}})
        await rig.until(lambda: rolled_out(rig) and images(rig) == ["app:2"], within=60)
        assert progress() == ("True", "NewReplicaSetAvailable")

    on_rig(scenario)


def test_only_so_many_old_sets_are_remembered() -> None:
    async def scenario(rig: Rig) -> None:
        await with_nodes(rig)
        await rig.create(workload("Deployment", replicas=1, revisionHistoryLimit=2))
        await rig.until(lambda: rolled_out(rig))
        for number in range(2, 6):
            changed = template(image=f"app:{number}")
            await rig.patch(f"{DEPLOYMENTS}/web", {"spec": {"template": changed}})
            await rig.until(lambda: rolled_out(rig), within=60)
        await rig.pass_time(5)
        assert sizes(rig) == {"3": 0, "4": 0, "5": 1}

    on_rig(scenario)


def test_everything_goes_with_a_deployment() -> None:
    async def scenario(rig: Rig) -> None:
        await with_nodes(rig)
        await rig.create(workload("Deployment", replicas=2))
        await rig.until(lambda: rolled_out(rig))
        await rig.delete(f"{DEPLOYMENTS}/web")
        await rig.until(lambda: rig.names("pods") == rig.names("replicasets", "apps") == [])

    on_rig(scenario)
