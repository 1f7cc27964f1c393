from __future__ import annotations

import pytest

from tests.unit.sandbox_core.workbench import (
    CONFIG_MAPS,
    PODS,
    WIDGETS,
    Document,
    ManualClock,
    Workbench,
    config_map,
    pod,
    widget,
)


def holding(obj: Document, *finalizers: str) -> Document:
    return {**obj, "metadata": {**obj["metadata"], "finalizers": list(finalizers)}}


def test_what_nothing_holds_is_gone_at_once(toys: Workbench) -> None:
    old = toys.create(WIDGETS, widget("w"))
    answer = toys.send("DELETE", f"{WIDGETS}/w")
    assert answer.status == 200
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {
            "name": "w",
            "group": "toys.example",
            "kind": "widgets",
            "uid": old["metadata"]["uid"],
        },
    }
    assert toys.gone(f"{WIDGETS}/w")


def test_a_finalizer_holds_an_object_and_marks_it(toys: Workbench) -> None:
    toys.create(WIDGETS, holding(widget("w"), "x/y"))
    body = toys.delete(f"{WIDGETS}/w")
    meta = body["metadata"]
    assert body["kind"] == "Widget"
    assert meta["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    assert meta["deletionGracePeriodSeconds"] == 0
    assert meta["generation"] == 2


def test_deleting_again_changes_nothing(toys: Workbench) -> None:
    toys.create(WIDGETS, holding(widget("w"), "x/y"))
    first = toys.delete(f"{WIDGETS}/w")
    assert isinstance(toys.clock, ManualClock)
    toys.clock.advance(60)
    assert toys.delete(f"{WIDGETS}/w") == first


def test_deleting_nothing_is_not_found(toys: Workbench) -> None:
    answer = toys.send("DELETE", f"{WIDGETS}/w")
    assert (answer.status, answer.body["reason"]) == (404, "NotFound")
    assert answer.body["details"] == {"name": "w", "group": "toys.example", "kind": "widgets"}


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_a_precondition_that_fails_keeps_the_object(api: Workbench, field: str) -> None:
    old = api.create(CONFIG_MAPS, config_map("a"))
    path = f"{CONFIG_MAPS}/a"
    answer = api.send("DELETE", path, {"preconditions": {field: "77"}})
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert api.send("DELETE", path, **{field: "77"}).status == 409
    api.delete(path, {"preconditions": {field: old["metadata"][field]}})
    assert api.gone(path)


@pytest.mark.parametrize(
    "options",
    [
        {"propagationPolicy": "Sideways"},
        {"propagationPolicy": "Orphan", "orphanDependents": True},
        {"dryRun": ["Some"]},
    ],
)
def test_bad_options_are_invalid(api: Workbench, options: Document) -> None:
    api.create(CONFIG_MAPS, config_map("a"))
    assert api.send("DELETE", f"{CONFIG_MAPS}/a", options).status == 422


@pytest.mark.parametrize("options", [{"gracePeriodSeconds": "5"}, {"kind": "Pod"}, [1]])
def test_options_that_are_none_are_bad_requests(api: Workbench, options: object) -> None:
    api.create(CONFIG_MAPS, config_map("a"))
    assert api.send("DELETE", f"{CONFIG_MAPS}/a", options).status == 400
    assert api.send("DELETE", f"{CONFIG_MAPS}/a", gracePeriodSeconds="x").status == 400


def test_a_dry_run_deletes_nothing(toys: Workbench) -> None:
    toys.create(WIDGETS, widget("w"))
    toys.create(WIDGETS, holding(widget("v"), "x/y"))
    assert toys.delete(f"{WIDGETS}/w", {"dryRun": ["All"]})["status"] == "Success"
    assert "deletionTimestamp" in toys.delete(f"{WIDGETS}/v", dryRun="All")["metadata"]
    assert toys.names(WIDGETS) == ["v", "w"]
    assert "deletionTimestamp" not in toys.get(f"{WIDGETS}/v")["metadata"]


@pytest.mark.parametrize(
    ("policy", "finalizer"), [("Orphan", "orphan"), ("Foreground", "foregroundDeletion")]
)
def test_a_propagation_policy_becomes_a_finalizer(
    api: Workbench, policy: str, finalizer: str
) -> None:
    api.create(CONFIG_MAPS, holding(config_map("a"), "x/y"))
    body = api.delete(f"{CONFIG_MAPS}/a", {"propagationPolicy": policy})
    assert body["metadata"]["finalizers"] == ["x/y", finalizer]
    # Background takes it back, and the object then waits for others only.
    body = api.delete(f"{CONFIG_MAPS}/a", propagationPolicy="Background")
    assert body["metadata"]["finalizers"] == ["x/y"]


def test_the_old_word_for_orphaning_still_counts(api: Workbench) -> None:
    api.create(CONFIG_MAPS, config_map("a"))
    body = api.delete(f"{CONFIG_MAPS}/a", {"orphanDependents": True})
    assert body["metadata"]["finalizers"] == ["orphan"]
    api.create(CONFIG_MAPS, config_map("b"))
    api.delete(f"{CONFIG_MAPS}/b", orphanDependents="false")
    assert api.gone(f"{CONFIG_MAPS}/b")


# Pods -------------------------------------------------------------------------------------------


def test_a_pod_on_a_node_is_given_its_grace(api: Workbench) -> None:
    api.create(PODS, pod("p", node="n", terminationGracePeriodSeconds=45))
    meta = api.delete(f"{PODS}/p")["metadata"]
    assert meta["deletionTimestamp"] == "2026-01-01T00:00:45Z"
    assert meta["deletionGracePeriodSeconds"] == 45
    assert meta["generation"] == 2


def test_a_grace_asked_for_wins_over_the_pods_own(api: Workbench) -> None:
    api.create(PODS, pod("p", node="n"))
    meta = api.delete(f"{PODS}/p", {"gracePeriodSeconds": 5})["metadata"]
    assert meta["deletionGracePeriodSeconds"] == 5


def test_a_grace_can_be_cut_short_but_not_prolonged(api: Workbench) -> None:
    api.create(PODS, pod("p", node="n"))
    api.delete(f"{PODS}/p")
    meta = api.delete(f"{PODS}/p", gracePeriodSeconds="10")["metadata"]
    assert (meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"]) == (
        "2026-01-01T00:00:10Z",
        10,
    )
    assert api.delete(f"{PODS}/p", gracePeriodSeconds="60")["metadata"] == meta


def test_a_deletion_without_grace_removes_the_pod_and_answers_with_it(api: Workbench) -> None:
    api.create(PODS, pod("p", node="n"))
    api.delete(f"{PODS}/p")
    answer = api.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert (answer["kind"], answer["metadata"]["name"]) == ("Pod", "p")
    assert answer["metadata"]["deletionGracePeriodSeconds"] == 0
    assert api.gone(f"{PODS}/p")


def test_some_kinds_answer_with_the_object_that_is_gone(api: Workbench) -> None:
    attachments = "/apis/storage.k8s.io/v1/volumeattachments"
    body = api.create(attachments, {"metadata": {"name": "a"}})
    assert api.delete(f"{attachments}/a") == body


def test_a_pod_with_a_finalizer_outlives_its_grace(api: Workbench) -> None:
    api.create(PODS, holding(pod("p", node="n"), "x/y"))
    api.delete(f"{PODS}/p")
    api.delete(f"{PODS}/p", gracePeriodSeconds="0")
    assert api.get(f"{PODS}/p")["metadata"]["deletionGracePeriodSeconds"] == 0
    api.patch(f"{PODS}/p", {"metadata": {"finalizers": None}})
    assert api.gone(f"{PODS}/p")


def test_losing_its_finalizers_does_not_end_a_pods_grace(api: Workbench) -> None:
    api.create(PODS, holding(pod("p", node="n"), "x/y"))
    api.delete(f"{PODS}/p")
    api.patch(f"{PODS}/p", {"metadata": {"finalizers": None}})
    assert not api.gone(f"{PODS}/p")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_runs_nowhere_needs_no_grace(api: Workbench, phase: str) -> None:
    api.create(PODS, pod("waiting"))
    api.delete(f"{PODS}/waiting")
    assert api.gone(f"{PODS}/waiting")
    api.create(PODS, pod("done", node="n"))
    api.patch(f"{PODS}/done/status", {"status": {"phase": phase}})
    api.delete(f"{PODS}/done")
    assert api.gone(f"{PODS}/done")


# Collections and namespaces ---------------------------------------------------------------------


def test_a_collection_is_deleted_as_far_as_selected(api: Workbench) -> None:
    api.create(CONFIG_MAPS, config_map("a", labels={"x": "1"}))
    api.create(CONFIG_MAPS, holding(config_map("b", labels={"x": "1"}), "x/y"))
    api.create(CONFIG_MAPS, config_map("c"))
    answer = api.delete(CONFIG_MAPS, labelSelector="x=1", resourceVersion="3")
    assert answer["kind"] == "ConfigMapList"
    assert [item["metadata"]["name"] for item in answer["items"]] == ["a", "b"]
    assert not any("deletionTimestamp" in item["metadata"] for item in answer["items"])
    assert api.names(CONFIG_MAPS) == ["b", "c"]
    assert "deletionTimestamp" in api.get(f"{CONFIG_MAPS}/b")["metadata"]


def test_a_collection_is_deleted_in_one_namespace_only(api: Workbench) -> None:
    api.create(CONFIG_MAPS, config_map("a"))
    api.create("/api/v1/namespaces/kube-system/configmaps", config_map("a"))
    api.delete(CONFIG_MAPS)
    assert api.names("/api/v1/configmaps") == ["a"]


def test_namespaces_are_not_deleted_by_the_dozen(api: Workbench) -> None:
    assert api.send("DELETE", "/api/v1/namespaces").status == 405


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_the_permanent_namespaces_cannot_be_deleted(api: Workbench, name: str) -> None:
    answer = api.send("DELETE", f"/api/v1/namespaces/{name}")
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")


def test_a_namespace_waits_for_its_finalizer(api: Workbench) -> None:
    api.create("/api/v1/namespaces", {"metadata": {"name": "n"}})
    body = api.delete("/api/v1/namespaces/n")
    assert body["status"] == {"phase": "Terminating"}
    assert not api.gone("/api/v1/namespaces/n")
