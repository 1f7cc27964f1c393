from __future__ import annotations

import pytest

from tests.unit.sandbox_core.workbench import (
    APPLY,
    CONFIG_MAPS,
    JSON_PATCH,
    MERGE,
    NODES,
    PODS,
    STRATEGIC,
    WIDGETS,
    Document,
    Workbench,
    config_map,
    pod,
    widget,
)


def test_a_merge_patch_removes_with_null(api: Workbench) -> None:
    api.create(CONFIG_MAPS, config_map("a", x="1", y="2"))
    assert api.patch(f"{CONFIG_MAPS}/a", {"data": {"x": None}})["data"] == {"y": "2"}


def test_a_version_in_a_merge_patch_is_a_precondition(api: Workbench) -> None:
    old = api.create(CONFIG_MAPS, config_map("a", x="1"))
    version = old["metadata"]["resourceVersion"]
    patch: Document = {"metadata": {"resourceVersion": version}, "data": {"x": "2"}}
    api.patch(f"{CONFIG_MAPS}/a", patch)
    answer = api.send("PATCH", f"{CONFIG_MAPS}/a", {**patch, "data": {"x": "3"}}, media=MERGE)
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")


def test_a_uid_in_a_merge_patch_is_a_precondition(api: Workbench) -> None:
    old = api.create(CONFIG_MAPS, config_map("a", x="1"))
    uid = old["metadata"]["uid"]
    api.patch(f"{CONFIG_MAPS}/a", {"metadata": {"uid": uid}, "data": {"x": "2"}})
    answer = api.send(
        "PATCH", f"{CONFIG_MAPS}/a", {"metadata": {"uid": "b"}, "data": {"x": "3"}}, media=MERGE
    )
    # Not a Conflict, as it is for a PUT.
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert answer.body["details"]["causes"][0]["field"] == "metadata.uid"
    assert api.get(f"{CONFIG_MAPS}/a")["data"] == {"x": "2"}


def test_a_version_is_looked_at_before_a_uid(api: Workbench) -> None:
    api.create(CONFIG_MAPS, config_map("a"))
    patch = {"metadata": {"uid": "b", "resourceVersion": "1"}, "data": {"x": "3"}}
    assert api.send("PATCH", f"{CONFIG_MAPS}/a", patch, media=MERGE).status == 409


def test_a_uid_guards_no_status_of_a_custom_object(toys: Workbench) -> None:
    toys.create(WIDGETS, widget("w"))
    patch: Document = {"metadata": {"uid": "other"}, "status": {"phase": "x"}}
    assert toys.patch(f"{WIDGETS}/w/status", patch)["status"] == {"phase": "x"}
    patch["metadata"]["resourceVersion"] = "1"
    patch["status"]["phase"] = "y"
    assert toys.send("PATCH", f"{WIDGETS}/w/status", patch, media=MERGE).status == 409
    toys.create(PODS, pod("p"))
    patch = {"metadata": {"uid": "other"}, "status": {"phase": "Running"}}
    assert toys.send("PATCH", f"{PODS}/p/status", patch, media=MERGE).status == 422


def test_an_apply_for_another_uid_is_invalid(api: Workbench) -> None:
    api.create(CONFIG_MAPS, config_map("a"))
    obj = config_map("a", x="y")
    obj["metadata"]["uid"] = "b"
    answer = api.send("PATCH", f"{CONFIG_MAPS}/a", obj, media=APPLY, fieldManager="me")
    assert answer.status == 422


def test_a_json_patch_is_applied_in_order(toys: Workbench) -> None:
    toys.create(WIDGETS, widget("w"))
    body = toys.patch(
        f"{WIDGETS}/w",
        [
            {"op": "test", "path": "/spec/size", "value": 1},
            {"op": "replace", "path": "/spec/size", "value": 2},
            {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},
        ],
        media=JSON_PATCH,
    )
    assert (body["spec"]["size"], body["metadata"]["labels"]) == (2, {"a": "b"})


