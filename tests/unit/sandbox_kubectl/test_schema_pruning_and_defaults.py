from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.schema import apply_defaults, prune


def of_spec(**properties: object) -> JSONObject:
    return {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": properties}},
    }


OPEN: JSONObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize(
    ("schema", "spec", "kept", "unknown"),
    [
        ({"a": {"type": "string"}}, {"a": "x", "b": 1}, {"a": "x"}, ["spec.b"]),
        ({"a": OPEN}, {"a": {"b": {"c": [1]}}}, {"a": {"b": {"c": [1]}}}, []),
        (
            {"a": {**OPEN, "properties": {"b": {"type": "object", "properties": {}}}}},
            {"a": {"b": {"gone": 1}, "kept": 1}},
            {"a": {"b": {}, "kept": 1}},
            ["spec.a.b.gone"],
        ),
        (
            {"a": {"type": "object", "additionalProperties": {"type": "object"}}},
            {"a": {"x": {"gone": 1}}},
            {"a": {"x": {}}},
            ["spec.a.x.gone"],
        ),
        (
            {"a": {"type": "object", "additionalProperties": True}},
            {"a": {"x": {"kept": 1}}},
            {"a": {"x": {"kept": 1}}},
            [],
        ),
        (
            {"a": {"type": "array", "items": {"properties": {"n": {"type": "string"}}}}},
            {"a": [{"n": "1"}, {"n": "2", "m": 3}, "scalar"]},
            {"a": [{"n": "1"}, {"n": "2"}, "scalar"]},
            ["spec.a[1].m"],
        ),
        (
            {"a": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {}}},
            {"a": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "n", "q": 1}, "z": 1}},
            {"a": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "n"}}},
            ["spec.a.metadata.q", "spec.a.z"],
        ),
    ],
)
def test_pruning_keeps_what_the_schema_specifies_and_names_the_rest(
    schema: JSONObject, spec: JSONObject, kept: JSONObject, unknown: list[str]
) -> None:
    before = copy.deepcopy(spec)
    assert prune({"spec": spec}, of_spec(**schema)) == ({"spec": kept}, unknown)
    assert spec == before


def test_the_envelope_of_an_object_needs_no_specification() -> None:
    obj: JSONObject = {
        "apiVersion": "v1",
        "kind": "X",
        "metadata": {"name": "x", "labels": {"any": "thing"}, "managedFields": [{"f": 1}]},
        "extra": 1,
    }
    pruned, unknown = prune(obj, {"type": "object"})
    assert unknown == ["extra"]
    assert pruned == {k: v for k, v in obj.items() if k != "extra"}
    assert pruned["metadata"] is obj["metadata"]


def test_an_object_that_needs_no_pruning_is_returned_itself() -> None:
    obj: JSONObject = {"kind": "X", "spec": {"a": [{"n": 1}]}}
    items = {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert prune(obj, of_spec(a={"type": "array", "items": items}))[0] is obj


@pytest.mark.parametrize(
    ("schema", "spec", "expected"),
    [
        ({"a": {"type": "integer", "default": 3}}, {}, {"a": 3}),
        ({"a": {"type": "integer", "default": 3}}, {"a": 0}, {"a": 0}),
        ({"a": {"type": "integer", "default": 3}}, {"a": None}, {"a": 3}),
        ({"a": {"type": "integer", "default": 3, "nullable": True}}, {"a": None}, {"a": None}),
        ({"a": {"type": "integer", "default": 3, "nullable": True}}, {}, {"a": 3}),
        ({"a": {"type": "object", "properties": {"b": {"default": 1}}}}, {}, {}),
        (
            {"a": {"type": "object", "properties": {"b": {"default": 1}}}},
            {"a": {}},
            {"a": {"b": 1}},
        ),
        (
            {"a": {"type": "object", "default": {}, "properties": {"b": {"default": 1}}}},
            {},
            {"a": {"b": 1}},
        ),
        (
            {"a": {"type": "array", "items": {"properties": {"p": {"default": "TCP"}}}}},
            {"a": [{}, {"p": "UDP"}]},
            {"a": [{"p": "TCP"}, {"p": "UDP"}]},
        ),
        (
            {"a": {"additionalProperties": {"properties": {"b": {"default": 1}}}}},
            {"a": {"x": {}}},
            {"a": {"x": {"b": 1}}},
        ),
    ],
)
def test_defaults_fill_absences_at_every_depth_that_exists(
    schema: JSONObject, spec: JSONObject, expected: JSONObject
) -> None:
    before = copy.deepcopy(spec)
    assert apply_defaults({"spec": spec}, of_spec(**schema)) == {"spec": expected}
    assert spec == before


SCHEMA = of_spec(
    n={"type": "integer", "default": 1},
    m={"type": "object", "default": {}, "properties": {"x": {"type": "string", "default": "y"}}},
    items={
        "type": "array",
        "items": {"type": "object", "properties": {"p": {"type": "string", "default": "q"}}},
    },
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "n": st.none() | st.integers(),
        "m": st.dictionaries(st.sampled_from("xz"), st.text(max_size=2)),
        "items": st.lists(st.dictionaries(st.sampled_from("pz"), st.text(max_size=2))),
        "z": st.integers(),
    },
)


@given(specs)
def test_pruning_and_defaulting_a_second_time_change_nothing(spec: JSONObject) -> None:
    pruned, _ = prune({"spec": spec}, SCHEMA)
    assert prune(pruned, SCHEMA) == (pruned, [])
    defaulted = apply_defaults(pruned, SCHEMA)
    assert apply_defaults(defaulted, SCHEMA) is defaulted
    assert prune(defaulted, SCHEMA)[0] is defaulted
