from __future__ import annotations

from tests.envtest.bench import MERGE, Bench, Document
from tests.envtest.contract.objects import (
    config_map,
    machine,
    machine_deployment,
    node,
    pod,
)

RUNNING = {"currentStatus": {"phase": "Running"}}


async def test_a_creation_takes_no_status_from_the_sender(api: Bench) -> None:
    created = await api.create(api.machines(), {**machine("m"), "status": RUNNING})
    assert "currentStatus" not in created.get("status", {})
    made = await api.create("/api/v1/nodes", {**_node(api), "status": {"phase": "Running"}})
    assert made["status"].get("phase") == "Running"  # kubelets register with a status


async def test_the_object_cannot_change_its_status(api: Bench) -> None:
    await api.create(api.machines(), machine("m"))
    status = await api.patch(api.machines("m") + "/status", {"status": RUNNING})
    after = await api.patch(
        api.machines("m"), {"spec": {"providerID": "p"}, "status": {"lastKnownState": "x"}}
    )
    assert (after["status"], after["spec"]["providerID"]) == (status["status"], "p")
    after["status"] = {}
    assert (await api.put(api.machines("m"), after))["status"] == status["status"]


async def test_the_status_cannot_change_anything_else_of_our_kinds(api: Bench) -> None:
    created = await api.create(api.machines(), machine("m", {"a": "b"}))
    everything = {
        "metadata": {"labels": {"a": "c"}, "annotations": {"x": "y"}, "finalizers": ["e.org/f"]},
        "spec": {"providerID": "p"},
        "status": RUNNING,
    }
    after = await api.patch(api.machines("m") + "/status", everything)
    assert after["status"]["currentStatus"]["phase"] == "Running"
    assert after["spec"] == created["spec"]
    for key in ("labels", "annotations", "finalizers", "generation"):
        assert after["metadata"].get(key) == created["metadata"].get(key)


async def test_the_status_of_a_node_takes_labels_along_but_no_spec(api: Bench) -> None:
    created = await api.create("/api/v1/nodes", _node(api))
    path = f"/api/v1/nodes/{created['metadata']['name']}"
    change = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"unschedulable": True},
        "status": {"capacity": {"cpu": "2"}},
    }
    after = await api.patch(f"{path}/status", change)
    assert after["metadata"]["labels"]["a"] == "b"
    assert "unschedulable" not in after["spec"]
    assert after["status"]["capacity"] == {"cpu": "2"}
    after = await api.patch(path, change)
    assert after["spec"]["unschedulable"] is True


async def test_a_status_is_read_as_the_whole_object(api: Bench) -> None:
    created = await api.create(api.machines(), machine("m"))
    assert await api.get(api.machines("m") + "/status") == created


async def test_a_status_with_an_outdated_version_is_a_conflict(api: Bench) -> None:
    old = await api.create(api.machines(), machine("m"))
    await api.patch(api.machines("m"), {"metadata": {"labels": {"a": "b"}}})
    answer = await api.send("PUT", api.machines("m") + "/status", {**old, "status": RUNNING})
    assert (answer.status, answer.reason) == (409, "Conflict")


async def test_kinds_without_a_status_have_no_such_subresource(api: Bench) -> None:
    await api.create(api.config_maps(), config_map("c"))
    answer = await api.send("GET", api.config_maps("c") + "/status")
    assert answer.status == 404
    assert (await api.send("GET", api.machines("m") + "/scale")).status == 404


async def test_only_changes_of_the_spec_count_as_a_generation(api: Bench) -> None:
    created = await api.create(api.deployments(), machine_deployment("d"))
    assert created["metadata"]["generation"] == 1
    path = api.deployments("d")
    labelled = await api.patch(path, {"metadata": {"labels": {"a": "b"}}})
    told = await api.patch(f"{path}/status", {"status": {"replicas": 1}})
    changed = await api.patch(path, {"spec": {"replicas": 4}})
    same = await api.patch(path, {"spec": {"replicas": 4}})
    generations = [o["metadata"]["generation"] for o in (labelled, told, changed, same)]
    assert generations == [1, 1, 2, 2]


async def test_nodes_leases_and_config_maps_have_no_generation(api: Bench) -> None:
    made = [
        await api.create("/api/v1/nodes", _node(api)),
        await api.create(api.config_maps(), config_map("c")),
        await api.create(
            api.path("leases", group="coordination.k8s.io/v1"),
            {"metadata": {"name": "l"}, "spec": {}},
        ),
    ]
    assert ["generation" in obj["metadata"] for obj in made] == [False, False, False]


async def test_a_scale_shows_and_sets_the_replicas(api: Bench) -> None:
    created = await api.create(api.deployments(), machine_deployment("d", replicas=3))
    await api.patch(api.deployments("d") + "/status", {"status": {"replicas": 2}})
    path = api.deployments("d") + "/scale"
    scale = await api.get(path)
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 3}
    assert scale["status"]["replicas"] == 2
    assert scale["metadata"]["name"] == "d"
    assert scale["metadata"]["uid"] == created["metadata"]["uid"]
    scale["spec"]["replicas"] = 5
    assert (await api.put(path, scale))["spec"] == {"replicas": 5}
    after = await api.get(api.deployments("d"))
    assert after["spec"]["replicas"] == 5
    assert after["metadata"]["generation"] == 2
    assert (await api.patch(path, {"spec": {"replicas": 0}}))["spec"].get("replicas", 0) == 0
    assert (await api.get(api.deployments("d")))["spec"]["replicas"] == 0


async def test_an_outdated_scale_is_a_conflict(api: Bench) -> None:
    await api.create(api.deployments(), machine_deployment("d"))
    path = api.deployments("d") + "/scale"
    scale = await api.get(path)
    await api.patch(path, {"spec": {"replicas": 1}})
    answer = await api.send("PUT", path, {**scale, "spec": {"replicas": 9}})
    assert (answer.status, answer.reason) == (409, "Conflict")


async def test_a_scale_cannot_be_negative(api: Bench) -> None:
    await api.create(api.deployments(), machine_deployment("d"))
    answer = await api.send(
        "PATCH", api.deployments("d") + "/scale", {"spec": {"replicas": -1}}, media=MERGE
    )
    assert (answer.status, answer.reason) == (422, "Invalid")


async def test_a_pod_is_bound_to_a_node_once(api: Bench) -> None:
    await api.create(api.pods(), pod("p"))
    binding: Document = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
    }
    answer = await api.send("POST", api.pods("p") + "/binding", binding)
    assert answer.status == 201
    bound = await api.get(api.pods("p"))
    assert bound["spec"]["nodeName"] == "n"
    conditions = {c["type"]: c["status"] for c in bound["status"]["conditions"]}
    assert conditions["PodScheduled"] == "True"
    answer = await api.send("POST", api.pods("p") + "/binding", binding)
    assert (answer.status, answer.reason) == (409, "Conflict")


def _node(api: Bench) -> Document:
    return node(f"node-of-{api.namespace}")