def test_a_json_patch_whose_test_fails_changes_nothing(toys: Workbench) -> None:
    old = toys.create(WIDGETS, widget("w"))
    operations = [
        {"op": "replace", "path": "/spec/size", "value": 2},
        {"op": "test", "path": "/metadata/name", "value": "other"},
    ]
    answer = toys.send("PATCH", f"{WIDGETS}/w", operations, media=JSON_PATCH)
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert toys.get(f"{WIDGETS}/w") == old


@pytest.mark.parametrize("patch", [b"{", b"5", b"{}", b'[{"op": "fly"}]'])
def test_a_malformed_json_patch_is_a_bad_request(toys: Workbench, patch: bytes) -> None:
    toys.create(WIDGETS, widget("w"))
    assert toys.send("PATCH", f"{WIDGETS}/w", patch, media=JSON_PATCH).status == 400


def test_a_strategic_patch_merges_lists_of_built_in_kinds_by_key(api: Workbench) -> None:
    api.create(NODES, {"metadata": {"name": "n"}})
    for kind in ("Ready", "DiskPressure", "Ready"):
        api.patch(
            f"{NODES}/n/status",
            {"status": {"conditions": [{"type": kind, "status": "True"}]}},
            media=STRATEGIC,
        )
    types = {c["type"] for c in api.get(f"{NODES}/n")["status"]["conditions"]}
    assert types == {"Ready", "DiskPressure"}


@pytest.mark.parametrize("media", [STRATEGIC, "text/plain"])
def test_a_patch_type_that_the_kind_does_not_take_is_refused(toys: Workbench, media: str) -> None:
    toys.create(WIDGETS, widget("w"))
    answer = toys.send("PATCH", f"{WIDGETS}/w", {"spec": {"size": 2}}, media=media)
    assert (answer.status, answer.body["reason"]) == (415, "UnsupportedMediaType")
    assert "application/apply-patch+yaml" in answer.body["message"]
    assert "strategic" not in answer.body["message"]


def test_a_patch_of_nothing_is_not_found(api: Workbench) -> None:
    assert api.send("PATCH", f"{CONFIG_MAPS}/a", {}, media=MERGE).status == 404


@pytest.mark.parametrize(
    ("patch", "status"),
    [({"kind": "Secret"}, 422), ({"apiVersion": "v2"}, 422), ({"metadata": {"name": "b"}}, 400)],
)
def test_a_patch_cannot_make_another_object_of_it(
    api: Workbench, patch: Document, status: int
) -> None:
    api.create(CONFIG_MAPS, config_map("a"))
    assert api.send("PATCH", f"{CONFIG_MAPS}/a", patch, media=MERGE).status == status


def test_a_patch_that_ends_a_finalizer_ends_the_object(api: Workbench) -> None:
    obj = config_map("a")
    obj["metadata"]["finalizers"] = ["x/y"]
    api.create(CONFIG_MAPS, obj)
    api.delete(f"{CONFIG_MAPS}/a")
    body = api.patch(f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": None}})
    assert "finalizers" not in body["metadata"]
    assert api.gone(f"{CONFIG_MAPS}/a")


def test_an_apply_creates_what_is_not_there(api: Workbench) -> None:
    answer = api.send(
        "PATCH", f"{CONFIG_MAPS}/a", config_map("a", x="1"), media=APPLY, fieldManager="me"
    )
    assert answer.status == 201
    (entry,) = answer.body["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("me", "Apply")


def test_an_apply_reads_yaml(api: Workbench) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: '1'\n"
    answer = api.send("PATCH", f"{CONFIG_MAPS}/a", text, media=APPLY, fieldManager="me")
    assert (answer.status, answer.body["data"]) == (201, {"x": "1"})


def test_applying_the_same_again_changes_nothing(api: Workbench) -> None:
    first = api.patch(f"{CONFIG_MAPS}/a", config_map("a", x="1"), media=APPLY, fieldManager="me")
    again = api.patch(f"{CONFIG_MAPS}/a", config_map("a", x="1"), media=APPLY, fieldManager="me")
    assert again == first


def test_an_apply_removes_what_its_manager_no_longer_applies(api: Workbench) -> None:
    path = f"{CONFIG_MAPS}/a"
    api.patch(path, config_map("a", x="1", y="2"), media=APPLY, fieldManager="me")
    assert api.patch(path, config_map("a", x="1"), media=APPLY, fieldManager="me")["data"] == {
        "x": "1"
    }


def test_an_apply_conflicts_with_other_owners_unless_forced(api: Workbench) -> None:
    path = f"{CONFIG_MAPS}/a"
    api.create(CONFIG_MAPS, config_map("a", x="1"), agent="other/1")
    answer = api.send("PATCH", path, config_map("a", x="2"), media=APPLY, fieldManager="me")
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    (cause,) = answer.body["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldManagerConflict", ".data.x")
    assert "other" in cause["message"]
    forced = api.patch(path, config_map("a", x="2"), media=APPLY, fieldManager="me", force="true")
    assert forced["data"] == {"x": "2"}


def test_an_apply_needs_a_manager(api: Workbench) -> None:
    answer = api.send("PATCH", f"{CONFIG_MAPS}/a", config_map("a"), media=APPLY)
    assert answer.status == 422
    assert answer.body["details"]["causes"][0]["field"] == "fieldManager"


def test_only_an_apply_can_be_forced(api: Workbench) -> None:
    api.create(CONFIG_MAPS, config_map("a"))
    assert api.send("PATCH", f"{CONFIG_MAPS}/a", {}, media=MERGE, force="true").status == 422


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "Secret"},
        {"apiVersion": ""},
        {"metadata": {"name": "b"}},
        {"metadata": {"name": "a", "managedFields": [{}]}},
    ],
)
def test_an_apply_must_say_what_it_applies(api: Workbench, change: Document) -> None:
    body = config_map("a") | change
    answer = api.send("PATCH", f"{CONFIG_MAPS}/a", body, media=APPLY, fieldManager="me")
    assert answer.status == 400


