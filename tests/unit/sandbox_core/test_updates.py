from __future__ import annotations

import pytest

from tests.unit.sandbox_core.workbench import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    LEASES,
    NODES,
    PODS,
    SECRETS,
    WIDGETS,
    Document,
    Workbench,
    config_map,
    pod,
    widget,
)


def with_meta(obj: Document, **meta: object) -> Document:
    return {**obj, "metadata": {**obj["metadata"], **meta}}


def test_a_put_replaces_the_object_and_moves_its_version(api: Workbench) -> None:
    old = api.create(CONFIG_MAPS, config_map("a", x="1", y="2"))
    new = api.put(f"{CONFIG_MAPS}/a", {**old, "data": {"x": "3"}})
    assert new["data"] == {"x": "3"}
    assert int(new["metadata"]["resourceVersion"]) > int(old["metadata"]["resourceVersion"])
    assert new["metadata"]["uid"] == old["metadata"]["uid"]
    assert new["metadata"]["creationTimestamp"] == old["metadata"]["creationTimestamp"]


def test_a_put_at_a_stale_version_conflicts(api: Workbench) -> None:
    old = api.create(CONFIG_MAPS, config_map("a", x="1"))
    api.put(f"{CONFIG_MAPS}/a", {**old, "data": {"x": "2"}})
    answer = api.send("PUT", f"{CONFIG_MAPS}/a", {**old, "data": {"x": "3"}})
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert answer.body["details"] == {"name": "a", "kind": "configmaps"}
    assert "the object has been modified" in answer.body["message"]
    assert api.get(f"{CONFIG_MAPS}/a")["data"] == {"x": "2"}


def test_a_put_without_a_version_is_unconditional_where_the_kind_allows(toys: Workbench) -> None:
    toys.create(CONFIG_MAPS, config_map("a", x="1"))
    assert toys.put(f"{CONFIG_MAPS}/a", config_map("a", x="2"))["data"] == {"x": "2"}
    toys.create(WIDGETS, widget("w"))
    answer = toys.send("PUT", f"{WIDGETS}/w", widget("w", size=2))
    (cause,) = answer.body["details"]["causes"]
    assert (answer.status, cause["field"]) == (422, "metadata.resourceVersion")
    assert answer.body["details"]["kind"] == "widgets"


def test_a_put_for_another_uid_conflicts(api: Workbench) -> None:
    old = api.create(CONFIG_MAPS, config_map("a"))
    answer = api.send("PUT", f"{CONFIG_MAPS}/a", with_meta(old, uid="other"))
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert "UID in precondition: other" in answer.body["message"]


def test_a_put_of_nothing_that_exists_is_not_found(api: Workbench) -> None:
    assert api.send("PUT", f"{CONFIG_MAPS}/a", config_map("a")).status == 404


def test_a_lease_may_be_created_by_a_put(api: Workbench) -> None:
    assert api.send("PUT", f"{LEASES}/l", {"metadata": {"name": "l"}}).status == 201


@pytest.mark.parametrize(
    ("meta", "status"),
    [({"name": "b"}, 400), ({"namespace": "kube-system"}, 400), ({"name": ""}, 400)],
)
def test_identity_cannot_change(api: Workbench, meta: Document, status: int) -> None:
    old = api.create(CONFIG_MAPS, config_map("a"))
    assert api.send("PUT", f"{CONFIG_MAPS}/a", with_meta(old, **meta)).status == status


def test_the_name_is_looked_at_before_the_version(toys: Workbench) -> None:
    toys.create(WIDGETS, widget("w"))
    assert toys.send("PUT", f"{WIDGETS}/w", widget("other")).status == 400


def test_what_only_the_server_sets_cannot_be_changed(toys: Workbench) -> None:
    old = toys.create(WIDGETS, widget("w"))
    changed = with_meta(
        old, creationTimestamp=None, generation=9, deletionTimestamp=None, labels={"a": "b"}
    )
    meta = toys.put(f"{WIDGETS}/w", changed)["metadata"]
    assert meta["creationTimestamp"] == old["metadata"]["creationTimestamp"]
    assert meta["generation"] == 1
    marked = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
    answer = toys.send("PATCH", f"{WIDGETS}/w", marked, media="application/merge-patch+json")
    (cause,) = answer.body["details"]["causes"]
    assert (answer.status, cause["field"]) == (422, "metadata.deletionTimestamp")


def test_a_write_that_changes_nothing_is_none(toys: Workbench) -> None:
    old = toys.create(WIDGETS, widget("w"))
    before = toys.server.store.revision
    assert toys.put(f"{WIDGETS}/w", old) == old
    assert toys.put(f"{WIDGETS}/w", with_meta(old, labels={}, finalizers=None)) == old
    assert toys.patch(f"{WIDGETS}/w", {"spec": {"size": 1}}) == old
    assert toys.patch(f"{WIDGETS}/w", {"spec": {"size": 1}}, agent="another/2") == old
    assert toys.server.store.revision == before


