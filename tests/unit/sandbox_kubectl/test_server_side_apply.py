from __future__ import annotations

import copy
from typing import cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.writing.apply import (
    ApplyConflict,
    FieldError,
    server_side_apply,
    track_update,
)

NOW = "2025-01-01T00:00:00Z"
LATER = "2025-01-01T00:01:00Z"

WIDGET: JSONObject = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer"},
                "paused": {"type": "boolean"},
                "template": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "disks": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}, "size": {"type": "string"}},
                    },
                },
                "zones": {
                    "type": "array",
                    "x-kubernetes-list-type": "set",
                    "items": {"type": "string"},
                },
                "args": {"type": "array", "items": {"type": "string"}},
            },
        }
    },
}


def widget(spec: JSONObject | None = None, **metadata: object) -> JSONObject:
    document: JSONObject = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w", **metadata},
    }
    return document if spec is None else {**document, "spec": spec}


def apply(
    live: JSONObject | None,
    applied: JSONObject,
    *,
    manager: str = "alice",
    force: bool = False,
    now: str = NOW,
) -> JSONObject:
    before = copy.deepcopy((live, applied))
    result = server_side_apply(live, applied, manager=manager, force=force, now=now, schema=WIDGET)
    assert (live, applied) == before
    return result


def update(
    old: JSONObject | None, new: JSONObject, *, manager: str = "bob", now: str = NOW
) -> JSONObject:
    return track_update(old, new, manager=manager, now=now, schema=WIDGET)


def spec_of(obj: JSONObject) -> JSONObject:
    return cast(JSONObject, obj["spec"])


def entries(obj: JSONObject) -> list[JSONObject]:
    metadata = cast(JSONObject, obj["metadata"])
    return cast(list[JSONObject], metadata.get("managedFields", []))


def fields(obj: JSONObject, manager: str) -> object:
    return {str(e["manager"]): e["fieldsV1"] for e in entries(obj)}.get(manager)


def test_the_first_apply_creates_the_object_and_one_entry() -> None:
    created = apply(None, widget({"replicas": 3}, labels={"app": "x"}))
    assert spec_of(created) == {"replicas": 3}
    assert entries(created) == [
        {
            "manager": "alice",
            "operation": "Apply",
            "apiVersion": "example.com/v1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {"f:replicas": {}},
            },
        }
    ]


def test_applying_the_same_again_returns_the_live_object_itself() -> None:
    created = apply(None, widget({"replicas": 3, "disks": [{"name": "a"}], "args": ["x"]}))
    again = apply(
        created, widget({"args": ["x"], "disks": [{"name": "a"}], "replicas": 3}), now=LATER
    )
    assert again is created


def test_the_time_of_an_entry_moves_only_with_its_fields() -> None:
    created = apply(None, widget({"replicas": 3}))
    same_fields = apply(created, widget({"replicas": 4}), now=LATER)
    assert entries(same_fields)[0]["time"] == NOW
    more_fields = apply(created, widget({"replicas": 3, "paused": True}), now=LATER)
    assert entries(more_fields)[0]["time"] == LATER


def test_a_field_no_longer_applied_goes_but_one_nobody_applied_stays() -> None:
    created = apply(None, widget({"replicas": 3, "paused": True}))
    defaulted = {**created, "spec": {**spec_of(created), "args": ["set by the server"]}}
    result = apply(defaulted, widget({"replicas": 3}))
    assert spec_of(result) == {"replicas": 3, "args": ["set by the server"]}


def test_metadata_survives_an_apply_that_says_only_the_name() -> None:
    created = apply(None, widget({"replicas": 1}, labels={"a": "1"}, annotations={"b": "2"}))
    stored = {**created, "metadata": {**cast(JSONObject, created["metadata"]), "uid": "u"}}
    result = cast(JSONObject, apply(stored, widget({"replicas": 1}))["metadata"])
    assert result["uid"] == "u" and result["name"] == "w"
    assert "labels" not in result and "annotations" not in result


def test_a_field_that_another_manager_owns_too_stays_when_one_gives_it_up() -> None:
    live = apply(None, widget({"replicas": 3, "paused": True}))
    live = apply(live, widget({"paused": True}), manager="carol")
    result = apply(live, widget({"replicas": 3}))
    assert spec_of(result) == {"replicas": 3, "paused": True}
    assert fields(result, "carol") == {"f:spec": {"f:paused": {}}}
    assert fields(result, "alice") == {"f:spec": {"f:replicas": {}}}


def test_a_conflict_names_every_owner_and_field() -> None:
    live = apply(None, widget({"replicas": 3, "paused": True}))
    with pytest.raises(ApplyConflict) as caught:
        apply(live, widget({"replicas": 4, "paused": True}), manager="carol")
    assert caught.value.conflicts == [("alice", ".spec.replicas")]
    assert str(caught.value) == (
        'Apply failed with 1 conflict: conflict with "alice": .spec.replicas'
    )
    with pytest.raises(ApplyConflict) as caught:
        apply(live, widget({"replicas": 4, "paused": False}), manager="carol")
    assert str(caught.value) == (
        'Apply failed with 2 conflicts: conflicts with "alice":\n- .spec.paused\n- .spec.replicas'
    )
    assert caught.value.causes[0] == ('conflict with "alice"', ".spec.paused")


