from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.fields.sets import (
    FieldError,
    Path,
    compare,
    decode,
    display,
    encode,
    paths_of,
    with_named_fields,
)
from mcm.sandbox.apiserver.fields.types import root_type

POD = root_type(None, kind="Pod")
elements = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
paths = st.frozensets(st.lists(elements, min_size=1, max_size=4).map(tuple), max_size=8)


@given(paths)
def test_a_set_of_paths_survives_the_wire_form(paths: frozenset[Path]) -> None:
    assert decode(encode(paths)) == paths


def test_the_wire_form_marks_members_that_have_children_with_a_dot() -> None:
    assert encode({("f:a",), ("f:a", "f:b"), ("f:c", "f:d")}) == {
        "f:a": {".": {}, "f:b": {}},
        "f:c": {"f:d": {}},
    }


def test_an_applied_object_claims_leaves_elements_and_map_entries_but_not_its_structs() -> None:
    applied: JSONObject = {
        "metadata": {"labels": {"app": "x"}, "finalizers": ["f"]},
        "spec": {
            "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}],
            "tolerations": [{"key": "k"}],
            "nodeSelector": {"a": "b"},
        },
    }
    assert encode(paths_of(applied, POD)) == {
        "f:metadata": {"f:labels": {"f:app": {}}, "f:finalizers": {'v:"f"': {}}},
        "f:spec": {
            "f:containers": {
                'k:{"name":"c"}': {
                    ".": {},
                    "f:name": {},
                    "f:image": {},
                    "f:ports": {
                        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}
                    },
                }
            },
            "f:tolerations": {},
            "f:nodeSelector": {},
        },
    }


def test_without_a_schema_objects_are_maps_and_lists_are_leaves() -> None:
    custom = root_type({})
    assert encode(paths_of({"spec": {"a": {"b": [1]}, "e": {}}}, custom)) == {
        "f:spec": {".": {}, "f:a": {".": {}, "f:b": {}}, "f:e": {}}
    }


@pytest.mark.parametrize("container", [{"image": "x"}, "text", None])
def test_a_list_element_without_its_key_has_no_name(container: object) -> None:
    with pytest.raises(FieldError):
        paths_of({"spec": {"containers": [container]}}, POD)


def test_paths_are_displayed_as_a_server_does() -> None:
    path = ("f:spec", "f:containers", 'k:{"name":"c","port":1}', "f:image")
    assert display(path) == '.spec.containers[name="c",port=1].image'
    assert display(("f:metadata", "f:finalizers", 'v:"f"')) == '.metadata.finalizers[="f"]'


def test_comparing_tells_what_was_added_changed_and_removed() -> None:
    old: JSONObject = {
        "metadata": {"labels": {"a": "1", "b": "2"}, "finalizers": ["x"]},
        "spec": {"containers": [{"name": "c", "image": "1"}], "hostname": "h"},
    }
    new: JSONObject = {
        "metadata": {"labels": {"a": "9", "c": "3"}, "finalizers": ["x", "y"]},
        "spec": {"containers": [{"name": "c", "image": "2"}, {"name": "d"}]},
    }
    found = compare(old, new, POD)
    assert {display(p) for p in found.added} == {
        ".metadata.labels.c",
        '.metadata.finalizers[="y"]',
        '.spec.containers[name="d"]',
        '.spec.containers[name="d"].name',
    }
    assert {display(p) for p in found.modified} == {
        ".metadata.labels.a",
        '.spec.containers[name="c"].image',
    }
    assert {display(p) for p in found.removed} == {".metadata.labels.b", ".spec.hostname"}


def test_an_object_that_becomes_a_scalar_is_modified_and_what_it_held_removed() -> None:
    before: JSONObject = {"spec": {"a": {"b": 1}}}
    after: JSONObject = {"spec": {"a": 1}}
    found = compare(before, after, root_type({}))
    assert found.modified == {("f:spec", "f:a")}
    assert found.removed == {("f:spec", "f:a", "f:b")} and not found.added
    back = compare(after, before, root_type({}))
    assert back.modified == {("f:spec", "f:a")}
    assert back.added == {("f:spec", "f:a", "f:b")} and not back.removed


values = st.recursive(
    st.none() | st.integers(0, 2) | st.booleans(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=8,
)


@given(old=values, new=values)
def test_comparing_finds_nothing_exactly_when_nothing_differs(old: object, new: object) -> None:
    found = compare({"spec": old}, {"spec": new}, root_type({}))
    differs = repr(old) != repr(new) and (old != new or repr(old).lower() != repr(new).lower())
    if not differs:
        assert not found.written and not found.removed
    elif old != new:
        assert found.written or found.removed


def test_named_fields_on_the_way_join_a_set_but_map_entries_and_elements_do_not() -> None:
    path = ("f:spec", "f:containers", 'k:{"name":"c"}', "f:image")
    label = ("f:metadata", "f:labels", "f:app")
    assert with_named_fields({path, label}, POD) == {
        path,
        label,
        ("f:spec",),
        ("f:spec", "f:containers"),
        ("f:metadata",),
        ("f:metadata", "f:labels"),
    }
