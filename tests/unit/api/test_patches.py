from __future__ import annotations

import copy
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.machine import MachineDeploymentStatus, MachineSetStatus
from mcm.api.meta import JSONObject
from mcm.api.patches import explicit_zeros, merge_diff, zero_counters

_keys = st.sampled_from("abc")
_scalars = st.one_of(st.none(), st.booleans(), st.integers(0, 2), st.sampled_from(["", "x"]))
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=12,
)
_objects = cast("st.SearchStrategy[JSONObject]", st.dictionaries(_keys, _values, max_size=3))


def _applied(target: object, patch: object) -> object:
    """RFC 7396, section 2, word for word."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _applied(result.get(key), value)
    return result


def _null_free(value: object) -> object:
    """What a merge patch can make of a value: no null members outside of lists."""
    if not isinstance(value, dict):
        return value
    return {key: _null_free(item) for key, item in value.items() if item is not None}


def _same_json(left: object, right: object) -> bool:
    return repr(_ordered(left)) == repr(_ordered(right))


def _ordered(value: object) -> object:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    return [_ordered(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({}, {}, {}),
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1, "b": 1}, {"a": 1}, {"b": None}),
        ({}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": {"b": 1, "c": 1}}, {"a": {"b": 2, "c": 1}}, {"a": {"b": 2}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": None}}),
        ({"a": {"b": 1}}, {"a": 1}, {"a": 1}),
        ({"a": 1}, {"a": {}}, {"a": {}}),
        ({"a": [1, 2]}, {"a": [2, 1]}, {"a": [2, 1]}),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1}]}, {}),
        ({"a": 1}, {"a": True}, {"a": True}),
        ({"a": [0]}, {"a": [False]}, {"a": [False]}),
        ({"a": None}, {"a": None}, {}),
        ({"a": None}, {}, {}),
        ({"a": None}, {"a": 1}, {"a": 1}),
    ],
)
def test_the_patch_says_only_what_differs(
    old: JSONObject, new: JSONObject, patch: JSONObject
) -> None:
    assert _same_json(merge_diff(old, new), patch)


@given(_objects, _objects)
def test_the_patch_applied_to_the_old_object_gives_the_new_one(
    old: JSONObject, new: JSONObject
) -> None:
    patched = _applied(old, merge_diff(old, new))
    assert _same_json(_null_free(patched), _null_free(new))


@given(_objects)
def test_an_object_does_not_differ_from_itself(obj: JSONObject) -> None:
    assert merge_diff(obj, copy.deepcopy(obj)) == {}


@given(_objects, _objects)
def test_neither_object_is_changed(old: JSONObject, new: JSONObject) -> None:
    before = repr((old, new))
    merge_diff(old, new)
    assert repr((old, new)) == before


@given(_objects, _objects)
def test_a_patch_that_was_applied_is_not_needed_again(old: JSONObject, new: JSONObject) -> None:
    patched = cast("JSONObject", _applied(old, merge_diff(old, new)))
    assert merge_diff(patched, new) == {}


def test_numbers_of_replicas_that_go_to_zero_are_said() -> None:
    difference: JSONObject = {
        "status": {"readyReplicas": None, "message": None, "replicas": 3},
        "x": None,
    }
    assert explicit_zeros(difference) == {
        "status": {"readyReplicas": 0, "message": None, "replicas": 3},
        "x": None,
    }


def test_counters_that_are_zero_are_named_as_on_the_wire() -> None:
    assert zero_counters(MachineSetStatus(replicas=3, observed_generation=1)) == {
        "fullyLabeledReplicas": 0,
        "readyReplicas": 0,
        "availableReplicas": 0,
        "preservedFailedReplicas": 0,
        "autoPreserveFailedMachineCount": 0,
    }
    counted = MachineDeploymentStatus(replicas=1, ready_replicas=1, observed_generation=4)
    assert zero_counters(counted).keys() == {
        "updatedReplicas",
        "availableReplicas",
        "preservedFailedReplicas",
        "unavailableReplicas",
    }
