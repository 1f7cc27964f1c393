from __future__ import annotations

import pytest

from tests.envtest.bench import APPLY, JSON_PATCH, MERGE, STRATEGIC, Bench, Document
from tests.envtest.contract.objects import config_map, machine, node, pod

NODES = "/api/v1/nodes"


async def test_a_merge_patch_sets_replaces_and_removes(api: Bench) -> None:
    await api.create(api.config_maps(), config_map("c", {"a": "1", "b": "2"}, x="y"))
    patch = {"metadata": {"labels": {"a": None, "b": "3", "c": "4"}}, "data": {"z": "w"}}
    after = await api.patch(api.config_maps("c"), patch)
    assert after["metadata"]["labels"] == {"b": "3", "c": "4"}
    assert after["data"] == {"x": "y", "z": "w"}


async def test_a_merge_patch_replaces_lists_whole(api: Bench) -> None:
    draft = machine("m")
    draft["metadata"]["finalizers"] = ["e.org/a", "e.org/b"]
    await api.create(api.machines(), draft)
    after = await api.patch(api.machines("m"), {"metadata": {"finalizers": ["e.org/c"]}})
    assert after["metadata"]["finalizers"] == ["e.org/c"]


@pytest.mark.parametrize("media", [MERGE, JSON_PATCH])
async def test_a_patch_that_changes_nothing_keeps_the_version(api: Bench, media: str) -> None:
    created = await api.create(api.machines(), machine("m", {"a": "b"}))
    patches: dict[str, object] = {
        MERGE: {"metadata": {"labels": {"a": "b", "gone": None}}},
        JSON_PATCH: [{"op": "replace", "path": "/metadata/labels/a", "value": "b"}],
    }
    assert await api.patch(api.machines("m"), patches[media], media=media) == created


async def test_a_put_that_changes_nothing_keeps_the_version(api: Bench) -> None:
    created = await api.create(api.machines(), machine("m"))
    assert await api.put(api.machines("m"), created) == created
    configured = await api.create(api.config_maps(), config_map("c", a="b"))
    assert await api.put(api.config_maps("c"), configured) == configured


async def test_a_json_patch_tests_adds_moves_and_removes(api: Bench) -> None:
    await api.create(api.config_maps(), config_map("c", a="1", b="2"))
    operations = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "add", "path": "/data/c", "value": "3"},
        {"op": "move", "from": "/data/a", "path": "/data/d"},
        {"op": "copy", "from": "/data/b", "path": "/data/e"},
        {"op": "remove", "path": "/data/b"},
        {"op": "add", "path": "/metadata/labels", "value": {"x~1y": "z"}},
        {"op": "remove", "path": "/metadata/labels/x~01y"},
        {"op": "add", "path": "/metadata/labels/x~1y", "value": "z"},
    ]
    after = await api.patch(api.config_maps("c"), operations, media=JSON_PATCH)
    assert after["data"] == {"c": "3", "d": "1", "e": "2"}
    assert after["metadata"]["labels"] == {"x/y": "z"}


async def test_a_json_patch_whose_test_fails_changes_nothing(api: Bench) -> None:
    await api.create(api.config_maps(), config_map("c", a="1"))
    operations = [
        {"op": "add", "path": "/data/b", "value": "2"},
        {"op": "test", "path": "/data/a", "value": "0"},
    ]
    answer = await api.send("PATCH", api.config_maps("c"), operations, media=JSON_PATCH)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert (await api.get(api.config_maps("c")))["data"] == {"a": "1"}


async def test_a_json_patch_of_what_is_not_there_is_refused(api: Bench) -> None:
    await api.create(api.config_maps(), config_map("c", a="1"))
    for operation in (
        {"op": "remove", "path": "/data/x"},
        {"op": "replace", "path": "/metadata/finalizers/0", "value": "y"},
        {"op": "add", "path": "/no/where", "value": "y"},
        {"op": "test", "path": "/data/x", "value": "y"},
    ):
        answer = await api.send("PATCH", api.config_maps("c"), [operation], media=JSON_PATCH)
        assert (answer.status, answer.reason) == (422, "Invalid"), operation


async def test_a_json_patch_may_replace_a_member_that_is_not_there(api: Bench) -> None:
    """Against RFC 6902, which wants an error."""
    await api.create(api.config_maps(), config_map("c", a="1"))
    operation = {"op": "replace", "path": "/data/x", "value": "y"}
    after = await api.patch(api.config_maps("c"), [operation], media=JSON_PATCH)
    assert after["data"] == {"a": "1", "x": "y"}


