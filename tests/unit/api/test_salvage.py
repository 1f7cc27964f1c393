"""What can be read of an object that does not have the form of its type."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api import codec, nesting
from mcm.api.machine import MACHINE_CLASSES, MACHINES, Machine
from mcm.api.meta import JSONObject
from mcm.api.salvage import salvaged

META = {"name": "m", "namespace": "ns", "uid": "u", "resourceVersion": "7"}


def read(obj: JSONObject) -> Machine:
    return codec.read_object(MACHINES, orjson.dumps({"metadata": META, **obj}))


@pytest.mark.parametrize(
    ("obj", "faults"),
    [
        ({"spec": 7}, ["spec: Expected `object`, got `int`"]),
        ({"spec": {"class": []}}, ["spec.class: Expected `object`, got `array`"]),
        (
            {"spec": {"nodeTemplate": {"metadata": {"labels": {"a": 1, "b": "x"}}}}},
            ["spec.nodeTemplate.metadata.labels[a]: Expected `str`, got `int`"],
        ),
        (
            {"spec": {"nodeTemplate": {"spec": {"taints": [{"effect": "NoSchedule"}, "x"]}}}},
            [
                "spec.nodeTemplate.spec.taints[0].key: Required",
                "spec.nodeTemplate.spec.taints[1]: Expected `object`, got `str`",
            ],
        ),
        ({"spec": {"maxEvictRetries": "3"}}, ["spec.maxEvictRetries: Expected `int`, got `str`"]),
        ({"spec": {"maxEvictRetries": True}}, ["spec.maxEvictRetries: Expected `int`, got `bool`"]),
        (
            {"status": {"currentStatus": {"lastUpdateTime": "yesterday", "phase": "Running"}}},
            ["status.currentStatus.lastUpdateTime: Expected `timestamp`, got `str`"],
        ),
        ({"status": {"conditions": {}}}, ["status.conditions: Expected `array`, got `object`"]),
    ],
)
def test_each_fault_is_named_with_its_place(obj: JSONObject, faults: list[str]) -> None:
    assert [str(fault) for fault in read(obj).metadata.faults] == faults


def test_what_fits_stays_beside_what_does_not() -> None:
    machine = read(
        {
            "spec": {"providerID": "p", "class": {"name": "c"}, "healthTimeout": 5},
            "status": {"currentStatus": {"phase": "Running"}, "lastOperation": "x"},
        }
    )
    assert (machine.spec.provider_id, machine.spec.class_.name, machine.phase) == (
        "p", "c", "Running",
    )  # fmt: skip
    assert machine.metadata.is_faulty_at("status.lastOperation.description")
    assert machine.metadata.is_faulty_at("status")
    assert not machine.metadata.is_faulty_at("spec.class", "status.currentStatus")


def test_a_number_names_what_its_text_would() -> None:
    assert read({"spec": {"providerID": 12}}).spec.provider_id == "12"


def test_a_machine_without_faults_costs_nothing_and_has_none() -> None:
    machine = codec.read_object(MACHINES, orjson.dumps({"metadata": META, "status": None}))
    assert machine.metadata.faults == ()


def test_faults_are_never_on_the_wire() -> None:
    machine = codec.decode_object(MACHINES, orjson.dumps({"metadata": META}))
    assert b"faults" not in codec.encode(machine) and b'"-"' not in codec.encode(machine)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"7", b'{"metadata":3}', b'{"metadata":{"uid":"u"},"spec":7}']
)
def test_what_has_no_name_is_nobody(body: bytes) -> None:
    with pytest.raises(codec.DecodeError):
        codec.read_object(MACHINES, body)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("spec", "status")


@given(st.dictionaries(st.sampled_from(FIELDS), json_values))
def test_whatever_stands_in_it_a_named_machine_is_read(obj: dict[str, Any]) -> None:
    try:
        body = orjson.dumps({"metadata": META, **obj})
    except (TypeError, ValueError):
        return  # an integer that no JSON parser of ours takes
    machine = codec.read_object(MACHINES, body)
    assert machine.metadata.key == "ns/m"
    try:
        assert codec.decode_object(MACHINES, body) == machine
    except codec.DecodeError:
        assert machine.metadata.faults


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_what_was_read_in_part_has_the_form_of_its_type(value: dict[str, Any]) -> None:
    found, faults = salvaged({"metadata": META, "status": value}, Machine)
    assert msgspec.convert(msgspec.to_builtins(found), Machine) == found
    assert all(fault.path.startswith("status") for fault in faults)


# Depth --------------------------------------------------------------------------------------------


@given(json_values)
def test_what_is_flat_enough_is_not_cut(value: object) -> None:
    body = json.dumps(value).encode()
    assert nesting.cut(body) == body


@given(st.integers(1, 40), st.integers(1, 40))
def test_what_is_too_deep_is_cut_where_it_becomes_so(depth: int, below: int) -> None:
    body = b'{"a":' * depth + b"[1]" + b"}" * depth
    kept, levels = json.loads(nesting.cut(body, below=below)), 0
    while isinstance(kept, dict):
        kept, levels = kept["a"], levels + 1
    assert levels == min(depth, below)
    assert kept == ([1] if depth < below else nesting.TOO_DEEP)


@given(st.lists(json_values, max_size=4), json_values)
def test_a_value_and_the_elements_of_an_array_are_taken_out_whole(
    items: list[object], other: object
) -> None:
    body = json.dumps({"x": other, "items": items, "y": [other]}).encode()
    outer, inner = nesting.lifted(body, "items")
    assert json.loads(outer) == {"x": other, "items": None, "y": [other]}
    assert [json.loads(element) for element in nesting.elements(inner)] == items


def test_an_object_nested_without_end_costs_a_list_nothing_else() -> None:
    deep = b'{"a":' * 5000 + b"1" + b"}" * 5000
    good = orjson.dumps({"metadata": {"name": "good"}})
    bad = b'{"metadata":{"name":"bad"},"providerSpec":' + deep + b"}"
    body = b'{"metadata":{"resourceVersion":"7"},"items":[' + b",".join((good, bad, good)) + b"]}"
    page = codec.decode_list(MACHINE_CLASSES, body)
    assert page.metadata.resource_version == "7"
    assert [item.metadata.name for item in page.items] == ["good", "bad", "good"]
    assert [len(item.metadata.faults) for item in page.items] == [0, 1, 0]
