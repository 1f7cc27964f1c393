from __future__ import annotations

import copy

import pytest

from mcm.api.machine import Machine, MachineClass, MachineSet
from mcm.api.nulls import without_nulls


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        (Machine, {"metadata": {"labels": None}}, {"metadata": {}}),
        (
            Machine,
            {"metadata": {"labels": {"a": None, "b": "1"}}},
            {"metadata": {"labels": {"b": "1"}}},
        ),
        (
            Machine,
            {"metadata": {}, "spec": {"class": None, "drainTimeout": None}},
            {"metadata": {}, "spec": {"drainTimeout": None}},
        ),
        (
            Machine,
            {"metadata": {}, "status": {"conditions": [None, {"type": "Ready", "reason": None}]}},
            {"metadata": {}, "status": {"conditions": [{"type": "Ready"}]}},
        ),
        (Machine, {"metadata": {}, "unknown": None}, {"metadata": {}, "unknown": None}),
        (Machine, {"metadata": "x"}, {"metadata": "x"}),
        (Machine, None, None),
    ],
)
def test_nulls_go_where_the_type_has_no_place_for_them(
    kind: type, value: object, kept: object
) -> None:
    assert without_nulls(value, kind) == kept


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (MachineClass, {"metadata": {}, "providerSpec": {"a": None, "b": [None, {"c": None}]}}),
        (
            MachineSet,
            {"metadata": {}, "spec": {"template": {"metadata": {"creationTimestamp": None}}}},
        ),
    ],
)
def test_a_carried_payload_keeps_its_nulls(kind: type, value: object) -> None:
    assert without_nulls(value, kind) == value


def test_the_argument_is_not_changed() -> None:
    value = {"metadata": {"labels": {"a": None}, "finalizers": [None]}}
    before = copy.deepcopy(value)
    without_nulls(value, Machine)
    assert value == before