@pytest.mark.parametrize(
    ("media", "body"),
    [
        (MERGE, b"{"),
        (MERGE, b"[]"),
        (JSON_PATCH, b"{}"),
        (JSON_PATCH, b"["),
        (STRATEGIC, b"{"),
    ],
)
async def test_a_body_that_is_no_such_patch_is_a_bad_request(
    api: Bench, media: str, body: bytes
) -> None:
    await api.create(api.config_maps(), config_map("c"))
    answer = await api.send("PATCH", api.config_maps("c"), body, media=media)
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_a_patch_without_an_object_finds_nothing(api: Bench) -> None:
    for media, body in ((MERGE, b"{}"), (JSON_PATCH, b"[]")):
        answer = await api.send("PATCH", api.machines("m"), body, media=media)
        assert (answer.status, answer.reason) == (404, "NotFound")


async def test_a_media_type_that_is_no_patch_is_unsupported(api: Bench) -> None:
    await api.create(api.machines(), machine("m"))
    for media in ("application/json", STRATEGIC):
        answer = await api.send("PATCH", api.machines("m"), {}, media=media)
        assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")


# Strategic ---------------------------------------------------------------------------------------


async def test_conditions_of_a_node_are_merged_by_type(api: Bench) -> None:
    path = await _node(api)
    first = [_condition("Ready", "False"), _condition("DiskPressure", "False")]
    await api.patch(f"{path}/status", {"status": {"conditions": first}}, media=STRATEGIC)
    second = [_condition("Ready", "True"), _condition("Extra", "Unknown")]
    after = await api.patch(f"{path}/status", {"status": {"conditions": second}}, media=STRATEGIC)
    found = {c["type"]: c["status"] for c in after["status"]["conditions"]}
    assert found == {"Ready": "True", "DiskPressure": "False", "Extra": "Unknown"}
    drop = [{"$patch": "delete", "type": "Extra"}]
    after = await api.patch(f"{path}/status", {"status": {"conditions": drop}}, media=STRATEGIC)
    assert {c["type"] for c in after["status"]["conditions"]} == {"Ready", "DiskPressure"}


async def test_taints_of_a_node_are_one_value(api: Bench) -> None:
    path = await _node(api)
    taint = {"key": "a", "effect": "NoSchedule"}
    await api.patch(path, {"spec": {"taints": [taint]}}, media=STRATEGIC)
    after = await api.patch(
        path, {"spec": {"taints": [{"key": "b", "effect": "NoExecute"}]}}, media=STRATEGIC
    )
    assert [t["key"] for t in after["spec"]["taints"]] == ["b"]


async def test_finalizers_of_a_core_object_are_merged_as_a_set(api: Bench) -> None:
    path = await _node(api)
    for finalizers in (["e.org/a"], ["e.org/b"]):
        await api.patch(path, {"metadata": {"finalizers": finalizers}}, media=STRATEGIC)
    assert sorted((await api.get(path))["metadata"]["finalizers"]) == ["e.org/a", "e.org/b"]
    drop = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["e.org/a"]}}
    after = await api.patch(path, drop, media=STRATEGIC)
    assert after["metadata"]["finalizers"] == ["e.org/b"]


async def test_conditions_of_a_pod_are_merged_by_type(api: Bench) -> None:
    await api.create(api.pods(), pod("p"))
    for kind in ("Ready", "DisruptionTarget"):
        patch = {"status": {"conditions": [{"type": kind, "status": "True"}]}}
        await api.patch(api.pods("p") + "/status", patch, media=STRATEGIC)
    found = (await api.get(api.pods("p")))["status"]["conditions"]
    assert sorted(c["type"] for c in found) == ["DisruptionTarget", "Ready"]


# Apply -------------------------------------------------------------------------------------------


async def test_apply_creates_and_then_owns_what_it_said(api: Bench) -> None:
    answer = await _apply(api, "one", config_map("c", a="1", b="2"))
    assert answer == 201
    assert await _apply(api, "one", config_map("c", a="1")) == 200
    assert (await api.get(api.config_maps("c")))["data"] == {"a": "1"}
    assert await _apply(api, "two", config_map("c", z="9")) == 200
    after = await api.get(api.config_maps("c"))
    assert after["data"] == {"a": "1", "z": "9"}
    owners = {m["manager"]: m["operation"] for m in after["metadata"]["managedFields"]}
    assert owners == {"one": "Apply", "two": "Apply"}


async def test_applying_what_another_owns_is_a_conflict_unless_forced(api: Bench) -> None:
    await _apply(api, "one", config_map("c", a="1"))
    path = api.config_maps("c")
    answer = await api.send("PATCH", path, config_map("c", a="2"), media=APPLY, fieldManager="two")
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.causes == [("FieldManagerConflict", ".data.a")]
    assert 'conflict with "one"' in answer.body["details"]["causes"][0]["message"]
    assert await _apply(api, "two", config_map("c", a="2"), force="true") == 200
    assert (await api.get(path))["data"] == {"a": "2"}
    assert await _apply(api, "one", config_map("c", a="2")) == 200  # agreeing is no conflict


