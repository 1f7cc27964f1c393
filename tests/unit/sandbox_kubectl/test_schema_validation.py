from __future__ import annotations

import pytest

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.schema import FieldCause, validate


def causes(value: object, schema: JSONObject) -> list[FieldCause]:
    return validate({"f": value}, {"type": "object", "properties": {"f": schema}})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 3),
        ({"type": "integer"}, 3.0),
        ({"type": "number"}, 3),
        ({"type": "string"}, ""),
        ({"type": "boolean"}, False),
        ({"type": "object"}, {}),
        ({"type": "array"}, []),
        ({"type": "integer", "nullable": True}, None),
        ({"x-kubernetes-int-or-string": True}, 3),
        ({"x-kubernetes-int-or-string": True}, "30%"),
        (
            {
                "x-kubernetes-int-or-string": True,
                "anyOf": [{"type": "integer"}, {"type": "string"}],
            },
            "30%",
        ),
        ({"type": "integer", "format": "int32"}, -(2**31)),
        ({"type": "string", "format": "date-time"}, "2025-01-02T03:04:05.123456789Z"),
        ({"type": "string", "format": "date-time"}, "2025-01-02T03:04:05+02:00"),
        ({"type": "string", "format": "something-else"}, "x"),
        ({"type": "string", "format": "byte"}, "YWJj"),
        ({"type": "string", "format": "cidr"}, "10.0.0.0/8"),
        ({"type": "string", "format": "uuid"}, "123E4567-e89b-12d3-a456-426614174000"),
        ({"type": "string", "pattern": "b"}, "abc"),
        ({"type": "string", "pattern": "(unknown to Python\\z"}, "abc"),
        ({"type": "string", "maxLength": 2}, "ab"),
        ({"type": "string", "enum": ["a", "b"]}, "a"),
        ({"type": "integer", "minimum": 1, "maximum": 1, "multipleOf": 1}, 1),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"a": 1}),
        ({"not": {"required": ["a"]}}, {"b": 1}),
        ({"type": "array", "x-kubernetes-list-type": "set"}, ["a", "b"]),
    ],
)
def test_valid_values_have_no_causes(schema: JSONObject, value: object) -> None:
    assert causes(value, schema) == []


