from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.patches import PatchError, apply_json_patch
from mcm.sandbox.apiserver.patches.json_patch import MAX_OPERATIONS


def op(name: str, path: str, **more: object) -> JSONObject:
    return {"op": name, "path": path, **more}


@pytest.mark.parametrize(
    ("document", "operation", "expected"),
    [
        ({"a": 1}, op("add", "/b", value=2), {"a": 1, "b": 2}),
        ({"a": 1}, op("add", "/a", value=2), {"a": 2}),
        ({"a": [1, 3]}, op("add", "/a/1", value=2), {"a": [1, 2, 3]}),
        ({"a": [1]}, op("add", "/a/1", value=2), {"a": [1, 2]}),
        ({"a": [1]}, op("add", "/a/-", value=2), {"a": [1, 2]}),
        ({"a": [[1]]}, op("add", "/a/0/-", value=2), {"a": [[1, 2]]}),
        ({"a": 1}, op("add", "", value={"b": 2}), {"b": 2}),
        ({"a": 1}, op("add", "/b", value=None), {"a": 1, "b": None}),
        ({"a": 1, "b": 2}, op("remove", "/a"), {"b": 2}),
        ({"a": [1, 2, 3]}, op("remove", "/a/1"), {"a": [1, 3]}),
        ({"a": 1}, op("replace", "/a", value=[2]), {"a": [2]}),
        ({"a": [1, 2]}, op("replace", "/a/0", value=9), {"a": [9, 2]}),
        ({"a": 1}, op("replace", "", value={"b": 1}), {"b": 1}),
        ({"a": 1}, op("replace", "/b", value=2), {"a": 1, "b": 2}),  # as servers do
        (
            {"a": {"b": 1}, "c": {}},
            {"op": "move", "from": "/a/b", "path": "/c/d"},
            {"a": {}, "c": {"d": 1}},
        ),
        ({"a": [1, 2, 3]}, {"op": "move", "from": "/a/0", "path": "/a/2"}, {"a": [2, 3, 1]}),
        ({"a": 1}, {"op": "move", "from": "/a", "path": "/a"}, {"a": 1}),
        (
            {"a": {"b": 1}},
            {"op": "copy", "from": "/a", "path": "/c"},
            {"a": {"b": 1}, "c": {"b": 1}},
        ),
        ({"a/b": {"~c": 1}}, op("replace", "/a~1b/~0c", value=2), {"a/b": {"~c": 2}}),
        ({"~1": 1}, op("replace", "/~01", value=2), {"~1": 2}),
        ({"": {"": 1}}, op("replace", "//", value=2), {"": {"": 2}}),
        ({"a": [1, {"b": 1.0}]}, op("test", "/a", value=[1.0, {"b": 1}]), {"a": [1, {"b": 1}]}),
        ({"a": None}, op("test", "/a", value=None), {"a": None}),
        ({"-": 1}, op("replace", "/-", value=2), {"-": 2}),
        ({"0": 1}, op("remove", "/0"), {}),
    ],
)
def test_each_operation_does_what_servers_make_of_the_rfc(
    document: JSONObject, operation: JSONObject, expected: JSONObject
) -> None:
    before = copy.deepcopy(document)
    assert apply_json_patch(document, [operation]) == expected
    assert document == before


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (op("remove", "/missing"), "missing"),
        (op("remove", "/list/2"), "out of bounds"),
        (op("remove", "/list/-"), "no array index"),
        (op("remove", "/list/01"), "no array index"),
        (op("remove", "/list/²"), "no array index"),
        (op("remove", ""), "whole document"),
        (op("replace", "/missing/a", value=1), "missing"),
        (op("add", "/missing/a", value=1), "missing"),
        (op("add", "/list/3", value=1), "out of bounds"),
        (op("add", "/text/a", value=1), "neither an object nor an array"),
        (op("add", "", value=[1]), "not an object"),
        (op("test", "/text", value="other"), "testing value /text failed"),
        (op("test", "/one", value=True), "testing value /one failed"),
        (op("test", "/missing", value=None), "no such value"),
        ({"op": "move", "from": "/object", "path": "/object/inner"}, "into itself"),
        ({"op": "copy", "from": "/missing", "path": "/a"}, "missing"),
    ],
)
def test_an_operation_that_does_not_apply_is_unprocessable(
    operation: JSONObject, words: str
) -> None:
    document: JSONObject = {"list": [1, 2], "text": "t", "one": 1, "object": {}}
    with pytest.raises(PatchError, match=words) as caught:
        apply_json_patch(document, [operation])
    assert caught.value.code == 422


@pytest.mark.parametrize(
    "operation",
    [
        "text",
        {},
        op("frobnicate", "/a"),
        {"op": "add", "value": 1},
        {"op": "add", "path": "/a"},
        {"op": "test", "path": "/a"},
        {"op": "move", "path": "/a"},
        {"op": ["add"], "path": "/a", "value": 1} | {"op": "remove", "path": 3},
        op("add", "no-slash", value=1),
    ],
)
def test_a_malformed_operation_is_a_bad_request(operation: object) -> None:
    with pytest.raises(PatchError) as caught:
        apply_json_patch({"a": 1}, [operation])
    assert caught.value.code == 400


def test_too_many_operations_are_refused_at_once() -> None:
    with pytest.raises(PatchError, match="10000") as caught:
        apply_json_patch({}, [op("add", "/a", value=1)] * (MAX_OPERATIONS + 1))
    assert caught.value.code == 413


def test_operations_apply_in_order_and_all_or_none() -> None:
    document: JSONObject = {"a": 1}
    steps: list[object] = [op("add", "/b", value=[]), op("add", "/b/-", value=1)]
    assert apply_json_patch(document, steps) == {"a": 1, "b": [1]}
    with pytest.raises(PatchError):
        apply_json_patch(document, [*steps, op("test", "/a", value=2)])
    assert document == {"a": 1}


@given(
    document=st.dictionaries(st.text("ab/~", max_size=3), st.integers(), min_size=1),
    key=st.text("ab/~", max_size=3),
    value=st.integers(),
)
def test_any_member_can_be_addressed_by_its_escaped_name(
    document: JSONObject, key: str, value: int
) -> None:
    pointer = "/" + key.replace("~", "~0").replace("/", "~1")
    added = apply_json_patch(document, [op("add", pointer, value=value)])
    assert added == {**document, key: value}
    removed = apply_json_patch(added, [op("remove", pointer)])
    assert removed == {k: v for k, v in document.items() if k != key}