async def test_apply_works_on_our_own_kinds_and_their_status(api: Bench) -> None:
    desired = machine("m", {"a": "b"})
    answer = await api.send("PATCH", api.machines("m"), desired, media=APPLY, fieldManager="one")
    assert answer.status == 201
    status: Document = {
        "apiVersion": desired["apiVersion"],
        "kind": "Machine",
        "metadata": {"name": "m"},
        "status": {"lastKnownState": "x"},
    }
    answer = await api.send(
        "PATCH", api.machines("m") + "/status", status, media=APPLY, fieldManager="two"
    )
    assert answer.status == 200
    assert answer.body["status"] == {"lastKnownState": "x"}
    entries = {
        (m["manager"], m.get("subresource", "")) for m in answer.body["metadata"]["managedFields"]
    }
    assert entries == {("one", ""), ("two", "status")}


async def test_applying_the_same_again_keeps_the_version(api: Bench) -> None:
    await _apply(api, "one", config_map("c", a="1"))
    before = await api.get(api.config_maps("c"))
    await _apply(api, "one", config_map("c", a="1"))
    assert await api.get(api.config_maps("c")) == before


async def test_apply_needs_to_know_who_applies(api: Bench) -> None:
    answer = await api.send("PATCH", api.config_maps("c"), config_map("c"), media=APPLY)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.causes == [("FieldValueRequired", "fieldManager")]


async def test_force_belongs_to_apply(api: Bench) -> None:
    await api.create(api.config_maps(), config_map("c"))
    answer = await api.send("PATCH", api.config_maps("c"), {}, media=MERGE, force="true")
    assert (answer.status, answer.reason) == (422, "Invalid")


async def test_ordinary_writes_are_noted_as_updates(api: Bench) -> None:
    await api.create(api.config_maps(), config_map("c", a="1"), fieldManager="maker")
    after = await api.patch(api.config_maps("c"), {"data": {"b": "2"}}, fieldManager="changer")
    entries = {m["manager"]: m for m in after["metadata"]["managedFields"]}
    assert {m["operation"] for m in entries.values()} == {"Update"}
    assert entries["maker"]["fieldsV1"] == {"f:data": {".": {}, "f:a": {}}}
    assert entries["changer"]["fieldsV1"] == {"f:data": {"f:b": {}}}


async def test_whose_fields_are_whose_can_be_forgotten_until_somebody_applies(api: Bench) -> None:
    """What the manager does to machines of its own: noting it costs the server as much again."""
    made = await api.create(api.machines(), machine("m", {"a": "b"}), fieldManager="maker")
    assert made["metadata"]["managedFields"]
    forget = {"metadata": {"uid": made["metadata"]["uid"], "managedFields": [{}]}}
    change = {**forget, "spec": {"providerID": "p"}}
    for answer in (
        await api.patch(api.machines("m"), change, fieldManager="changer"),
        await api.patch(api.machines("m"), {"spec": {"providerID": "q"}}, fieldManager="changer"),
        await api.patch(api.machines("m") + "/status", {"status": {"lastKnownState": "x"}}),
    ):
        assert "managedFields" not in answer["metadata"]
    assert answer["spec"]["providerID"] == "q"
    desired = machine("m", {"c": "d"})
    path = api.machines("m")
    after = await api.send("PATCH", path, desired, media=APPLY, fieldManager="one")
    assert after.status == 200, after.text
    owners = {m["manager"]: m["operation"] for m in after.body["metadata"]["managedFields"]}
    assert owners == {"one": "Apply", "before-first-apply": "Update"}
    assert after.body["metadata"]["labels"] == {"a": "b", "c": "d"}
    last = await api.patch(path, {"spec": {"providerID": "r"}}, fieldManager="changer")
    entries = {m["manager"]: m["fieldsV1"] for m in last["metadata"]["managedFields"]}
    assert entries.keys() == {"one", "before-first-apply", "changer"}
    assert "f:status" not in entries["before-first-apply"]
    assert entries["changer"] == {"f:spec": {"f:providerID": {}}}


async def _apply(api: Bench, manager: str, desired: Document, **query: str) -> int:
    path = api.config_maps(desired["metadata"]["name"])
    answer = await api.send("PATCH", path, desired, media=APPLY, fieldManager=manager, **query)
    assert answer.status in (200, 201), answer.text
    return answer.status


async def _node(api: Bench) -> str:
    created = await api.create(NODES, node(f"node-of-{api.namespace}"))
    return f"{NODES}/{created['metadata']['name']}"


def _condition(kind: str, status: str) -> Document:
    return {
        "type": kind,
        "status": status,
        "lastHeartbeatTime": "2026-01-01T00:00:00Z",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "r",
        "message": "m",
    }
