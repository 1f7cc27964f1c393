from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.patches import apply_merge_patch

scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
keys = st.sampled_from("abcd")
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=12,
)
documents = st.dictionaries(keys, values, max_size=4)


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": 1}, {"a": True}, {"a": True}),
        ({"a": "text"}, {"a": {"b": None}}, {"a": {}}),
        ({"a": [1]}, {"a": [None]}, {"a": [None]}),
    ],
)
def test_a_merge_patch_follows_the_rfc(
    document: JSONObject, patch: JSONObject, expected: JSONObject
) -> None:
    assert apply_merge_patch(document, patch) == expected
    assert repr(apply_merge_patch(document, patch)) == repr(expected)


def test_untouched_subtrees_are_shared_with_the_document() -> None:
    document: JSONObject = {"spec": {"big": {"x": [1, 2]}, "n": 1}, "status": {"y": {}}}
    result = apply_merge_patch(document, {"spec": {"n": 2}})
    spec = result["spec"]
    assert isinstance(spec, dict) and isinstance(document["spec"], dict)
    assert result["status"] is document["status"]
    assert spec["big"] is document["spec"]["big"]


def test_a_patch_that_changes_nothing_returns_the_document_itself() -> None:
    document: JSONObject = {"a": {"b": [1, {"c": 2}]}, "d": 1}
    assert apply_merge_patch(document, {"a": {"b": [1, {"c": 2}]}, "e": None}) is document


@given(document=documents, patch=documents)
def test_no_argument_is_ever_changed_and_a_second_time_changes_nothing(
    document: JSONObject, patch: JSONObject
) -> None:
    before = copy.deepcopy((document, patch))
    once = apply_merge_patch(document, patch)
    assert (document, patch) == before
    assert apply_merge_patch(once, patch) is once