def test_an_apply_whose_lists_lack_their_keys_is_refused(api: Workbench) -> None:
    body = pod("p", containers=[{"image": "i"}])
    answer = api.send("PATCH", f"{PODS}/p", body, media=APPLY, fieldManager="me")
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")


def test_a_status_of_nothing_cannot_be_applied(toys: Workbench) -> None:
    body = {**widget("w"), "status": {"phase": "x"}}
    answer = toys.send("PATCH", f"{WIDGETS}/w/status", body, media=APPLY, fieldManager="me")
    assert answer.status == 404


def test_a_json_patch_may_be_only_so_long(toys: Workbench) -> None:
    toys.create(WIDGETS, widget("w"))
    operations = [{"op": "test", "path": "/kind", "value": "Widget"}] * 10_001
    answer = toys.send("PATCH", f"{WIDGETS}/w", operations, media=JSON_PATCH)
    assert (answer.status, answer.body["reason"]) == (413, "RequestEntityTooLarge")


def test_an_apply_for_a_uid_creates_nothing(api: Workbench) -> None:
    obj = config_map("a")
    obj["metadata"]["uid"] = "b"
    answer = api.send("PATCH", f"{CONFIG_MAPS}/a", obj, media=APPLY, fieldManager="me")
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")


def test_a_status_can_be_applied(toys: Workbench) -> None:
    toys.create(WIDGETS, widget("w"))
    body = toys.patch(
        f"{WIDGETS}/w/status",
        {
            "apiVersion": "toys.example/v1",
            "kind": "Widget",
            "metadata": {"name": "w"},
            "status": {"phase": "ready"},
        },
        media=APPLY,
        fieldManager="controller",
    )
    assert body["status"] == {"phase": "ready"}
    (entry,) = [e for e in body["metadata"]["managedFields"] if e["manager"] == "controller"]
    assert (entry["operation"], entry["subresource"]) == ("Apply", "status")


def test_a_dry_apply_stores_nothing(api: Workbench) -> None:
    path = f"{CONFIG_MAPS}/a"
    api.patch(path, config_map("a"), media=APPLY, fieldManager="me", dryRun="All")
    assert api.gone(path)


def test_patches_share_what_they_leave_alone(api: Workbench) -> None:
    api.create(PODS, pod("p", containers=[{"name": "c"}]))
    before = api.server.objects("", "pods")[0]
    api.patch(f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}})
    after = api.server.objects("", "pods")[0]
    assert after is not before
    assert after["spec"] is before["spec"]
