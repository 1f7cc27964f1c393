from __future__ import annotations

import pytest

from tests.unit.sandbox_core.workbench import (
    DEPLOYMENTS,
    JSON_PATCH,
    MERGE,
    PODS,
    STRATEGIC,
    WIDGETS,
    Document,
    Workbench,
    pod,
    widget,
)

SCALE = f"{WIDGETS}/w/scale"


def scaled(api: Workbench) -> Document:
    api.create(WIDGETS, widget("w", replicas=3))
    return api.patch(f"{WIDGETS}/w/status", {"status": {"replicas": 2, "selector": "a=b"}})


def test_a_scale_shows_the_numbers_of_its_object(toys: Workbench) -> None:
    obj = scaled(toys)
    body = toys.get(SCALE)
    assert (body["kind"], body["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert body["spec"] == {"replicas": 3}
    assert body["status"] == {"replicas": 2, "selector": "a=b"}
    assert body["metadata"] == {
        name: obj["metadata"][name]
        for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    }


def test_a_scale_can_be_put(toys: Workbench) -> None:
    scaled(toys)
    scale = toys.get(SCALE)
    body = toys.put(SCALE, {**scale, "spec": {"replicas": 7}})
    assert body["spec"] == {"replicas": 7}
    obj = toys.get(f"{WIDGETS}/w")
    assert (obj["spec"]["replicas"], obj["metadata"]["generation"]) == (7, 2)
    assert obj["status"] == {"replicas": 2, "selector": "a=b"}
    stale = {**scale, "spec": {"replicas": 9}}
    assert toys.send("PUT", SCALE, stale).status == 409
    del stale["metadata"]["resourceVersion"]
    assert toys.put(SCALE, stale)["spec"] == {"replicas": 9}


def test_a_scale_can_be_patched(toys: Workbench) -> None:
    scaled(toys)
    assert toys.patch(SCALE, {"spec": {"replicas": 4}})["spec"] == {"replicas": 4}
    operations = [{"op": "replace", "path": "/spec/replicas", "value": 5}]
    assert toys.patch(SCALE, operations, media=JSON_PATCH)["spec"] == {"replicas": 5}
    precise = {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 6}}
    assert toys.send("PATCH", SCALE, precise, media=MERGE).status == 409
    assert toys.send("PATCH", SCALE, {}, media=STRATEGIC).status == 415


def test_scaling_to_the_same_number_is_no_write(toys: Workbench) -> None:
    scaled(toys)
    before = toys.server.store.revision
    toys.patch(SCALE, {"spec": {"replicas": 3}})
    assert toys.server.store.revision == before


def test_scaling_can_be_rehearsed(toys: Workbench) -> None:
    scaled(toys)
    assert toys.patch(SCALE, {"spec": {"replicas": 9}}, dryRun="All")["spec"] == {"replicas": 9}
    assert toys.get(SCALE)["spec"] == {"replicas": 3}


@pytest.mark.parametrize("replicas", [-1, "3", True, 1.5])
def test_replicas_are_a_number_not_below_zero(toys: Workbench, replicas: object) -> None:
    scaled(toys)
    answer = toys.send("PATCH", SCALE, {"spec": {"replicas": replicas}}, media=MERGE)
    assert answer.status == 422
    assert answer.body["details"]["causes"][0]["field"] == ".spec.replicas"


@pytest.mark.parametrize("change", [{"kind": "Widget"}, {"metadata": {"name": "v"}}])
def test_only_a_scale_scales(toys: Workbench, change: Document) -> None:
    scaled(toys)
    assert toys.send("PUT", SCALE, {**toys.get(SCALE), **change}).status == 400


def test_an_object_without_the_number_has_no_scale(toys: Workbench) -> None:
    toys.create(WIDGETS, widget("w"))
    answer = toys.send("GET", SCALE)
    assert answer.status == 500
    assert ".spec.replicas" in answer.body["message"]
    # It can be given one, though.
    assert toys.patch(SCALE, {"spec": {"replicas": 2}})["spec"] == {"replicas": 2}
    assert toys.send("DELETE", SCALE).status == 405
    assert toys.send("GET", f"{WIDGETS}/v/scale").status == 404


def test_a_deployment_scales_and_shows_its_selector(api: Workbench) -> None:
    spec = {"selector": {"matchLabels": {"a": "b", "c": "d"}}}
    api.create(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec})
    body = api.get(f"{DEPLOYMENTS}/d/scale")
    assert body["spec"] == {"replicas": 1}
    assert body["status"] == {"replicas": 0, "selector": "a=b,c=d"}
    api.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 2}})
    assert api.get(f"{DEPLOYMENTS}/d")["spec"]["replicas"] == 2


# Binding ----------------------------------------------------------------------------------------


def bind(api: Workbench, **target: str) -> tuple[int, Document]:
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": target}
    answer = api.send("POST", f"{PODS}/p/binding", binding)
    return answer.status, answer.body


def test_a_binding_puts_a_pod_on_a_node_once(api: Workbench) -> None:
    api.create(PODS, pod("p"))
    status, body = bind(api, kind="Node", name="n")
    assert (status, body["status"]) == (201, "Success")
    bound = api.get(f"{PODS}/p")
    assert bound["spec"]["nodeName"] == "n"
    (condition,) = bound["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    status, body = bind(api, name="m")
    assert (status, body["reason"]) == (409, "Conflict")


@pytest.mark.parametrize("target", [{"kind": "Pod", "name": "n"}, {"kind": "Node"}])
def test_a_binding_needs_a_node(api: Workbench, target: dict[str, str]) -> None:
    api.create(PODS, pod("p"))
    assert bind(api, **target)[0] == 422


def test_a_pod_being_deleted_is_not_bound(api: Workbench) -> None:
    obj = pod("p")
    obj["metadata"]["finalizers"] = ["x/y"]
    api.create(PODS, obj)
    api.delete(f"{PODS}/p")
    assert bind(api, name="n")[0] == 409


def test_a_binding_can_only_be_posted(api: Workbench) -> None:
    api.create(PODS, pod("p"))
    assert api.send("GET", f"{PODS}/p/binding").status == 405
    assert api.send("POST", f"{PODS}/p/binding", {"kind": "Pod"}).status == 400