def test_a_conflict_with_an_updater_names_its_version() -> None:
    live = update(None, widget({"replicas": 3}))
    with pytest.raises(ApplyConflict, match=r'with "bob" using example.com/v1: .spec.replicas'):
        apply(live, widget({"replicas": 4}))


def test_agreeing_on_a_value_shares_it_without_conflict() -> None:
    live = apply(None, widget({"replicas": 3}))
    result = apply(live, widget({"replicas": 3}), manager="carol")
    assert fields(result, "alice") == fields(result, "carol") == {"f:spec": {"f:replicas": {}}}


def test_force_takes_the_field_from_its_owner() -> None:
    live = apply(None, widget({"replicas": 3, "paused": True}))
    result = apply(live, widget({"replicas": 4}), manager="carol", force=True)
    assert spec_of(result) == {"replicas": 4, "paused": True}
    assert fields(result, "alice") == {"f:spec": {"f:paused": {}}}
    assert fields(result, "carol") == {"f:spec": {"f:replicas": {}}}


def test_list_elements_merge_by_key_and_go_when_given_up() -> None:
    live = apply(None, widget({"disks": [{"name": "a", "size": "1"}, {"name": "b", "size": "2"}]}))
    live = apply(live, widget({"disks": [{"name": "c", "size": "3"}]}), manager="carol")
    result = apply(live, widget({"disks": [{"name": "b", "size": "9"}]}))
    assert spec_of(result) == {"disks": [{"name": "b", "size": "9"}, {"name": "c", "size": "3"}]}


def test_an_element_goes_whole_though_the_server_has_added_to_it() -> None:
    live = apply(None, widget({"disks": [{"name": "a"}, {"name": "b"}]}))
    disks = [{"name": "a"}, {"name": "b", "size": "default"}]
    result = apply({**live, "spec": {"disks": disks}}, widget({"disks": [{"name": "a"}]}))
    assert spec_of(result) == {"disks": [{"name": "a"}]}


def test_a_list_given_up_whole_leaves_nothing_behind() -> None:
    live = apply(None, widget({"replicas": 1, "zones": ["a", "b"], "disks": [{"name": "a"}]}))
    assert spec_of(apply(live, widget({"replicas": 1}))) == {"replicas": 1}


def test_sets_are_owned_by_value() -> None:
    live = apply(None, widget({"zones": ["a", "b"]}))
    live = apply(live, widget({"zones": ["c", "b"]}), manager="carol")
    assert spec_of(live) == {"zones": ["a", "c", "b"]}
    assert spec_of(apply(live, widget({"zones": ["a"]}))) == {"zones": ["a", "c", "b"]}
    assert spec_of(apply(live, widget({"zones": []}), manager="carol")) == {"zones": ["a", "b"]}


def test_atomic_lists_conflict_as_a_whole() -> None:
    live = apply(None, widget({"args": ["a"]}))
    with pytest.raises(ApplyConflict, match=r"\.spec\.args"):
        apply(live, widget({"args": ["a", "b"]}), manager="carol")


@pytest.mark.parametrize("disks", [[{"size": "1"}], [{"name": "a"}, {"name": "a"}], ["text"]])
def test_a_list_whose_elements_have_no_distinct_keys_is_refused(disks: list[object]) -> None:
    with pytest.raises(FieldError):
        apply(None, widget({"disks": disks}))


def test_a_null_claims_nothing() -> None:
    created = apply(None, widget({"replicas": None, "paused": True}))
    assert fields(created, "alice") == {"f:spec": {"f:paused": {}}}
    assert spec_of(created) == {"paused": True}


def applied_by_client(spec: JSONObject) -> JSONObject:
    """An object as ``kubectl apply`` without --server-side leaves it."""
    config = widget(spec, annotations={})
    text = orjson.dumps(config).decode()
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": text}
    return update(None, widget(spec, annotations=annotations), manager="kubectl-client-side-apply")


def test_kubectl_takes_over_what_it_applied_from_the_client_side() -> None:
    live = applied_by_client({"replicas": 3})
    result = apply(live, widget({"replicas": 4}), manager="kubectl")
    assert spec_of(result) == {"replicas": 4}
    with pytest.raises(ApplyConflict):
        apply(live, widget({"replicas": 4}), manager="somebody-else")