def test_generation_counts_changes_of_what_is_wanted(toys: Workbench) -> None:
    toys.create(WIDGETS, widget("w"))

    def generation(patch: Document, path: str = f"{WIDGETS}/w") -> int:
        found: int = toys.patch(path, patch)["metadata"]["generation"]
        return found

    assert generation({"metadata": {"labels": {"a": "b"}}}) == 1
    assert generation({"status": {"phase": "x"}}, f"{WIDGETS}/w/status") == 1
    assert generation({"spec": {"size": 2}}) == 2
    assert generation({"spec": {"size": 2}}) == 2
    assert generation({"spec": {"replicas": 3}}) == 3


def test_generation_of_built_in_kinds_follows_the_spec(api: Workbench) -> None:
    api.create(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": {"replicas": 1}})
    path = f"{DEPLOYMENTS}/d"
    assert api.patch(path, {"metadata": {"annotations": {"a": "b"}}})["metadata"]["generation"] == 1
    assert api.patch(path, {"spec": {"replicas": 2}})["metadata"]["generation"] == 2
    assert api.patch(f"{path}/status", {"status": {"replicas": 2}})["metadata"]["generation"] == 2


def test_without_a_status_subresource_the_status_counts_as_wanted(api: Workbench) -> None:
    api.define_widgets(subresources={})
    api.create(WIDGETS, {**widget("w"), "status": {"phase": "new"}})
    body = api.patch(f"{WIDGETS}/w", {"status": {"phase": "old"}})
    assert (body["status"], body["metadata"]["generation"]) == ({"phase": "old"}, 2)
    assert api.send("GET", f"{WIDGETS}/w/status").status == 404


def test_a_write_to_the_object_leaves_its_status(toys: Workbench) -> None:
    toys.create(WIDGETS, widget("w"))
    toys.patch(f"{WIDGETS}/w/status", {"status": {"phase": "ready"}})
    body = toys.patch(f"{WIDGETS}/w", {"spec": {"size": 5}, "status": {"phase": "gone"}})
    assert (body["spec"]["size"], body["status"]) == (5, {"phase": "ready"})
    del body["status"]
    assert toys.put(f"{WIDGETS}/w", body)["status"] == {"phase": "ready"}


def test_a_write_to_the_status_leaves_all_else_of_a_custom_object(toys: Workbench) -> None:
    old = toys.create(WIDGETS, widget("w"))
    wanted = {
        **with_meta(old, labels={"a": "b"}, annotations={"c": "d"}, finalizers=["x/y"]),
        "spec": {"size": 9},
        "status": {"phase": "ready"},
    }
    body = toys.put(f"{WIDGETS}/w/status", wanted)
    assert body["status"] == {"phase": "ready"}
    assert body["spec"] == old["spec"]
    assert not {"labels", "annotations", "finalizers"} & set(body["metadata"])


def test_a_write_to_the_status_of_a_built_in_object_may_label_it(api: Workbench) -> None:
    old = api.create(NODES, {"metadata": {"name": "n"}, "spec": {"providerID": "p"}})
    wanted = {
        **with_meta(old, labels={"a": "b"}, finalizers=["x/y"]),
        "spec": {"providerID": "q"},
        "status": {"capacity": {"cpu": "1"}},
    }
    body = api.put(f"{NODES}/n/status", wanted)
    assert body["metadata"]["labels"] == {"a": "b"}
    assert body["metadata"]["finalizers"] == ["x/y"]
    assert body["spec"] == {"providerID": "p"}
    assert body["status"] == {"capacity": {"cpu": "1"}}


def test_what_a_status_may_bring_along_differs_between_kinds(api: Workbench) -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1"}
    meta = {"labels": {"a": "b"}, "annotations": {"c": "d"}, "ownerReferences": [owner]}

    def through_status(path: str, obj: Document) -> set[str]:
        api.create(path, obj)
        body = api.patch(f"{path}/{obj['metadata']['name']}/status", {"metadata": meta})
        return set(body["metadata"]) & set(meta)

    assert through_status(PODS, {"metadata": {"name": "x"}}) == {"labels", "annotations"}
    assert through_status(DEPLOYMENTS, {"metadata": {"name": "x"}}) == {
        "annotations",
        "ownerReferences",
    }
    attachments = "/apis/storage.k8s.io/v1/volumeattachments"
    assert through_status(attachments, {"metadata": {"name": "x"}}) == set()


def test_the_status_can_be_read_by_itself(toys: Workbench) -> None:
    toys.create(WIDGETS, widget("w"))
    assert toys.get(f"{WIDGETS}/w/status") == toys.get(f"{WIDGETS}/w")


def test_a_status_write_is_checked_for_its_version(toys: Workbench) -> None:
    old = toys.create(WIDGETS, widget("w"))
    toys.patch(f"{WIDGETS}/w", {"spec": {"size": 2}})
    stale = {**old, "status": {"phase": "x"}}
    assert toys.send("PUT", f"{WIDGETS}/w/status", stale).status == 409


def test_no_finalizer_can_be_added_to_what_is_being_deleted(api: Workbench) -> None:
    api.create(CONFIG_MAPS, with_meta(config_map("a"), finalizers=["x/a", "x/b"]))
    api.delete(f"{CONFIG_MAPS}/a")
    answer = api.send(
        "PATCH",
        f"{CONFIG_MAPS}/a",
        {"metadata": {"finalizers": ["x/a", "x/c"]}},
        media="application/merge-patch+json",
    )
    (cause,) = answer.body["details"]["causes"]
    assert (answer.status, cause["field"]) == (422, "metadata.finalizers")
    assert cause["reason"] == "FieldValueForbidden"
    body = api.patch(f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": ["x/b"]}})
    assert body["metadata"]["finalizers"] == ["x/b"]


def test_a_dry_run_answers_the_result_and_keeps_the_object(toys: Workbench) -> None:
    old = toys.create(WIDGETS, widget("w"))
    body = toys.patch(f"{WIDGETS}/w", {"spec": {"size": 7}}, dryRun="All")
    assert (body["spec"]["size"], body["metadata"]["generation"]) == (7, 2)
    assert body["metadata"]["resourceVersion"] == old["metadata"]["resourceVersion"]
    assert toys.get(f"{WIDGETS}/w") == old


def test_a_secret_keeps_its_type(api: Workbench) -> None:
    api.create(SECRETS, {"metadata": {"name": "s"}, "type": "a/b"})
    assert api.put(f"{SECRETS}/s", {"metadata": {"name": "s"}, "data": {}})["type"] == "a/b"
    answer = api.send("PUT", f"{SECRETS}/s", {"metadata": {"name": "s"}, "type": "c/d"})
    assert answer.status == 422


def test_text_is_merged_into_a_secret(api: Workbench) -> None:
    api.create(SECRETS, {"metadata": {"name": "s"}, "stringData": {"a": "1", "b": "2"}})
    body = api.patch(f"{SECRETS}/s", {"stringData": {"b": "3"}})
    assert body["data"] == {"a": "MQ==", "b": "Mw=="}


def test_an_immutable_secret_stays_so(api: Workbench) -> None:
    api.create(SECRETS, {"metadata": {"name": "s"}, "data": {}, "immutable": True})
    patch = {"stringData": {"a": "b"}}
    media = "application/merge-patch+json"
    assert api.send("PATCH", f"{SECRETS}/s", patch, media=media).status == 422
    assert api.send("PATCH", f"{SECRETS}/s", {"immutable": None}, media=media).status == 422
    api.patch(f"{SECRETS}/s", {"metadata": {"labels": {"a": "b"}}})


def test_only_finalize_changes_what_holds_a_namespace(api: Workbench) -> None:
    path = "/api/v1/namespaces/n"
    api.create("/api/v1/namespaces", {"metadata": {"name": "n"}})
    body = api.patch(path, {"spec": {"finalizers": []}})
    assert body["spec"] == {"finalizers": ["kubernetes"]}
    api.delete(path)
    body = api.get(path)
    assert body["status"]["phase"] == "Terminating"
    api.put(f"{path}/finalize", {**body, "spec": {"finalizers": []}})
    assert api.gone(path)


def test_pods_on_a_node_keep_their_status_through_a_put(api: Workbench) -> None:
    api.create(PODS, pod("p", node="n"))
    api.patch(f"{PODS}/p/status", {"status": {"phase": "Running"}})
    assert api.patch(f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}})["status"] == {
        "phase": "Running"
    }


def test_ownership_passes_to_the_last_writer(api: Workbench) -> None:
    api.create(CONFIG_MAPS, config_map("a", x="1", y="2"), agent="first/1")
    body = api.patch(f"{CONFIG_MAPS}/a", {"data": {"x": "3"}}, agent="second/1")
    owners = {e["manager"]: e["fieldsV1"]["f:data"] for e in body["metadata"]["managedFields"]}
    assert "f:x" not in owners["first"] and "f:x" in owners["second"]


def test_the_status_is_owned_through_its_subresource(toys: Workbench) -> None:
    toys.create(WIDGETS, widget("w"))
    body = toys.patch(f"{WIDGETS}/w/status", {"status": {"phase": "x"}}, agent="controller/1")
    (entry,) = [e for e in body["metadata"]["managedFields"] if e["manager"] == "controller"]
    assert entry["subresource"] == "status"