@pytest.mark.parametrize(
    ("schema", "value", "reason", "message"),
    [
        (
            {"type": "integer"},
            "x",
            "FieldValueTypeInvalid",
            'Invalid value: "string": f in body must be of type integer: "string"',
        ),
        (
            {"type": "integer"},
            1.5,
            "FieldValueTypeInvalid",
            'Invalid value: "number": f in body must be of type integer: "number"',
        ),
        (
            {"type": "integer"},
            True,
            "FieldValueTypeInvalid",
            'Invalid value: "boolean": f in body must be of type integer: "boolean"',
        ),
        (
            {"type": "object"},
            None,
            "FieldValueTypeInvalid",
            'Invalid value: "null": f in body must be of type object: "null"',
        ),
        (
            {"x-kubernetes-int-or-string": True},
            True,
            "FieldValueTypeInvalid",
            'Invalid value: "boolean": f in body must be of type integer,string: "boolean"',
        ),
        (
            {"type": "integer", "format": "int32"},
            2**31,
            "FieldValueTypeInvalid",
            'Invalid value: "int64": f in body must be of type int32: "int64"',
        ),
        (
            {"type": "integer", "format": "int64"},
            2**63,
            "FieldValueTypeInvalid",
            'Invalid value: "number": f in body must be of type int64: "number"',
        ),
        (
            {"type": "string", "format": "date-time"},
            "25:00",
            "FieldValueTypeInvalid",
            'Invalid value: "25:00": f in body must be of type date-time: "25:00"',
        ),
        (
            {"type": "string", "enum": ["a", "b"]},
            "c",
            "FieldValueNotSupported",
            'Unsupported value: "c": supported values: "a", "b"',
        ),
        (
            {"type": "integer", "enum": [1, 2]},
            3,
            "FieldValueNotSupported",
            'Unsupported value: 3: supported values: "1", "2"',
        ),
        (
            {"type": "string", "pattern": "^[a-z]+$"},
            "A",
            "FieldValueInvalid",
            "Invalid value: \"A\": f in body should match '^[a-z]+$'",
        ),
        (
            {"type": "string", "minLength": 2},
            "a",
            "FieldValueInvalid",
            'Invalid value: "a": f in body should be at least 2 chars long',
        ),
        (
            {"type": "string", "maxLength": 2},
            "abc",
            "FieldValueTooLong",
            "Too long: may not be more than 2 bytes",
        ),
        (
            {"type": "integer", "minimum": 0},
            -1,
            "FieldValueInvalid",
            "Invalid value: -1: f in body should be greater than or equal to 0",
        ),
        (
            {"type": "integer", "maximum": 10},
            11,
            "FieldValueInvalid",
            "Invalid value: 11: f in body should be less than or equal to 10",
        ),
        (
            {"type": "integer", "maximum": 10, "exclusiveMaximum": True},
            10,
            "FieldValueInvalid",
            "Invalid value: 10: f in body should be less than 10",
        ),
        (
            {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
            0,
            "FieldValueInvalid",
            "Invalid value: 0: f in body should be greater than 0",
        ),
        (
            {"type": "integer", "multipleOf": 5},
            7,
            "FieldValueInvalid",
            "Invalid value: 7: f in body should be a multiple of 5",
        ),
        (
            {"type": "array", "maxItems": 1},
            [1, 2],
            "FieldValueTooMany",
            "Too many: 2: must have at most 1 items",
        ),
        (
            {"type": "array", "minItems": 1},
            [],
            "FieldValueInvalid",
            "Invalid value: 0: f in body should have at least 1 items",
        ),
        (
            {"type": "object", "maxProperties": 0},
            {"a": 1},
            "FieldValueTooMany",
            "Too many: 1: must have at most 0 items",
        ),
        (
            {"type": "object", "minProperties": 1},
            {},
            "FieldValueInvalid",
            "Invalid value: 0: f in body should have at least 1 properties",
        ),
        (
            {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"a": 1, "b": 1},
            "FieldValueInvalid",
            'Invalid value: "": f in body must validate one and only one schema (oneOf)',
        ),
        (
            {"anyOf": [{"required": ["a"]}]},
            {},
            "FieldValueInvalid",
            'Invalid value: "": f in body must validate at least one schema (anyOf)',
        ),
        (
            {"not": {"required": ["a"]}},
            {"a": 1},
            "FieldValueInvalid",
            'Invalid value: "": f in body must not validate the schema (not)',
        ),
        (
            {"allOf": [{"maximum": 3}, {"minimum": 1}]},
            4,
            "FieldValueInvalid",
            "Invalid value: 4: f in body should be less than or equal to 3",
        ),
    ],
)
def test_an_invalid_value_is_reported_in_the_words_of_a_server(
    schema: JSONObject, value: object, reason: str, message: str
) -> None:
    assert causes(value, schema) == [FieldCause(reason, message, "f")]


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "2025-01-01",
        "2025-01-01 00:00:00Z",
        "2025-02-30T00:00:00Z",
        "2025-13-01T00:00:00Z",
        "20250101T000000Z",
    ],
)
def test_what_is_no_rfc_3339_time_is_no_date_time(text: str) -> None:
    assert causes(text, {"type": "string", "format": "date-time"})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("byte", "not base64!"),
        ("cidr", "10.0.0.1"),
        ("ipv4", "::1"),
        ("ipv6", "10.0.0.1"),
        ("date", "2025-1-1"),
        ("uuid", "123"),
        ("duration", "5 parsecs"),
    ],
)
def test_other_formats_are_checked_too(name: str, text: str) -> None:
    assert causes(text, {"type": "string", "format": name})


def test_paths_lead_through_objects_maps_and_lists() -> None:
    schema: JSONObject = {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "required": ["class"],
                "properties": {
                    "disks": {
                        "type": "array",
                        "items": {
                            "required": ["name"],
                            "properties": {"size": {"type": "integer"}},
                        },
                    },
                    "labels": {"additionalProperties": {"type": "string"}},
                },
            }
        },
    }
    assert [c.field for c in validate({}, schema)] == ["spec"]
    spec = {"disks": [{"name": "a", "size": 1}, {"size": "big"}], "labels": {"x": 1}}
    assert [(c.field, c.reason) for c in validate({"spec": spec}, schema)] == [
        ("spec.class", "FieldValueRequired"),
        ("spec.disks[1].name", "FieldValueRequired"),
        ("spec.disks[1].size", "FieldValueTypeInvalid"),
        ("spec.labels.x", "FieldValueTypeInvalid"),
    ]


def test_an_embedded_resource_must_say_what_it_is() -> None:
    schema = {"type": "object", "x-kubernetes-embedded-resource": True}
    assert causes({"kind": "X"}, schema) == [
        FieldCause("FieldValueRequired", "Required value: must not be empty", "f.apiVersion")
    ]


def test_list_elements_with_the_same_keys_are_duplicates() -> None:
    schema: JSONObject = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object"},
    }
    assert causes([{"name": "a", "x": 1}, {"name": "a", "x": 2}, {"name": "b"}], schema) == [
        FieldCause(
            "FieldValueDuplicate",
            'Duplicate value: map[string]interface {}{"name":"a"}',
            "f[1]",
        )
    ]
    assert causes(["a", "a"], {"type": "array", "x-kubernetes-list-type": "set"}) == [
        FieldCause("FieldValueDuplicate", 'Duplicate value: "a"', "f[1]")
    ]