def test_kubectl_does_not_take_over_what_somebody_changed_since() -> None:
    live = applied_by_client({"replicas": 3})
    scaled = update(live, {**live, "spec": {"replicas": 9}}, manager="scaler")
    with pytest.raises(ApplyConflict, match="scaler"):
        apply(scaled, widget({"replicas": 4}), manager="kubectl")
    metadata = {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{torn"}}
    torn = update(None, {**widget({"replicas": 3}), "metadata": metadata}, manager="x")
    with pytest.raises(ApplyConflict):
        apply(torn, widget({"replicas": 4}), manager="kubectl")


# Normal writes -------------------------------------------------------------------------------


def test_a_create_is_owned_by_its_writer_with_containers_marked() -> None:
    created = update(None, widget({"replicas": 3}, labels={"app": "x"}))
    assert entries(created) == [
        {
            "manager": "bob",
            "operation": "Update",
            "apiVersion": "example.com/v1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {".": {}, "f:replicas": {}},
            },
        }
    ]


def test_an_update_takes_what_it_changes_from_appliers_too() -> None:
    live = apply(None, widget({"replicas": 3, "paused": True}))
    result = update(live, {**live, "spec": {"replicas": 5, "paused": True}}, now=LATER)
    assert fields(result, "alice") == {"f:spec": {"f:paused": {}}}
    assert fields(result, "bob") == {"f:spec": {"f:replicas": {}}}
    assert [e["operation"] for e in entries(result)] == ["Apply", "Update"]


def test_an_update_that_removes_a_field_takes_it_from_everybody() -> None:
    live = apply(None, widget({"replicas": 3, "paused": True}))
    result = update(live, {**live, "spec": {"paused": True}})
    assert fields(result, "alice") == {"f:spec": {"f:paused": {}}}
    assert fields(result, "bob") is None


def test_an_update_that_changes_only_server_fields_changes_no_entry() -> None:
    live = update(None, widget({"replicas": 3}, resourceVersion="1"))
    metadata = {**cast(JSONObject, live["metadata"]), "resourceVersion": "2", "generation": 2}
    assert entries(update(live, {**live, "metadata": metadata}, now=LATER)) == entries(live)


def test_a_status_write_has_an_entry_of_its_own() -> None:
    live = update(None, widget({"replicas": 3}))
    new = {**live, "status": {"phase": "Up"}}
    result = track_update(live, new, manager="bob", now=NOW, subresource="status", schema=WIDGET)
    assert [(e["manager"], e.get("subresource")) for e in entries(result)] == [
        ("bob", None),
        ("bob", "status"),
    ]


def test_a_writer_may_rewrite_or_clear_the_entries() -> None:
    live = apply(update(None, widget({"replicas": 3})), widget({"paused": True}))
    metadata = cast(JSONObject, live["metadata"])
    renamed = [{**e, "manager": "dave"} for e in entries(live)]
    result = update(live, {**live, "metadata": {**metadata, "managedFields": renamed}})
    assert {e["manager"] for e in entries(result)} == {"dave"}
    cleared = update(live, {**live, "metadata": {**metadata, "managedFields": [{}]}})
    assert entries(cleared) == []
    forgotten = {k: v for k, v in metadata.items() if k != "managedFields"}
    assert entries(update(live, {**live, "metadata": forgotten})) == entries(live)


def test_too_many_updaters_are_joined_into_one() -> None:
    live = update(None, widget({"template": {"0": 0}}), manager="m00")
    for number in range(1, 14):
        template = cast(JSONObject, spec_of(live)["template"])
        new = {**live, "spec": {"template": {**template, str(number): number}}}
        live = update(live, new, manager=f"m{number:02}", now=f"2025-01-01T00:00:{number:02}Z")
    managers = [e["manager"] for e in entries(live)]
    assert len(managers) == 10
    assert managers[0] == "ancient-changes"
    assert managers[1:] == [f"m{number:02}" for number in range(5, 14)]


keys = st.sampled_from("abc")
disks = st.dictionaries(keys, st.sampled_from("12"), max_size=3).map(
    lambda d: [{"name": name, "size": size} for name, size in d.items()]
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(0, 2),
        "template": st.dictionaries(keys, st.integers(0, 1), max_size=2),
        "disks": disks,
        "zones": st.lists(keys, unique=True, max_size=3),
    },
)


def as_sets(spec: JSONObject) -> JSONObject:
    """Lists that merge, without their order, and without empty containers."""
    found: JSONObject = {}
    for name, value in spec.items():
        if isinstance(value, list):
            value = sorted(map(str, value))
        if value != [] and value != {}:
            found[name] = value
    return found


@given(st.lists(specs, min_size=1, max_size=5))
def test_a_sole_manager_always_gets_exactly_what_it_applied_last(configs: list[JSONObject]) -> None:
    live: JSONObject | None = None
    for config in configs:
        live = apply(live, widget(config))
        assert as_sets(cast(JSONObject, live.get("spec", {}))) == as_sets(config)
        assert apply(live, widget(config), now=LATER) is live


@given(st.lists(st.tuples(st.sampled_from(["alice", "carol"]), specs), min_size=1, max_size=6))
def test_whoever_applied_last_by_force_sees_its_values(
    steps: list[tuple[str, JSONObject]],
) -> None:
    live: JSONObject | None = None
    for manager, config in steps:
        live = apply(live, widget(config), manager=manager, force=True)
        spec = cast(JSONObject, live.get("spec", {}))
        if "replicas" in config:
            assert spec["replicas"] == config["replicas"]
        for entry in cast(list[JSONObject], config.get("disks", [])):
            assert entry in cast(list[JSONObject], spec["disks"])
        for zone in cast(list[str], config.get("zones", [])):
            assert zone in cast(list[str], spec["zones"])
